"""What the profiler costs: a build without it, off, and on with all events, at one offered rate, in interleaved pairs.

Two comparisons, each of pairs of runs in an order that changes by chance: off against on, in the same process; and off against a
server that was built without the profiler (`--no-default-features`), both up and filled alike. A run is a mix of GETs and PUTs.
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
import under_test

CORES = ("0", "1")
THREADS = 1
WORKLOADS = {
    "get": ["--workload", "get"],
    "put": ["--workload", "put", "--value-bytes", "12"],
}
# A recording begins this long before the load and ends as long after it.
AROUND_S = 0.5
# What CPU per request may grow by.
ON_MORE, OFF_MORE = 0.02, 0.01
# Two-sided 95 % of Student's distribution, by degrees of freedom; between two of them the larger one is taken.
STUDENT_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05, 39: 2.02, 59: 2.00, 119: 1.98}


def add_arguments(parser):
    parser.add_argument("--pairs", type=int, default=20, help="of each comparison and workload (20)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a run (3)")
    parser.add_argument("--rate", type=int, default=30_000, help="requests a second (30000)")
    parser.add_argument("--connections", type=int, default=64, help="(64)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="(all, separated by commas)")
    parser.add_argument("--comparisons", default="on,off", help="`on`: on against off; `off`: off against a build without (on,off)")
    parser.add_argument("--events", default="cpu,alloc,lock", help="what is recorded (cpu,alloc,lock)")
    parser.add_argument("--plain", default=os.path.join(peers.REPOSITORY, "target/plain/release/kvant"),
                        help="the binary without the profiler; built when it is missing (target/plain/release/kvant)")
    parser.add_argument("--seed", type=int, default=1, help="of the order within pairs (1)")


class Plain(under_test.Kvant):
    """The server that was built without the profiler."""

    name = "kvant-plain"

    def build(self):
        if not os.access(self.settings.plain, os.X_OK):
            # Nor frame pointers, which profiles need: they are part of the price.
            without = os.environ | {"RUSTFLAGS": "-Cforce-frame-pointers=no", "CFLAGS": ""}
            subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "kvant", "--no-default-features", "--target-dir",
                            os.path.join(peers.REPOSITORY, "target/plain")], cwd=peers.REPOSITORY, check=True, env=without)

    def command(self):
        return [self.settings.plain, *super().command()[1:]]


class Recording:
    """The server's profiler is on while the block runs.

    Threads: one of its own waits for the recording.
    """

    def __init__(self, server, seconds, events):
        self.server, self.seconds, self.events = server, seconds, events
        self.bytes, self.failure = None, None
        self.thread = threading.Thread(target=self._fetch, daemon=True)

    def __enter__(self):
        self.thread.start()
        time.sleep(AROUND_S)
        return self

    def __exit__(self, *_):
        self.thread.join()

    def _fetch(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=self.seconds + 60)
            connection.request("POST", f"/v0/profile?event={self.events}&duration={self.seconds * 1000:.0f}ms&format=kprof")
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            if answer.status != 200:
                raise harness.BenchError(f"the profile was answered {answer.status}: {body[:200]!r}")
            self.bytes = len(body)
        except Exception as error:  # told by the thread that waits
            self.failure = error


def measure(settings):
    wanted = settings.comparisons.split(",")
    order = random.Random(settings.seed)
    kvant = under_test.Kvant(settings, defaults={"sync": "os", "selectors": "1"})
    servers = [kvant]
    if "off" in wanted:
        plain = Plain(settings, defaults={"sync": "os", "selectors": "1"})
        servers.append(plain)
    result = {"serve_options": kvant.options(), "rate": settings.rate, "pairs": []}
    with under_test.running(*servers):
        for server in servers:
            under_test.fill(settings, server, settings.keys)
        for workload in settings.workloads.split(","):
            for server in servers:
                _run(settings, server, workload, False)
            for number in range(1, settings.pairs + 1):
                for comparison in wanted:
                    sides = {"on": [("off", kvant, False), ("on", kvant, True)]}.get(
                        comparison, [("without", servers[-1], False), ("off", kvant, False)])
                    pair = {"comparison": comparison, "workload": workload, "number": number}
                    # Who comes first is left to chance: a machine that changes its speed favours nobody.
                    for side, server, is_on in order.sample(sides, 2):
                        pair[side] = _run(settings, server, workload, is_on)
                    result["pairs"].append(pair)
                    (base, _, _), (other, _, _) = sides
                    harness.note(f"{workload} {comparison} {number}/{settings.pairs}: {pair[other]['cpu_us']:.2f} us {other}, "
                                 f"{pair[base]['cpu_us']:.2f} us {base}")
    return result


def _run(settings, server, workload, is_on):
    server.settle()
    options = [f"-R{settings.rate}", "--warmup", "500ms", *WORKLOADS[workload], "--keys", str(settings.keys)]
    drive = lambda: under_test.drive(settings, server, settings.connections, settings.seconds, *options)
    if not is_on:
        time.sleep(AROUND_S)
        return drive()
    # The warm-up and the start of the generator are within it.
    with Recording(server, settings.seconds + 4 * AROUND_S + 1, settings.events) as recording:
        run = drive()
    if recording.failure:
        raise recording.failure
    return run | {"recording_bytes": recording.bytes}


def interval(ratios):
    """Geometric mean of ratios, and the ends of its 95 % interval."""
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
            mean, low, high = interval([figure(pair[other]) / figure(pair[base]) for pair in pairs])
            median = statistics.median(figure(pair[other]) / figure(pair[base]) for pair in pairs)
            rows.append([f"{workload}: {other} / {base}, {name}", str(len(pairs)), f"{mean:.3f}", f"{low:.3f}–{high:.3f}", f"{median:.3f}",
                         *(f"{statistics.median(figure(pair[side]) for pair in pairs):.2f}" for side in (other, base))])
            if name == "CPU us":
                more = ON_MORE if comparison == "on" else OFF_MORE
                verdicts.append(harness.verdict(f"{workload}: {other} costs at most {more:.0%} more than {base}", mean <= 1 + more,
                                                f"{mean - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%})"))
            if name == "p99.9 us":
                verdicts.append(harness.verdict(f"{workload}: p99.9 of {other} not significantly above {base}", low <= 1,
                                                f"{mean - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%})"))
        sizes = [pair["on"]["recording_bytes"] for pair in pairs if comparison == "on"]
        if sizes:
            verdicts.append(f"{'':12}  {workload}: a recording has {statistics.median(sizes) / 1024:.0f} KiB")
    print(harness.markdown(["what", "pairs", "mean ratio", "95 %", "median ratio", "this side", "base"], rows))
    print("\n" + "\n".join(verdicts))
