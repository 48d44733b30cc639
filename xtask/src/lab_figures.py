"""Computes the figures of a report of kvant lab again, from the raw files of its run and with
HdrHistogram's Python library, and compares them.

Usage: lab_figures.py RUN_DIRECTORY

Exits with 0 if all agree; otherwise prints the differences and exits with 1.
"""

import json
import math
import re
import struct
import sys
import zlib
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from statistics import median
from urllib.parse import unquote

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

# As in crates/kvant-load/src/histogram.rs.
LOWEST_NS, HIGHEST_NS, DIGITS = 256, 24 * 3600 * 10**9, 3
PERCENTILES = ["p50", "p75", "p90", "p99", "p99.9", "p99.99", "p99.999"]
# Time after the load from which on its later work counts.
LATER_NS_MIN = 500_000_000
# Codes of the samples of a recording, as in docs/formats/recording.md.
CPU, ALLOC, WAITS = 0, 1, {2: "contention", 4: "backpressure", 5: "io", 6: "scheduler"}
# Figures are compared within this part: sums of floating-point numbers depend on their order.
TOLERANCE = 1e-9

problems = []
checked = Counter()


def expect(section, what, found, wanted):
    """Compares numbers, or lists of them, within the tolerance and all else exactly."""
    checked[section] += 1
    if isinstance(found, (int, float)) and isinstance(wanted, (int, float)):
        agrees = math.isclose(found, wanted, rel_tol=TOLERANCE, abs_tol=1e-9)
    elif isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        agrees = len(found) == len(wanted)
        for index, (a, b) in enumerate(zip(found, wanted)):
            expect(section, f"{what}[{index}]", a, b)
    else:
        agrees = found == wanted
    if not agrees:
        problems.append(f"{section}: {what}: the report has {found}, the files give {wanted}")


def measured(values):
    """Median, least, greatest and number, as in the report."""
    values = [value for value in values if value is not None]
    return (median(values), min(values), max(values), len(values)) if values else None


def expect_measured(section, what, found, values):
    wanted = measured(values)
    if found is None or wanted is None:
        expect(section, what, found, wanted)
        return
    for name, value in zip(("median", "min", "max", "count"), wanted):
        expect(section, f"{what} {name}", found[name], value)


class Values:
    """The values of histograms, as counts by the first value of each unit of resolution."""

    def __init__(self):
        self.counts = Counter()
        self.unit = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)

    def add(self, histogram):
        for item in histogram.get_recorded_iterator():
            if item.count_at_value_iterated_to:
                start = self.unit.get_lowest_equivalent_value(item.value_iterated_to)
                self.counts[start] += item.count_at_value_iterated_to
        return self

    def total(self):
        return sum(self.counts.values())

    def percentile(self, percent):
        """The end of the unit below which this part of all values lies."""
        wanted = max(1, math.ceil(Fraction(percent) / 100 * self.total()))
        below = 0
        for value in sorted(self.counts):
            below += self.counts[value]
            if below >= wanted:
                return self.unit.get_highest_equivalent_value(value)
        return 0

    def mean(self):
        def middle(value):
            return (value + self.unit.get_highest_equivalent_value(value) + 1) // 2

        return sum(middle(value) * n for value, n in self.counts.items()) / self.total()

    def max(self):
        return max(self.counts, default=0)


def values_of(*encoded):
    values = Values()
    for text in encoded:
        values.add(HdrHistogram.decode(text))
    return values


class Recording:
    """The facts and samples of a recording, as docs/formats/recording.md describes them."""

    def __init__(self, data):
        at, sections = 16, {}
        while at < len(data):
            number, method, _, stored = struct.unpack_from("<BBII", data, at)
            content = data[at + 14 : at + 14 + stored]
            sections[number] = zlib.decompress(content, -15) if method else content
            at += 14 + stored
        self.data, self.at = sections[1], 0
        self.started_wall_ns, self.duration_ns = self.varint(), self.varint()
        for _ in range(2):
            length = self.varint()
            self.at += length
        _, _, self.process_cpu_ns = self.varint(), self.varint(), self.varint()
        self.has_cpu = self.varint() == 1
        self.data, self.at = sections[7], 0
        count = self.varint()
        kinds = self.bytes(count)
        times, durations, _ = self.varints(count), self.varints(count), self.varints(count)
        activities, stages = self.bytes(count), self.bytes(count)
        _, _, weights = self.varints(count), self.varints(count), self.varints(count)
        starts, sum_ns = [], 0
        for time in times:
            sum_ns += time
            starts.append(sum_ns)
        self.samples = list(zip(kinds, starts, durations, activities, stages, weights))

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def varints(self, count):
        return [self.varint() for _ in range(count)]

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count : self.at]


