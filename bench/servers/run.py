#!/usr/bin/env python3
"""Compares the CPU time per request of Kvant and its peers, with wrk in a closed loop.

Server and generator are pinned to one core each. All servers run, filled, at the same time and take
turns in every round, so that changes of the machine's speed affect all of them. See ../README.md.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import load
import peers
import procfs
import report


def parse_arguments():
    names = [peer.name for peer in peers.PEERS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--servers", type=_names_of(names), default=names, help=f"default: {','.join(names)}")
    parser.add_argument("--operations", type=_names_of(peers.OPERATIONS), default=peers.OPERATIONS,
                        help=f"default: {','.join(peers.OPERATIONS)}")
    parser.add_argument("--repeats", type=_positive, default=5, help="rounds of each operation (5)")
    parser.add_argument("--seconds", type=_positive, default=5, help="length of a run (5)")
    parser.add_argument("--connections", type=_positive, default=64, help="(64)")
    parser.add_argument("--keys", type=_positive, default=1_000_000, help="keys that exist (1000000)")
    parser.add_argument("--server-core", type=int, default=0, help="(0)")
    parser.add_argument("--client-core", type=int, default=1, help="(1)")
    parser.add_argument("--kvant", default=os.path.join(peers.REPOSITORY, "target/release/kvant"),
                        help="its binary (target/release/kvant)")
    parser.add_argument("--java-options", default="-Xms1g -Xmx1g", help="('-Xms1g -Xmx1g')")
    parser.add_argument("--java-warm-up", type=_positive, default=8,
                        help="seconds of each operation before its first round (8)")
    parser.add_argument("--data-dir", help="for the servers' files while they run (the system's temporary directory)")
    parser.add_argument("--minutes-max", type=_positive, default=45, help="give up after this time (45)")
    parser.add_argument("--json", metavar="FILE", help="also write all runs, the summary and the machine's facts")
    parser.add_argument("--check", action="store_true", help="also compare with the goals; never changes the exit code")
    parser.add_argument("--from", dest="from_file", metavar="FILE", help="measure nothing: show such a file")
    return parser.parse_args()


def _names_of(known):
    def parse(text):
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)} (known: {', '.join(known)})")
        return [name for name in known if name in names]
    return parse


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return number


def usable_peers(settings):
    """The requested servers that can run here. Prints a line for each of the others."""
    usable = []
    for peer in peers.PEERS:
        if peer.name not in settings.servers:
            continue
        peer = peer(settings)
        reason = peer.missing()
        if reason:
            print(f"{peer.name}: skipped: {reason}", file=sys.stderr)
        else:
            usable.append(peer)
    return usable


def check_machine(settings):
    if not shutil.which("wrk"):
        sys.exit("no wrk (apt-get install wrk)")
    missing = {settings.server_core, settings.client_core} - os.sched_getaffinity(0)
    if missing:
        sys.exit(f"cores {sorted(missing)} are not ours to use")
    if settings.server_core == settings.client_core:
        sys.exit("server and client need a core each")


def measure_all(settings, usable, deadline):
    """Measures every operation in every round on each server in turn."""
    runs = []
    numbers = list(range(1, settings.keys + 1))
    keys_file = os.path.join(settings.directory, "keys")
    for operation in settings.operations:
        for round_number in range(settings.repeats + 1):
            # The same order for all servers of a round, and a new one in the next.
            random.Random(round_number).shuffle(numbers)
            with open(keys_file, "w") as file:
                file.writelines(f"{load.key_of(number)}\n" for number in numbers)
            for peer in usable:
                if time.monotonic() > deadline:
                    raise load.LoadError(f"not done after {settings.minutes_max} minutes")
                is_warm_up = round_number == 0
                seconds = peer.warm_up_s if is_warm_up else settings.seconds
                run = peer.measure(operation, round_number, keys_file, numbers, seconds)
                if not is_warm_up:
                    runs.append(run)
                    note(f"{operation} {round_number}/{settings.repeats} {peer.name}: "
                         f"{report.cpu_us(run):.2f} us/request {'; '.join(run['problems'])}")
    return runs


def measure(settings):
    check_machine(settings)
    deadline = time.monotonic() + settings.minutes_max * 60
    # The runner stays off the server's core; generators and builds inherit that.
    os.sched_setaffinity(0, {settings.client_core})
    settings.directory = tempfile.mkdtemp(prefix="kvant-bench-", dir=settings.data_dir)
    usable = usable_peers(settings)
    try:
        for peer in usable:
            note(f"{peer.name}: build, start, fill")
            peer.build()
            peer.start()
            peer.fill(range(1, settings.keys + 1))
            peer.check_filled()
            peer.settle()
        runs = measure_all(settings, usable, deadline)
        peak_rss_kib = {peer.name: procfs.peak_rss_kib(peer.process.pid) for peer in usable}
    finally:
        for peer in usable:
            peer.stop()
        shutil.rmtree(settings.directory)
    return {
        "machine": procfs.machine_facts(peers.REPOSITORY),
        "settings": {name: getattr(settings, name) for name in (
            "repeats", "seconds", "connections", "keys", "server_core", "client_core", "java_options", "java_warm_up")},
        "peak_rss_kib": peak_rss_kib,
        "runs": runs,
    }


def note(text):
    print(text, file=sys.stderr, flush=True)


def show(result, with_check):
    summary = report.Summary(result["runs"])
    machine, settings = result["machine"], result["settings"]
    print(f"{machine['cpu_model']}, {machine['cpu_count']} cores, Linux {machine['kernel']}, "
          f"commit {machine['commit']}, {machine['date']}")
    print(f"{settings['connections']} connections, {settings['keys']:,} keys, "
          f"medians of {settings['repeats']} interleaved runs of {settings['seconds']} s\n")
    print(report.markdown(summary))
    print("\npeak RSS: " + ", ".join(f"{name} {kib / 1024:.0f} MiB" for name, kib in result["peak_rss_kib"].items()))
    for line in report.warnings(result["runs"]):
        print(line)
    if with_check:
        print()
        for line in report.check(summary):
            print(line)


def main():
    settings = parse_arguments()
    # SIGTERM also runs the `finally` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    if settings.from_file:
        with open(settings.from_file) as file:
            result = json.load(file)
    else:
        try:
            result = measure(settings)
        except load.LoadError as error:
            sys.exit(f"failed: {error}")
    if settings.json:
        result["summary"] = list(report.Summary(result["runs"]).rows())
        os.makedirs(os.path.dirname(os.path.abspath(settings.json)), exist_ok=True)
        with open(settings.json, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    show(result, settings.check)
    if any(run["problems"] for run in result["runs"]):
        sys.exit("some runs failed: see FAILED above")


if __name__ == "__main__":
    main()
