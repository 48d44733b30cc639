"""Draws goodput and latency by offered load as a self-contained SVG."""

import math
import statistics
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 444
PANEL_WIDTH, PANEL_HEIGHT = 355, 270
PANELS_X = (70, 560)
TOP = 84
# Distinguishable with any colour vision (Okabe and Ito); marks differ, too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000")
STYLE = """
text { font: 12px sans-serif; fill: #222 } .title { font-size: 14px; font-weight: bold } .small { font-size: 11px; fill: #555 }
.grid { stroke: #ddd } .axis { stroke: #555 } .limit { stroke: #888; stroke-dasharray: 4 3 } .line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 5 4; stroke-width: 1.5 }
"""


def svg(summary, subtitle):
    """The graph of a result of `overload.summarise`."""
    cases = list(dict.fromkeys(row["case"] for row in summary))
    factors = sorted({row["factor"] for row in summary})
    times_ms = [statistics.median(row[field]) for row in summary for field in ("admitted_p99_ms", "server_p99_ms") if row[field]]
    decades = _decades(times_ms)
    at_x = _logarithmic(factors[0] / 1.15, factors[-1] * 1.15, 0, PANEL_WIDTH)
    at_part = lambda part: PANEL_HEIGHT * (1 - part / 1.1)
    at_ms = _logarithmic(decades[0], decades[-1], PANEL_HEIGHT, 0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
             f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{PANELS_X[0]}" y="24" class="title">Kvant past its limit</text>',
             f'<text x="{PANELS_X[0]}" y="42" class="small">kvant serve {escape(subtitle)}</text>']
    panels = [
        ("Goodput, by the most that any step did", [(part / 5, f"{part * 20} %") for part in range(6)], at_part, ["goodput_part"]),
        ("p99 of what is admitted, ms: client, server (dashed)", [(ms, f"{ms:,g}") for ms in decades], at_ms,
         ["admitted_p99_ms", "server_p99_ms"]),
    ]
    for left, (title, ticks, at_y, fields) in zip(PANELS_X, panels):
        parts.append(f'<g transform="translate({left} {TOP})"><text x="0" y="-10">{title}</text>')
        parts += _axes(factors, at_x, ticks, at_y)
        for number, case in enumerate(cases):
            for field in fields:
                points = [(at_x(row["factor"]), at_y(statistics.median(row[field])))
                          for row in summary if row["case"] == case and row[field]]
                parts += _line(points, number, is_dashed=field != fields[0])
        parts.append("</g>")
    for number, case in enumerate(cases):
        x = PANELS_X[0] + number * 150
        parts += [f'<g transform="translate({x} {HEIGHT - 22})">', *_line([(0, -4), (24, -4)], number),
                  f'<text x="32" y="0">{escape(case)}</text></g>']
    return "\n".join([*parts, "</svg>", ""])


def _decades(values):
    """The powers of ten that enclose positive values."""
    values = [value for value in values if value > 0] or [1]
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0 ** power for power in range(least, max(most, least + 1) + 1)]


def _logarithmic(low, high, start, end):
    return lambda value: start + (end - start) * (math.log(max(value, low)) - math.log(low)) / (math.log(high) - math.log(low))


def _axes(factors, at_x, ticks, at_y):
    for value, label in ticks:
        y = at_y(value)
        yield f'<line x1="0" x2="{PANEL_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    yield f'<line x1="0" x2="{PANEL_WIDTH}" y1="{PANEL_HEIGHT}" y2="{PANEL_HEIGHT}" class="axis"/>'
    for factor in factors:
        x = at_x(factor)
        kind = "limit" if factor == 1 else "grid"
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{PANEL_HEIGHT}" class="{kind}"/>'
        yield f'<text x="{x:.1f}" y="{PANEL_HEIGHT + 18}" text-anchor="middle">{factor:g} x</text>'
    yield (f'<text x="{PANEL_WIDTH / 2}" y="{PANEL_HEIGHT + 38}" text-anchor="middle">'
           "planned load, by the rate that the server holds</text>")


def _line(points, number, is_dashed=False):
    colour = COLOURS[number % len(COLOURS)]
    if not points:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    mark = ('<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{c}"/>',
            '<rect x="{x0:.1f}" y="{y0:.1f}" width="8" height="8" fill="{c}"/>',
            '<path d="M{x:.1f} {y0:.1f} l4.5 8 h-9 z" fill="{c}"/>',
            '<path d="M{x:.1f} {y0:.1f} l5 4.5 l-5 4.5 l-5 -4.5 z" fill="{c}"/>')[number % 4]
    marks = [mark.format(x=x, y=y, x0=x - 4, y0=y - 4, c=colour) for x, y in points]
    kind = "line dashed" if is_dashed else "line"
    return [f'<polyline points="{path}" class="{kind}" stroke="{colour}"/>', *marks]