class Attempt:
    """An attempt with its raw files."""

    def __init__(self, directory, facts):
        self.facts = facts
        self.path = directory / "attempts" / f"{facts['number']:04}"
        self.load = self.read("load.json")
        self.beside = self.read("beside.json", {"phases": []})
        self.samples = self.read("watch.json", {"samples": []})["samples"]
        self.stats = self.read("stats.json", [])

    def read(self, name, default=None):
        file = self.path / name
        return default if default is not None and not file.exists() else json.loads(file.read_text())

    def steps(self):
        """The phases that are figures, by the name of their step."""
        phases = self.load["phases"]
        is_search = self.load["find_max"] is not None
        for phase in phases:
            if is_search and phase["label"] != "80 %":
                continue
            several = f"{phase['rate']['from_per_s']:.0f}/s" if len(phases) > 1 else ""
            yield phase["label"] or several, phase

    def times(self, phase):
        start = phase.get("measure_start_ns") or self.facts["measure_start_ns"]
        return start, start + phase["measured_ns"]

    def next_start(self, phase):
        starts = [self.times(other)[0] for other in self.load["phases"]]
        return min((start for start in starts if start > self.times(phase)[0]), default=None)

    def counted(self):
        """Successful responses of both loads: begin, end, number."""
        for phase in self.load["phases"]:
            start, end = self.times(phase)
            # Seconds do not tell error statuses from other failures.
            part = Fraction(good_count(phase), max(phase["completed"], 1))
            for one in phase["seconds"]:
                yield start + one["start_ns"], start + one["end_ns"], one["completed"] * part
            if not phase["seconds"]:
                yield start, end, good_count(phase)
        for phase in self.beside["phases"]:
            if phase.get("measure_start_ns") is None:
                continue
            lines = list(log_of(self.path / "beside.hlog"))
            logged = sum(count for _, _, count in lines)
            for start, length, count in lines:
                begin = phase["measure_start_ns"] + start
                yield begin, begin + length, count * Fraction(good_count(phase), max(logged, 1))

    def responses(self, start, end):
        sum_of = Fraction(0)
        for begin, until, count in self.counted():
            overlap = max(0, min(end, until) - max(start, begin))
            sum_of += count * Fraction(overlap, max(until - begin, 1))
        return float(sum_of)

    def spent(self, start, end, counter):
        """A counter between two times, on straight lines between samples."""
        def at(time):
            after = next((i for i, s in enumerate(self.samples) if s["at_ns"] >= time), None)
            if after is None:
                return None
            following = self.samples[after]
            if counter(following) is None or following["at_ns"] == time:
                return counter(following)
            if after == 0:
                return None
            before = self.samples[after - 1]
            if counter(before) is None:
                return None
            part = Fraction(time - before["at_ns"], following["at_ns"] - before["at_ns"])
            return counter(before) + part * (counter(following) - counter(before))

        a, b = at(start), at(end)
        return None if a is None or b is None else float(b - a)

    def per_response(self, phase, counter, until=None):
        start, end = self.times(phase)
        spent = self.spent(start, until or end, counter)
        count = self.responses(start, end)
        return None if spent is None or count == 0 else spent / count


def good_count(phase):
    """Responses that are no errors."""
    return phase["completed"] - phase["errors"]["status"]


def good_rate(phase):
    return good_count(phase) * 1e9 / phase["measured_ns"]


def log_of(file):
    """Begin, length and number of the response times of each line of an interval log."""
    for line in file.read_text().splitlines():
        tag, start, length, _, encoded = (line.split(",") + [""] * 5)[:5]
        if tag.startswith("Tag=") and tag.endswith("/response"):
            count = HdrHistogram.decode(encoded).get_total_count()
            yield round(float(start) * 1e9), round(float(length) * 1e9), count


