"""The generator's send lag and latency floor, and its error against a server of known latency."""

import statistics
import subprocess

import harness

DELAYS_US = (1_000, 5_000, 20_000)
PERCENTILES = ("p50", "p99")
# A sleeping thread must be woken; a polling one need not.
SPINS = ("20us", "always")


def add_arguments(parser):
    parser.add_argument("--repeats", type=int, default=5, help="rounds (5)")
    parser.add_argument("--seconds", type=int, default=5, help="length of a run (5)")
    parser.add_argument("--connections", type=int, default=64, help="(64)")


def measure(settings):
    result = {"max_rate": [], "lag": [], "floor": {spin: [] for spin in SPINS}, "known": {str(delay): [] for delay in DELAYS_US}}

    def load(url, connections, *options):
        outcomes, _ = harness.run_load(settings.kvant, settings.client_core, settings.seconds, connections, url, *options)
        return outcomes["phases"][0]

    floor, known = harness.floor_program(), harness.known_latency_program()
    for round_number in range(1, settings.repeats + 1):
        with harness.server(str(settings.server_core), lambda port: [floor, str(port)]) as (port, _):
            url = f"http://127.0.0.1:{port}/v0/status"
            max_rate = load(url, settings.connections, "-R0")["rate_achieved_per_s"]
            result["max_rate"].append(max_rate)
            half = load(url, settings.connections, f"-R{int(max_rate / 2)}")
            result["lag"].append({name: half["send_lag"][f"{name}_ns"] for name in ("p50", "p99", "p99_9", "max")}
                                 | {"achieved": half["rate_achieved_per_s"]})
            for spin in SPINS:
                slow = load(url, 1, "-R1000", "--spin", spin)
                result["floor"][spin].append({name: slow["response"][f"{name}_ns"] for name in ("p50", "p99", "p99_9", "max")})
        for delay in DELAYS_US:
            command = lambda port, delay=delay: [known, str(port), str(delay)]
            with harness.server(str(settings.server_core), command, subprocess.PIPE) as (port, process):
                outcome = load(f"http://127.0.0.1:{port}/", 1, f"-R{int(0.5e6 / delay)}", "--spin", "always")
                process.stdin.close()
                server = dict(pair.split("=") for pair in process.stdout.read().split())
            result["known"][str(delay)].append(
                {name: {"server_ns": int(server[f"{name}_ns"]), "ours_ns": outcome["response"][f"{name}_ns"]}
                 for name in PERCENTILES})
        harness.note(f"round {round_number}/{settings.repeats}")
    return result


def show(result):
    us = lambda values: harness.spread([value / 1e3 for value in values], " us", 1)
    print(f"\nmaximum, closed loop: {harness.spread(result['max_rate'], digits=0)} requests/s")
    print("at half of it:")
    for name in ("p50", "p99", "p99_9", "max"):
        goal = "   goal: < 50 us" if name == "p99" else ""
        print(f"  send lag {name:6} {us([run[name] for run in result['lag']]):>28}{goal}")
    print(f"  achieved {harness.spread([run['achieved'] for run in result['lag']], digits=0)} requests/s")
    for spin, runs in result["floor"].items():
        print(f"1,000 requests/s on one connection to a server that responds at once, --spin {spin}:")
        for name in ("p50", "p99", "p99_9", "max"):
            goal = "   goal: < 100 us" if name == "p50" else ""
            print(f"  response {name:6} {us([run[name] for run in runs]):>28}{goal}")
    print("against a server of known latency, one connection, --spin always (the server's own figure is from read to written):")
    for delay, runs in result["known"].items():
        for name in PERCENTILES:
            server_ns = statistics.median(run[name]["server_ns"] for run in runs)
            ours_ns = statistics.median(run[name]["ours_ns"] for run in runs)
            apart_ns = [run[name]["ours_ns"] - run[name]["server_ns"] for run in runs]
            allowed_us = max(20, server_ns / 1e3 * 0.01)
            print(f"  {int(delay) / 1e3:4.0f} ms {name}: server {server_ns / 1e3:9.1f} us, ours {ours_ns / 1e3:9.1f} us, apart "
                  f"{us(apart_ns)}   goal: < {allowed_us:.0f} us")
