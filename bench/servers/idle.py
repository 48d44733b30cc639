"""100 active connections with and without 9,900 others that are idle or slow.

Each round measures the active ones alone, then beside the others, on the same server: GETs at a
constant rate. The others send one request and are then idle; a part of them sends a head byte by
byte instead, and reconnects whenever the server closes the connection.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import harness
import procfs
import under_test

CORES = ("0", "1")
THREADS = 1
GOAL_APART = 0.1
END_TIMEOUT_S = 30
# First source addresses 127.0.0.x, one per round, because closed ports are unusable for a minute.
SOURCES_FIRST, SOURCES_BY_ROUND, SOURCES_END = 10, 5, 250
FIGURES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
SERVER_FIGURES = {"p99": 0.99, "p99_9": 0.999}


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=5, help="(5)")
    parser.add_argument("--seconds", type=int, default=10, help="length of a run (10)")
    parser.add_argument("--active", type=int, default=100, help="active connections (100)")
    parser.add_argument("--rate", type=int, default=20_000, help="GETs a second over the active connections (20000)")
    parser.add_argument("--others", type=int, default=9_900, help="idle and slow connections (9900)")
    parser.add_argument("--slow", type=int, default=990, help="slow ones among them (990)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000)")


def measure(settings):
    kvant = under_test.Kvant(settings)
    result = {"serve_options": kvant.options(), "rounds": [], "settings": {
        name: getattr(settings, name) for name in ("active", "rate", "others", "slow")}}
    with under_test.running(kvant):
        under_test.fill(settings, kvant, settings.keys)
        _drive(settings, kvant)  # fills the caches before memory is measured
        for round_number in range(1, settings.rounds + 1):
            alone = under_test.undisturbed("alone", lambda: _drive(settings, kvant))
            rss_before_kib = procfs.rss_kib(kvant.process.pid)
            with _crowd(settings, kvant, round_number) as others:
                kvant.settle()
                rss_with_kib = procfs.rss_kib(kvant.process.pid)
                beside = under_test.undisturbed("beside the others", lambda: _drive(settings, kvant))
            kvant.settle()
            rss_after_kib = procfs.rss_kib(kvant.process.pid)
            result["rounds"].append({"alone": alone, "beside": beside, "others": others, "rss_before_kib": rss_before_kib,
                                     "rss_with_kib": rss_with_kib, "rss_after_kib": rss_after_kib})
            harness.note(f"round {round_number}/{settings.rounds}: p99 alone {alone['response_all']['p99'] / 1e6:.3f} ms, "
                         f"beside {beside['response_all']['p99'] / 1e6:.3f} ms")
    return result


def _drive(settings, kvant):
    buckets = kvant.phase_buckets()["get", "total"]
    run = under_test.drive(settings, kvant, settings.active, settings.seconds, f"-R{settings.rate}", "--warmup", "1s",
                           "--workload", "get", "--keys", str(settings.keys), prefix=under_test.priority())
    after = kvant.phase_buckets()["get", "total"]
    server = {name: under_test.quantile_s(buckets, after, share) for name, share in SERVER_FIGURES.items()}
    return run | {"server": server}


@contextlib.contextmanager
def _crowd(settings, kvant, round_number):
    """Opens the others during the block. Yields a dict that has their results afterwards."""
    rounds = (SOURCES_END - SOURCES_FIRST) // SOURCES_BY_ROUND
    source = SOURCES_FIRST + (round_number - 1) % rounds * SOURCES_BY_ROUND
    command = ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", settings.client_cores, sys.executable,
               os.path.join(os.path.dirname(os.path.abspath(__file__)), "crowd.py"),
               str(kvant.port), str(settings.others), str(settings.slow), str(source)]
    started = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = {}
    try:
        if process.stdout.readline().strip() != "open":
            raise harness.BenchError(f"the idle connections: {process.stderr.read()[-500:]}")
        found["opened_in_s"] = time.monotonic() - started
        yield found
        output, errors = process.communicate(timeout=END_TIMEOUT_S)
        if process.returncode != 0:
            raise harness.BenchError(f"the idle connections: {errors[-500:]}")
        found.update(json.loads(output))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def show(result, _settings):
    asked, rounds = result["settings"], result["rounds"]
    print(f"{asked['active']} active connections, {asked['rate']:,} GETs a second; others: {asked['others']:,}, of them "
          f"{asked['slow']:,} slow. Medians (least–largest); times in milliseconds.\n")
    rows, verdicts = [], []
    readings = {text: lambda run, name=name: run["response_all"][name] / 1e6 for name, text in FIGURES.items()}
    readings["server CPU us/request"] = lambda run: run["cpu_us"]
    for text, read in readings.items():
        ratios = [read(a_round["beside"]) / read(a_round["alone"]) for a_round in rounds]
        rows.append([text, *(harness.spread([read(a_round[side]) for a_round in rounds], digits=3)
                             for side in ("alone", "beside")), harness.spread(ratios)])
        ratio = statistics.median(ratios)
        verdicts.append(harness.verdict(f"{text}: within {GOAL_APART:.0%}", ratio <= 1 + GOAL_APART, f"{ratio:.2f} x"))
    print(harness.markdown(["", "alone", "beside the others", "ratio of rounds"], rows))
    for name in SERVER_FIGURES:
        found = [harness.spread([a_round[side]["server"][name]["reckoned_s"] * 1e3 for a_round in rounds], digits=3)
                 for side in ("alone", "beside")]
        print(f"{FIGURES[name]} by the server, reckoned within its bucket: alone {found[0]}, beside {found[1]}")
    lags = [harness.spread([a_round[side]["send_lag"]["p99_9"] / 1e6 for a_round in rounds], digits=3) for side in ("alone", "beside")]
    print(f"the generator's own lateness, p99.9: alone {lags[0]}, beside {lags[1]}")
    first = rounds[0]
    grown_kib = first["rss_with_kib"] - first["rss_before_kib"]
    print(f"\nresident memory: {first['rss_before_kib'] / 1024:.0f} MiB before the others first came, "
          f"{first['rss_with_kib'] / 1024:.0f} with them: {grown_kib / asked['others']:.2f} KiB a connection; "
          f"{rounds[-1]['rss_after_kib'] / 1024:.0f} MiB after the last had gone")
    closed = {kind: sum(a_round["others"]["closed_by_server"][kind] for a_round in rounds) for kind in ("idle", "slow")}
    print(f"the server hung up on {closed['idle']:,} idle and {closed['slow']:,} slow connections, which came again; "
          f"{sum(a_round['others']['refused'] for a_round in rounds)} of their requests were refused")
    not_valid = sum(not a_round[side]["is_valid"] for a_round in rounds for side in ("alone", "beside"))
    print(f"not valid: {not_valid} of {2 * len(rounds)} runs\n")
    print("\n".join(verdicts))