def is_servers(phase, percent):
    """Whether the shares next to a percentile say that it is not the generator's."""
    shares = (phase["verdict"] or {"shares": []})["shares"]
    below = [share for share in shares if share["percent"] <= percent][-1:]
    above = [share for share in shares if share["percent"] >= percent][:1]
    return all(share["is_server"] for share in below + above)


def is_mostly_servers(phases, percent):
    """Whether a percentile is the server's in most phases: it is a figure only then."""
    return 2 * sum(is_servers(phase, percent) for phase in phases) > len(phases)


def field(name):
    return lambda sample: sample[name]


def switches(sample):
    kinds = (sample["server_voluntary_switches"], sample["server_involuntary_switches"])
    return None if None in kinds else sum(kinds)


def cpu_per_request(attempt, phase):
    return attempt.per_response(phase, field("server_cpu_ns"))


def write_amplification(attempt, phase):
    start, _ = attempt.times(phase)
    end = attempt.next_start(phase) or math.inf
    until = [sample for sample in attempt.stats if sample["at_ns"] <= end]
    if not until:
        return None
    first = ([sample for sample in attempt.stats if sample["at_ns"] <= start] or attempt.stats[:1])[-1]

    def grown(*path):
        ends = []
        for sample in (first, until[-1]):
            value = sample["stats"]
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            ends.append(value)
        return None if None in ends else ends[1] - ends[0]

    user = grown("engine", "writes", "user_bytes")
    written = [grown("engine", part, "written_bytes") for part in ("wal", "flushes", "compactions")]
    return sum(written) / user if user and None not in written else None


def generator_cpu(attempt, phase, kind):
    if kind == "command":
        start, _ = attempt.times(phase)
        spent = attempt.spent(start, attempt.samples[-1]["at_ns"], field("generator_cpu_ns"))
    else:
        spent = phase["cpu_ns"]
    return spent / phase["completed"] if spent and phase["completed"] else None


def check_figures(figures, attempts, kind):
    """Every figure of one case and step."""
    phases = [(a, dict(a.steps())[figures["step"]]) for a in attempts if figures["step"] in dict(a.steps())]
    name = f"case {figures['case']} {figures['step']}"
    section = "figures"
    expect(section, f"{name} attempts", figures["attempts"], [a.facts["number"] for a, _ in phases])

    def check(key, of):
        expect_measured(section, f"{name} {key}", figures[key], [of(a, p) for a, p in phases])

    check("achieved_per_s", lambda a, p: p["completed"] * 1e9 / p["measured_ns"])
    check("errors_part", lambda a, p: sum(p["errors"].values()) / max(p["planned"], 1))
    check("service_p99_ns", lambda a, p: values_of(p["service"]["histogram"]).percentile("99"))
    check("send_lag_p99_ns", lambda a, p: values_of(p["send_lag"]["histogram"]).percentile("99"))
    check("cpu_per_request_ns", cpu_per_request)
    check("disk_written_per_request_bytes", lambda a, p: a.per_response(p, field("server_written_bytes")))
    check("switches_per_request", lambda a, p: a.per_response(p, switches))
    check("write_amplification", write_amplification)
    check("generator_cpu_per_request_ns", lambda a, p: generator_cpu(a, p, kind))
    planned = median(p["rate"]["from_per_s"] for _, p in phases)
    expect(section, f"{name} planned", figures["planned_per_s"], planned or None)

    def with_later_work(a, p):
        is_watched = a.samples and a.samples[-1]["at_ns"] >= a.times(p)[1] + LATER_NS_MIN
        if not is_watched or a.next_start(p) is not None:
            return None
        return a.per_response(p, field("server_cpu_ns"), a.samples[-1]["at_ns"])

    def memory(a, p):
        start, end = a.times(p)
        within = [s["server_rss_bytes"] for s in a.samples if start <= s["at_ns"] <= end]
        return max((size for size in within if size is not None), default=None)

    check("cpu_with_later_work_ns", with_later_work)
    check("rss_max_bytes", memory)
    check("goodput_per_s", lambda a, p: good_rate(p))

    response = dict(figures["response_ns"])
    all_values = [values_of(p["response"]["histogram"], p["unanswered"]["histogram"]) for _, p in phases]
    for percentile in PERCENTILES:
        percent = percentile[1:]
        is_shown = is_mostly_servers([p for _, p in phases], float(percent))
        found = [values.percentile(percent) for values in all_values if values.total() and is_shown]
        expect_measured(section, f"{name} {percentile}", response.get(percentile), found)
    is_shown = is_mostly_servers([p for _, p in phases], 100.0)
    maxima = [values.max() for values in all_values if values.total() and is_shown]
    expect_measured(section, f"{name} max", response.get("max"), maxima)
    for values, (_, phase) in zip(all_values, phases):
        expect(section, f"{name} count", values.total(), phase["response_with_unanswered"]["count"])
    means = [values.mean() for values in all_values if values.total()]
    # The library takes the middle of a unit, which differs between implementations by half a unit.
    wanted = measured(means)
    checked[section] += 1
    if wanted and not math.isclose(response["mean"]["median"], wanted[0], rel_tol=1e-3):
        problems.append(f"{name} mean: the report has {response['mean']}, the files give {wanted}")
    for op in figures["ops"]:
        of_op = [(p, next(o for o in p["ops"] if o["name"] == op["name"])) for _, p in phases]
        statuses = Counter()
        for _, one in of_op:
            statuses.update({int(status): n for status, n in one["statuses"].items()})
        expect(section, f"{name} statuses", op["statuses"], sorted(statuses.items()))
        for key, percent in (("p50_ns", "50"), ("p99_ns", "99"), ("p999_ns", "99.9")):
            found = [values_of(o["response"]["histogram"]).percentile(percent) for _, o in of_op]
            expect_measured(section, f"{name} {op['name']} {key}", op[key], found)


