"""The profiler's cost: not built, off, and on with all events, at one rate, in interleaved pairs.

Two comparisons, each of pairs of runs in random order: off against on, in the same process; and off
against a server built without the profiler (`--no-default-features`), both filled equally.

CPU time of off against on is also compared in short windows of one long load, which differ less than
runs: flushes, compactions and other guests of the host change it by more than the profiler costs.

Pairs with too much stolen time are repeated, or dropped and counted; their figures are not used.
"""

import http.client
import math
import os
import random
import statistics
import subprocess
import threading
import time

import harness
import peers
import procfs
import under_test

CORES = ("0", "1")
THREADS = 1
WORKLOADS = {
    "get": ["--workload", "get"],
    "put": ["--workload", "put", "--value-bytes", "12"],
}
# How often a disturbed pair of runs is repeated before it is dropped.
PAIR_TRIES_MAX = 4
# A recording starts this long before the load and ends this long after it.
AROUND_S = 0.5
# A window, and the time before it, in which the recording starts and work of the last one ends.
WINDOW_S, BEFORE_WINDOW_S = 1.5, 0.4
# The permitted increase of CPU time per request.
ON_MORE, OFF_MORE = 0.02, 0.01
# Two-sided 95 % quantiles of Student's distribution by degrees of freedom, rounded up between.
STUDENT_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05, 39: 2.02, 59: 2.00, 119: 1.98}


def add_arguments(parser):
    parser.add_argument("--pairs", type=int, default=20, help="of each comparison and workload (20)")
    parser.add_argument("--windows", type=int, default=100, help="pairs of windows of off against on, for each workload (100)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a run (3)")
    parser.add_argument("--rate", type=int, default=30_000, help="requests a second (30000)")
    parser.add_argument("--connections", type=int, default=64, help="(64)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="(all, separated by commas)")
    parser.add_argument("--comparisons", default="on,off", help="`on`: on against off; `off`: off against a build without (on,off)")
    parser.add_argument("--events", default="cpu,alloc,lock", help="what is recorded (cpu,alloc,lock)")
    parser.add_argument("--sampling", default="timer", choices=("timer", "perf"), help="of CPU time (timer)")
    parser.add_argument("--plain", default=os.path.join(peers.REPOSITORY, "target/plain/release/kvant"),
                        help="the binary without the profiler; built when it is missing (target/plain/release/kvant)")
    parser.add_argument("--seed", type=int, default=1, help="of the order within pairs (1)")


class Plain(under_test.Kvant):
    """The server built without the profiler."""

    name = "kvant-plain"

    def build(self):
        if not os.access(self.settings.plain, os.X_OK):
            # Also without frame pointers, which are part of the profiler's cost.
            without = os.environ | {"RUSTFLAGS": "-Cforce-frame-pointers=no", "CFLAGS": ""}
            subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "kvant", "--no-default-features", "--target-dir",
                            os.path.join(peers.REPOSITORY, "target/plain")], cwd=peers.REPOSITORY, check=True, env=without)

    def command(self):
        return [self.settings.plain, *super().command()[1:]]


