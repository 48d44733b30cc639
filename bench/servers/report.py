"""Evaluates runs: medians, ratios within rounds, the table, and the comparison with the goals."""

import statistics

FLOOR = "epoll-floor"
JAVA = "one-nio-leveldb"
SUBJECT = "kvant"

# Goals for Kvant: at most this many times the floor, and this factor below Java (or no goal).
GOALS = {
    "status": (1.25, None),
    "get": (1.5, 2.5),
    "absent": (1.4, 3.0),
    "put": (1.6, 2.2),
    "delete": (1.6, 2.2),
}
# Kvant should need less CPU time than these in every operation.
CHEAPER_THAN = ["nginx", "redis"]
OTHERS_SHARE_WARNING = 0.1


def cpu_us(run):
    return run["cpu_ns"] / 1000 / run["requests"]


def cpu_us_with_later(run):
    return (run["cpu_ns"] + run["cpu_later_ns"]) / 1000 / run["requests"]


class Summary:
    """Runs by operation and server."""

    def __init__(self, runs):
        self.by_pair = {}
        for run in runs:
            self.by_pair.setdefault((run["operation"], run["server"]), []).append(run)
        self.operations = list(dict.fromkeys(run["operation"] for run in runs))
        self.servers = list(dict.fromkeys(run["server"] for run in runs))

    def runs(self, operation, server):
        return self.by_pair.get((operation, server), [])

    def ratio(self, operation, server, to):
        """CPU per request of `server` by that of `to`: median of the rounds' ratios, or `None`."""
        others = {run["round"]: cpu_us(run) for run in self.runs(operation, to)}
        ratios = [cpu_us(run) / others[run["round"]] for run in self.runs(operation, server) if run["round"] in others]
        return statistics.median(ratios) if ratios else None

    def rows(self):
        """One dict per operation and server, for the table and the `summary` in the JSON."""
        for operation in self.operations:
            for server in self.servers:
                runs = self.runs(operation, server)
                if not runs:
                    continue
                costs = [cpu_us(run) for run in runs]
                to_java = self.ratio(operation, JAVA, server)
                yield {
                    "operation": operation,
                    "server": server,
                    "requests_per_s": statistics.median(run["requests"] / run["duration_us"] * 1e6 for run in runs),
                    "p50_us": statistics.median(run["p50_us"] for run in runs),
                    "p99_us": statistics.median(run["p99_us"] for run in runs),
                    "cpu_us": statistics.median(costs),
                    "cpu_us_min": min(costs),
                    "cpu_us_max": max(costs),
                    "cpu_us_with_later": statistics.median(map(cpu_us_with_later, runs)),
                    "kernel_share": _median_known(run["kernel_share"] for run in runs),
                    "times_floor": self.ratio(operation, server, FLOOR),
                    "times_cheaper_than_java": to_java,
                    "core_busy_share": statistics.median(run["core_busy_share"] for run in runs),
                    "core_others_share": statistics.median(run["core_others_share"] for run in runs),
                    "failed_runs": sum(bool(run["problems"]) for run in runs),
                }


def _median_known(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


COLUMNS = [
    ("operation", "operation", "{}"),
    ("server", "server", "{}"),
    ("req/s", "requests_per_s", "{:,.0f}"),
    ("p50 us", "p50_us", "{:,.0f}"),
    ("p99 us", "p99_us", "{:,.0f}"),
    ("CPU us/request", "cpu_us", "{:.2f}"),
    ("min", "cpu_us_min", "{:.2f}"),
    ("max", "cpu_us_max", "{:.2f}"),
    ("with later work", "cpu_us_with_later", "{:.2f}"),
    ("of it kernel", "kernel_share", "{:.0%}"),
    ("x floor", "times_floor", "{:.2f}"),
    ("x cheaper than Java", "times_cheaper_than_java", "{:.2f}"),
    ("core busy", "core_busy_share", "{:.0%}"),
    ("others on core", "core_others_share", "{:.0%}"),
    ("failed runs", "failed_runs", "{}"),
]


def markdown(summary):
    lines = [
        "| " + " | ".join(title for title, _, _ in COLUMNS) + " |",
        "|" + "|".join("---" if name in ("operation", "server") else "---:" for _, name, _ in COLUMNS) + "|",
    ]
    for row in summary.rows():
        cells = ["–" if row[name] is None else form.format(row[name]) for _, name, form in COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def warnings(runs):
    """Caveats about the table."""
    lines = [f"FAILED {run['operation']} {run['server']} round {run['round']}: {problem}"
             for run in runs for problem in run["problems"]]
    noisy = sum(run["core_others_share"] > OTHERS_SHARE_WARNING for run in runs)
    if noisy:
        lines.append(f"NOISE in {noisy} of {len(runs)} runs something else took over {OTHERS_SHARE_WARNING:.0%} "
                     "of the server's core")
    return lines


def check(summary):
    """One line per goal: met, not met, or not measured."""
    for operation, (floor_most, java_least) in GOALS.items():
        yield _verdict(operation, f"at most {floor_most} x {FLOOR}", summary.ratio(operation, SUBJECT, FLOOR),
                       lambda ratio: ratio <= floor_most)
        if java_least is not None:
            yield _verdict(operation, f"at least {java_least} x cheaper than {JAVA}",
                           summary.ratio(operation, JAVA, SUBJECT), lambda ratio: ratio >= java_least)
        for peer in CHEAPER_THAN:
            yield _verdict(operation, f"cheaper than {peer}", summary.ratio(operation, SUBJECT, peer),
                           lambda ratio: ratio < 1)


def _verdict(operation, goal, ratio, is_met):
    if ratio is None:
        return f"not measured  {operation:7} {goal}"
    return f"{'met' if is_met(ratio) else 'NOT met':12}  {operation:7} {goal}: {ratio:.2f}"