def check_spectrum(spectrum, attempts):
    values = Values()
    for attempt in attempts:
        phase = dict(attempt.steps()).get(spectrum["step"])
        if phase is None:
            continue
        kinds = ("response", "unanswered") if spectrum["what"] == "response" else (spectrum["what"],)
        for kind in kinds:
            values.add(HdrHistogram.decode(phase[kind]["histogram"]))
    name = f"case {spectrum['case']} {spectrum['what']}"
    expect("spectra", f"{name} count", spectrum["count"], values.total())
    for inverse, value in spectrum["points"][:-1]:
        percent = Fraction(100) * (1 - 1 / Fraction(inverse))
        # 1/(1-p) of the report is a rounded number; one value more or less may be meant.
        total = values.total()
        rank = percent / 100 * total
        near = {
            values.percentile(max(Fraction(0), Fraction(100) * (rank + shift) / total)) for shift in (-1, 0, 1)
        }
        checked["spectra"] += 1
        if value not in near:
            problems.append(f"spectra: {name} at {inverse}: the report has {value}, the files give {near}")
    expect("spectra", f"{name} last", values.unit.get_lowest_equivalent_value(spectrum["points"][-1][1]), values.max())


def check_time_line(line, attempt):
    """The columns and the heat map, from the interval log as the library reads it."""
    log = HistogramLogReader(str(attempt.path / "load.hlog"), HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS))
    columns = defaultdict(Values)
    base = None
    while (histogram := log.get_next_interval_histogram()) is not None:
        if base is None:
            base = log.base_time_sec * 1000
        tag = unquote(histogram.get_tag() or "")
        if tag.endswith("/response"):
            columns[round(histogram.get_start_time_stamp() - base)].add(histogram)
    found = {round(column["start_ns"] / 1e6): column for column in line["columns"]}
    # A log's first columns may be without any response, and then have no line.
    expect("time lines", f"attempt {line['attempt']} columns", sorted(found), sorted(columns))
    rows = line["rows_ns"]
    for start, values in columns.items():
        column = found.get(start)
        if column is None:
            continue
        what = f"attempt {line['attempt']} at {start} ms"
        expect("time lines", f"{what} completed", column["completed"], values.total())
        expect("time lines", f"{what} p50", column["p50_ns"], values.percentile("50"))
        expect("time lines", f"{what} p99", column["p99_ns"], values.percentile("99"))
        expect("time lines", f"{what} max", column["max_ns"], values.max())
        cells = Counter()
        for value, n in values.counts.items():
            highest = values.unit.get_highest_equivalent_value(value)
            row = max(0, sum(bound <= highest for bound in rows) - 1)
            cells[min(row, len(rows) - 2)] += n
        expect("time lines", f"{what} cells", column["counts"], sorted(cells.items()))


    seconds = [second for phase in attempt.load["phases"] for second in phase["seconds"]]
    for key in ("planned", "errors"):
        total = sum(column[key] for column in line["columns"])
        expect("time lines", f"attempt {line['attempt']} {key}", total, sum(one[key] for one in seconds))