class Recording:
    """Records a profile of the server during the block.

    Threads: its own thread waits for the recording.
    """

    def __init__(self, settings, server, seconds):
        self.server, self.seconds = server, seconds
        self.query = f"event={settings.events}" + (f"&engine={settings.sampling}" if "cpu" in settings.events else "")
        # The server must not resolve names: that would be part of the next measurement.
        self.known = ",".join(procfs.build_ids(server.process.pid))
        self.bytes, self.failure = None, None
        self.thread = threading.Thread(target=self._fetch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()

    def _fetch(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=self.seconds + 60)
            connection.request("POST", f"/v0/profile?{self.query}&duration={self.seconds * 1000:.0f}ms&format=kprof"
                               f"&known={self.known}")
            response = connection.getresponse()
            body = response.read()
            connection.close()
            if response.status != 200:
                raise harness.BenchError(f"the profile got {response.status}: {body[:200]!r}")
            self.bytes = len(body)
        except Exception as error:  # raised by the thread that waits
            self.failure = error


def measure(settings):
    wanted = settings.comparisons.split(",")
    order = random.Random(settings.seed)
    kvant = under_test.Kvant(settings, defaults={"sync": "os", "selectors": "1"})
    servers = [kvant]
    if "off" in wanted:
        plain = Plain(settings, defaults={"sync": "os", "selectors": "1"})
        servers.append(plain)
    result = {"serve_options": kvant.options(), "rate": settings.rate, "pairs": [], "left_out": 0, "windows": []}
    with under_test.running(*servers):
        for server in servers:
            under_test.fill(settings, server, settings.keys)
        for workload in settings.workloads.split(","):
            if "on" in wanted and settings.windows:
                result["windows"] += _windows(settings, kvant, workload, order)
            for server in servers:
                _run(settings, server, workload, False)
            for number in range(1, settings.pairs + 1):
                for comparison in wanted:
                    sides = {"on": [("off", kvant, False), ("on", kvant, True)]}.get(
                        comparison, [("without", servers[-1], False), ("off", kvant, False)])
                    runs = _pair(settings, f"{workload} {comparison} {number}/{settings.pairs}", workload, sides, order)
                    if runs is None:
                        result["left_out"] += 1
                    else:
                        result["pairs"].append({"comparison": comparison, "workload": workload} | runs)
    return result


def _pair(settings, what, workload, sides, order):
    """The runs of both sides by name; `None` if all tries were disturbed."""
    for _ in range(PAIR_TRIES_MAX):
        # The order is random, so that a machine that changes its speed favours neither.
        runs = {side: _run(settings, server, workload, is_on) for side, server, is_on in order.sample(sides, 2)}
        stolen_part = max(run["stolen_part"] for run in runs.values())
        if stolen_part <= under_test.STOLEN_PART_MAX:
            harness.note(f"{what}: " + ", ".join(f"{runs[side]['cpu_us']:.2f} us {side}" for side, _, _ in sides))
            return runs
        harness.note(f"{what}: {stolen_part:.1%} of the time were stolen")
    return None


def _load_options(settings, workload):
    return [f"-R{settings.rate}", "--warmup", "500ms", *WORKLOADS[workload], "--keys", str(settings.keys)]


def _windows(settings, server, workload, order):
    """Pairs of windows, off and on, in random order. Drops and counts those with stolen time."""
    server.settle()
    pairs, disturbed = [], 0
    # Includes the time to deliver recordings.
    seconds = math.ceil(settings.windows * 2 * (WINDOW_S + 2 * BEFORE_WINDOW_S)) + 10
    load_run = []
    load = threading.Thread(target=lambda: load_run.append(
        under_test.drive(settings, server, settings.connections, seconds, *_load_options(settings, workload))), daemon=True)
    load.start()
    time.sleep(2)
    for _ in range(settings.windows):
        pair = {"workload": workload}
        for side in order.sample(["off", "on"], 2):
            pair[side] = _window(settings, server, side == "on")
        if max(pair["off"]["stolen_part"], pair["on"]["stolen_part"]) <= under_test.STOLEN_PART_MAX:
            pairs.append(pair)
        else:
            disturbed += 1
    load.join()
    if not load_run:
        raise harness.BenchError("the load of the windows failed")
    harness.note(f"{workload}: {len(pairs)} pairs of windows, {disturbed} left out; the load kept "
                 f"{load_run[0]['achieved']:,.0f} of {settings.rate:,} requests a second")
    if load_run[0]["achieved"] < 0.98 * settings.rate:
        raise harness.BenchError("the rate was not kept: CPU time a request would be wrong")
    return pairs


def _window(settings, server, is_on):
    if not is_on:
        time.sleep(BEFORE_WINDOW_S)
        return _watch(settings, server)
    with Recording(settings, server, WINDOW_S + 2 * BEFORE_WINDOW_S) as recording:
        time.sleep(BEFORE_WINDOW_S)
        figures = _watch(settings, server)
    if recording.failure:
        raise recording.failure
    return figures


def _watch(settings, server):
    stolen_part, started_s, cpu_before_ns = procfs.watch_stolen(), time.monotonic(), procfs.cpu_ns(server.process.pid)
    time.sleep(WINDOW_S)
    lasted_s, cpu_ns = time.monotonic() - started_s, procfs.cpu_ns(server.process.pid) - cpu_before_ns
    return {"cpu_us": cpu_ns / 1e3 / (settings.rate * lasted_s), "stolen_part": stolen_part()}


def _run(settings, server, workload, is_on):
    server.settle()
    options = _load_options(settings, workload)
    drive = lambda: under_test.drive(settings, server, settings.connections, settings.seconds, *options)
    if not is_on:
        time.sleep(AROUND_S)
        return drive()
    # Includes the generator's start and warm-up.
    with Recording(settings, server, settings.seconds + 4 * AROUND_S + 1) as recording:
        time.sleep(AROUND_S)
        run = drive()
    if recording.failure:
        raise recording.failure
    return run | {"recording_bytes": recording.bytes}


def interval(ratios):
    """The geometric mean of ratios and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    freedom = len(logs) - 1
    factor = next((value for degrees, value in sorted(STUDENT_95.items(), reverse=True) if degrees <= freedom), 12.71)
    half = factor * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def show(result, _settings):
    print(f"{result['rate']:,} requests a second. Geometric means of the pairs' ratios with their 95 % intervals; medians beside them.\n")
    rows, verdicts = [], []
    for workload in dict.fromkeys(pair["workload"] for pair in result["windows"]):
        pairs = [pair for pair in result["windows"] if pair["workload"] == workload]
        _compare(rows, verdicts, f"{workload}, windows", "CPU us", pairs, "on", "off", lambda run: run["cpu_us"], ON_MORE)
    for comparison, workload in dict.fromkeys((pair["comparison"], pair["workload"]) for pair in result["pairs"]):
        pairs = [pair for pair in result["pairs"] if (pair["comparison"], pair["workload"]) == (comparison, workload)]
        base, other = ("off", "on") if comparison == "on" else ("without", "off")
        figures = {
            "CPU us": lambda run: run["cpu_us"],
            "p50 us": lambda run: run["response_all"]["p50"] / 1e3,
            "p99 us": lambda run: run["response_all"]["p99"] / 1e3,
            "p99.9 us": lambda run: run["response_all"]["p99_9"] / 1e3,
        }
        for name, figure in figures.items():
            more = {"CPU us": ON_MORE if comparison == "on" else OFF_MORE, "p99.9 us": None}.get(name, math.inf)
            _compare(rows, verdicts, workload, name, pairs, other, base, figure, more)
        sizes = [pair["on"]["recording_bytes"] for pair in pairs if comparison == "on"]
        if sizes:
            verdicts.append(f"{'':12}  {workload}: a recording has {statistics.median(sizes) / 1024:.0f} KiB")
    print(harness.markdown(["what", "pairs", "mean ratio", "95 %", "median ratio", "this side", "base"], rows))
    print(f"\nLeft out: {result['left_out']} pairs of runs, in which other guests of the host had more than {under_test.STOLEN_PART_MAX:.0%} "
          f"of this machine's time in each of {PAIR_TRIES_MAX} tries.")
    print("\n" + "\n".join(verdicts))


def _compare(rows, verdicts, title, name, pairs, other, base, figure, more):
    """A row and a verdict: at most `more`, or (`None`) not significantly more; none if infinite."""
    ratios = [figure(pair[other]) / figure(pair[base]) for pair in pairs]
    mean, low, high = interval(ratios)
    rows.append([f"{title}: {other} / {base}, {name}", str(len(pairs)), f"{mean:.3f}", f"{low:.3f}–{high:.3f}",
                 f"{statistics.median(ratios):.3f}", *(f"{statistics.median(figure(pair[side]) for pair in pairs):.2f}" for side in (other, base))])
    found = f"{mean - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%})"
    if more is None:
        verdicts.append(harness.verdict(f"{title}: {name} of {other} not significantly above {base}", low <= 1, found))
    elif more < math.inf:
        verdicts.append(harness.verdict(f"{title}: {other} costs at most {more:.0%} more than {base}", mean <= 1 + more, found))
