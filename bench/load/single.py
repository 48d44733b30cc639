"""One connection at a constant rate: PUT and GET over a million records, beside `/v0/status`."""

import os
import statistics
import tempfile
import time

import harness

# Requests per second on one connection in the reports that the goals come from.
RATES = {"put": (20_000, 30_000), "get": (15_000, 20_000)}
# If one connection reaches less here: this share of the closed-loop maximum of /v0/status.
SHARE_OF_MAX = 0.7
FSYNC_COUNT = 4_000


def add_arguments(parser):
    parser.add_argument("--repeats", type=int, default=5, help="rounds (5)")
    parser.add_argument("--seconds", type=int, default=20, help="length of a PUT or GET run (20)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000)")
    parser.add_argument("--server-cores", default="0", help="cores of the server, as taskset takes them (0)")
    parser.add_argument("--data-dir", help="for the database (the system's temporary directory)")


def measure(settings):
    with tempfile.TemporaryDirectory(prefix="kvant-bench-", dir=settings.data_dir) as directory:
        result = {"placement": f"server on {settings.server_cores}, generator on {settings.client_core}",
                  "maximum": [], "runs": [], "always": []}
        command = lambda port: [settings.kvant, "serve", "--listen", f"127.0.0.1:{port}", "--selectors", "1",
                                "--data", os.path.join(directory, "data")]
        with harness.server(settings.server_cores, command) as (port, _):
            url = f"http://127.0.0.1:{port}"
            harness.run(settings.client_core, [settings.kvant, "load", "fill", "--keys", str(settings.keys), "--quiet", url], 300)
            for round_number in range(1, settings.repeats + 1):
                _round(settings, url, result)
                harness.note(f"round {round_number}/{settings.repeats}")
        always = lambda port: [*command(port), "--sync", "always"]
        with harness.server(settings.server_cores, always) as (port, _):
            for _ in range(settings.repeats):
                result["always"].append(_round_of_fsyncs(settings, f"http://127.0.0.1:{port}", directory))
        return result


def _load(settings, url, seconds, *options):
    outcomes, _ = harness.run_load(settings.kvant, settings.client_core, seconds, 1, url, *options)
    return outcomes["phases"][0]


def _figures(outcome, rate):
    return {"rate": rate} | harness.figures(outcome)


def _round(settings, url, result):
    maximum = _load(settings, url, 3, "-R0", "--workload", "status")["rate_achieved_per_s"]
    result["maximum"].append(maximum)
    for kind, rates in RATES.items():
        for named in rates:
            rate = int(min(named, maximum * SHARE_OF_MAX))
            keys = ["--keys", str(settings.keys), "--key-dist", "uniform"]
            status = _load(settings, url, max(settings.seconds // 2, 5), f"-R{rate}", "--workload", "status")
            run = _load(settings, url, settings.seconds, f"-R{rate}", "--workload", kind, *keys)
            result["runs"].append({"kind": kind, "named": named, "status": _figures(status, rate), "run": _figures(run, rate)})


def _round_of_fsyncs(settings, url, directory):
    """The disk's own fsync, then PUTs with one fsync each at half of the disk's rate."""
    taken_ns = []
    with open(os.path.join(directory, "fsync-probe"), "wb", buffering=0) as file:
        for _ in range(FSYNC_COUNT):
            file.write(b"x" * 64)
            start_ns = time.perf_counter_ns()
            os.fdatasync(file.fileno())
            taken_ns.append(time.perf_counter_ns() - start_ns)
    taken_ns.sort()
    rate = max(int(0.5e9 / statistics.mean(taken_ns)), 1)
    rate = min(rate, 5_000)
    run = _load(settings, url, settings.seconds, f"-R{rate}", "--workload", "put", "--keys", str(settings.keys))
    return {"fsync_p50_ns": taken_ns[len(taken_ns) // 2], "fsync_p99_9_ns": taken_ns[int(len(taken_ns) * 0.999)],
            "run": _figures(run, rate)}


def show(result):
    print(f"\n{result['placement']}; /v0/status, closed loop: {harness.spread(result['maximum'], digits=0)} requests/s")
    print(f"{'':22}{'rate':>7} " + "".join(f"{name:>24}" for name in harness.PERCENTILES) + f"{'p99.9 x status':>24}")
    for kind, rates in RATES.items():
        for named in rates:
            runs = [run for run in result["runs"] if (run["kind"], run["named"]) == (kind, named)]
            rate = statistics.median(run["run"]["rate"] for run in runs)
            for label, side in ((f"{kind} ({named:,}/s)", "run"), ("  status beside it", "status")):
                line = f"{label:22}{rate:7.0f} "
                for name in harness.PERCENTILES:
                    line += f"{harness.spread([run[side]['response'][name] / 1e6 for run in runs], ' ms'):>24}"
                if side == "run":
                    ratios = [run["run"]["response"]["p99_9"] / run["status"]["response"]["p99_9"] for run in runs]
                    line += f"{harness.spread(ratios):>24}"
                print(line)
    print("goals: p99 < 0.3 ms, p99.9 < 1 ms and < 3 x that of status")
    ms = lambda values: harness.spread([value / 1e6 for value in values], " ms")
    print(f"--sync always: fsync p99.9 {ms([run['fsync_p99_9_ns'] for run in result['always']])}, PUT at "
          f"{statistics.median(run['run']['rate'] for run in result['always']):.0f}/s p99.9 "
          f"{ms([run['run']['response']['p99_9'] for run in result['always']])}, goal: < 3 x")