def names_of(enum):
    """The names of an enumeration of tags by their numbers."""
    source = (Path(__file__).parents[2] / "crates/kvant-base/src/tag.rs").read_text()
    body = source.split(f"pub enum {enum} {{")[1].split("\n    }")[0]
    return re.findall(r'= "(.*)"', body)


def check_layers(layers, attempt):
    """The costs of a step, from the samples of the recording within its measured time."""
    recording = Recording((attempt.path / "profile.kprof").read_bytes())
    phase = dict(attempt.steps())[layers["step"]]
    facts = attempt.facts
    begin = facts["start_ns"] + recording.started_wall_ns - facts["start_wall_ms"] * 10**6
    start, end = attempt.times(phase)
    start, end = max(start, begin), min(end, begin + recording.duration_ns)
    count = attempt.responses(start, end)
    activities, stages = names_of("Activity"), names_of("Stage")
    sums = defaultdict(Fraction)
    for kind, at, length, activity, stage, weight in recording.samples:
        at += begin
        if length:
            part = Fraction(max(0, min(end, at + length) - max(start, at)), length)
        else:
            part = Fraction(start <= at < end)
        if part and (kind in (CPU, ALLOC) or kind in WAITS):
            sums[activities[activity], stages[stage], kind] += weight * part
    sampled = sum(value for (_, _, kind), value in sums.items() if kind == CPU)
    used = attempt.spent(start, end, field("server_cpu_ns"))
    if used is None:
        used = recording.process_cpu_ns * (end - start) / recording.duration_ns
    if recording.has_cpu and used > sampled:
        sums["[not sampled]", "", CPU] += Fraction(used) - sampled
    found = {}
    for row in layers["rows"]:
        place = (row["activity"], row["stage"])
        found[(*place, CPU)] = row["cpu_ns"]
        found[(*place, ALLOC)] = row["allocated_bytes"]
        by_name = dict(row["waits_ns"])
        found.update({(*place, kind): by_name.get(name, 0) for kind, name in WAITS.items()})
    for key in sorted(set(found) | set(sums)):
        what = f"attempt {layers['attempt']} {layers['step']} {key}"
        expect("layers", what, found.get(key, 0), float(sums.get(key, 0)) / count)


