"""CPU time per request of `kvant load` against wrk: closed loop, same server, one core each."""

import os
import statistics

import harness

GOALS = {"static": 1.0, "script": 0.9, "native": 1.2}
MEANS = {
    "static": "the same GET each time, against wrk's",
    "script": "put.lua, against wrk with put.lua",
    "native": "--workload put, against wrk's static request",
}


def add_arguments(parser):
    parser.add_argument("--repeats", type=int, default=7, help="rounds (7)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a run (3)")
    parser.add_argument("--connections", type=int, default=64, help="(64)")


def variants(settings):
    """Maps a name to a function that loads a server and returns requests and CPU seconds."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "put.lua")
    wrk = lambda *options: lambda url: harness.run_wrk(
        settings.client_core, settings.seconds, settings.connections, url, *options)

    def kvant(*options):
        def drive(url):
            result, cpu_s = harness.run_load(settings.kvant, settings.client_core, settings.seconds,
                                             settings.connections, url, "-R0", *options)
            outcome = result["phases"][0]
            if sum(outcome["errors"].values()):
                raise harness.BenchError(f"kvant load met errors: {outcome['errors']}")
            return outcome["completed"], cpu_s
        return drive

    return {
        "wrk static": wrk(), "kvant static": kvant(),
        "wrk script": wrk("-s", script), "kvant script": kvant("-s", script),
        "kvant native": kvant("--workload", "put", "--keys", "1M", "--value-bytes", "12"),
    }


def measure(settings):
    runs = {name: [] for name in variants(settings)}
    rates = {name: [] for name in runs}
    with harness.server(str(settings.server_core), lambda port: [harness.floor_program(), str(port)]) as (port, _):
        url = f"http://127.0.0.1:{port}/v0/status"
        for round_number in range(settings.repeats + 1):
            for name, drive in variants(settings).items():
                # The native workload adds its own path.
                requests, cpu_s = drive(f"http://127.0.0.1:{port}" if name == "kvant native" else url)
                if round_number > 0:  # the first round warms up
                    runs[name].append(cpu_s * 1e6 / requests)
                    rates[name].append(requests / settings.seconds)
            harness.note(f"round {round_number}/{settings.repeats}")
    return {"cpu_us": runs, "rates": rates}


def show(result):
    cpu_us = result["cpu_us"]
    print(f"\n{'generator':14} {'CPU us/request':>24} {'requests/s':>12}")
    for name, values in cpu_us.items():
        print(f"{name:14} {harness.spread(values):>24} {statistics.median(result['rates'][name]):12,.0f}")
    print(f"\n{'':14} {'x wrk, rounds':>24} {'goal':>6}")
    for kind, peer in (("static", "wrk static"), ("script", "wrk script"), ("native", "wrk static")):
        ratios = [ours / theirs for ours, theirs in zip(cpu_us[f"kvant {kind}"], cpu_us[peer])]
        print(f"{kind:14} {harness.spread(ratios):>24} {GOALS[kind]:6.1f}  {MEANS[kind]}")