def main():
    directory = Path(sys.argv[1])
    report = json.loads((directory / "report.json").read_text())
    run = json.loads((directory / "run.json").read_text())
    journal = [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]
    expect("run", "run", report["run"], run)
    valid = defaultdict(list)
    for facts in journal:
        if facts["verdict"]["verdict"] == "valid":
            valid[facts["case"]].append(Attempt(directory, facts))
    numbers = {a.facts["number"]: a for attempts in valid.values() for a in attempts}

    def searches(case):
        return [a for a in valid[case] if a.load["find_max"] is not None]

    expect("maxima", "cases", sorted(m["case"] for m in report["maxima"]), [c for c in sorted(valid) if searches(c)])
    for maximum in report["maxima"]:
        name = f"case {maximum['case']}"
        found = [a.load["find_max"] for a in searches(maximum["case"])]
        rates = [one["rate_max_per_s"] for one in found]
        expect_measured("maxima", f"{name} rate", maximum["rate_per_s"], rates)
        saturation = [one["saturation_per_s"] for one in found]
        expect_measured("maxima", f"{name} saturation", maximum["saturation_per_s"], saturation)
    steps = {case: {step for a in attempts for step, _ in a.steps()} for case, attempts in valid.items()}
    wanted = sorted((case, step) for case, of_case in steps.items() for step in of_case)
    expect("figures", "cases", sorted((f["case"], f["step"]) for f in report["figures"]), wanted)
    for figures in report["figures"]:
        check_figures(figures, valid[figures["case"]], run["cases"][figures["case"]]["kind"])
    for spectrum in report["spectra"]:
        check_spectrum(spectrum, valid[spectrum["case"]])
    for line in report["time_lines"]:
        check_time_line(line, numbers[line["attempt"]])
    for layers in report["layers"]:
        check_layers(layers, numbers[layers["attempt"]])
    profiled = {number for number, attempt in numbers.items() if (attempt.path / "profile.kprof").exists()}
    expect("layers", "cases", bool(report["layers"]), bool(profiled))

    points = Counter()
    for curve in report["curves"]:
        for point in curve["points"]:
            attempt = numbers[point["attempt"]]
            same = [
                phase for phase in attempt.load["phases"]
                if math.isclose(good_rate(phase), point["achieved_per_s"])
                and math.isclose(phase["rate"]["from_per_s"], point["offered_per_s"])
            ]
            # Phases of a search may have the same rates: one of them must be the point.
            found = tuple(point[name] for name in ("p50_ns", "p99_ns", "p999_ns", "max_ns"))
            wanted = set()
            for phase in same:
                values = values_of(phase["response"]["histogram"], phase["unanswered"]["histogram"])
                percentiles = [values.percentile(percent) for percent in ("50", "99", "99.9")]
                wanted.add((*percentiles, values.max()))
            expect("curves", f"point of attempt {point['attempt']}, {found} in {wanted}", found in wanted, True)
            points[point["attempt"]] += 1
    for number, attempt in numbers.items():
        steps = (attempt.load["find_max"] or {"points": []})["points"]
        flat = [
            p for index, p in enumerate(attempt.load["phases"])
            if p["rate"]["kind"] != "ramp" and p["completed"] > 0
            and not any(not one["is_met"] and one["disturbance"] for one in steps[index : index + 1])
        ]
        expect("curves", f"points of attempt {number}", points[number], len(flat))

    def value(attempt, figure):
        if figure == "rate_max":
            return attempt.load["find_max"] and attempt.load["find_max"]["rate_max_per_s"]
        first = next(iter(attempt.steps()), None)
        if first is None:
            return None
        phase = first[1]
        if figure == "goodput":
            return good_rate(phase)
        if figure == "cpu_per_request":
            return cpu_per_request(attempt, phase)
        kinds = (phase["response"]["histogram"], phase["unanswered"]["histogram"])
        return values_of(*kinds).percentile(figure[1:])

    def is_shown(attempts, figure):
        if not re.fullmatch(r"p[0-9.]+", figure):
            return True
        firsts = [next(iter(attempt.steps()), None) for attempt in attempts]
        return is_mostly_servers([first[1] for first in firsts if first is not None], float(figure[1:]))

    def case_of(subject, cell, workload, phase):
        # A sweep has no axes that do not concern it.
        named = lambda cell: [one for one in cell if one]
        key = (subject, named(cell), workload, phase)
        return next(c["id"] for c in run["cases"] if (c["subject"], named(c["cell"]), c["workload"], c["phase"]) == key)

    for comparison in report["comparisons"]:
        place = (comparison["cell"], comparison["workload"], comparison["phase"])
        base = valid[case_of(comparison["base"], *place)]
        other = valid[case_of(comparison["other"], *place)]
        ratios = []
        if not (is_shown(base, comparison["figure"]) and is_shown(other, comparison["figure"])):
            base = []
        for a in other:
            for b in base:
                if a.facts["repeat"] == b.facts["repeat"]:
                    of_a, of_b = value(a, comparison["figure"]), value(b, comparison["figure"])
                    if of_a is not None and of_b:
                        ratios.append(of_a / of_b)
        what = f"{comparison['other']}/{comparison['base']} {comparison['figure']}"
        expect_measured("comparisons", what, comparison["ratio"], ratios)
    for sweep in report["sweeps"]:
        for cell, found in sweep["cells"]:
            case = case_of(sweep["subject"], cell, sweep["workload"], sweep["phase"])
            values = [value(a, sweep["figure"]) for a in valid[case] if is_shown(valid[case], sweep["figure"])]
            expect_measured("sweeps", f"{sweep['figure']} {cell}", found, values)

    for problem in problems[:40]:
        print(problem)
    print(", ".join(f"{name}: {count}" for name, count in sorted(checked.items())), "figures compared")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
