#!/usr/bin/env python3
"""Limits of servers, Kvant's behaviour beyond them, and the cost of profiling. See ../README.md.

`breaking-points`: the highest rates of six workloads, against one-nio with LevelDB.
`many-connections`: 10,000 requests per second over 1,024 connections. `overload`: up to five times
the server's limit. `idle`: 10,000 connections, 100 of them active. `profiling`: the cost of the
server's profiler.
"""

import argparse
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import breaking_points
import harness
import idle
import load
import many_connections
import overload
import peers
import procfs
import profiling
import under_test

EXPERIMENTS = {"breaking-points": breaking_points, "many-connections": many_connections, "overload": overload, "idle": idle,
               "profiling": profiling}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = parser.add_subparsers(dest="experiment", required=True)
    for name, experiment in EXPERIMENTS.items():
        one = experiments.add_parser(name, description=experiment.__doc__, help=experiment.__doc__.split("\n")[0])
        one.add_argument("--kvant", default=os.path.join(peers.REPOSITORY, "target/release/kvant"),
                         help="its binary (target/release/kvant)")
        server, client = experiment.CORES
        one.add_argument("--server-cores", default=server, help=f"as taskset takes them ({server})")
        one.add_argument("--client-cores", default=client, help=f"of the generator ({client})")
        one.add_argument("--threads", type=int, default=experiment.THREADS,
                         help=f"of the generator ({experiment.THREADS})")
        one.add_argument("--data-dir", help="for the servers' files (the system's temporary directory)")
        one.add_argument("--json", metavar="FILE", help="also write what was measured, with the machine's facts")
        one.add_argument("--from", dest="from_files", metavar="FILE", nargs="+",
                         help="measure nothing: show such a file, or (overload) several as one")
        one.add_argument("--minutes-max", type=int, default=180, help="give up after this time (180)")
        experiment.add_arguments(one)
        under_test.add_arguments(one)
    return parser.parse_args()


def give_up_after(minutes):
    """Ends the run and all servers after a time limit or on a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done after {minutes} minutes"))
    signal.alarm(minutes * 60)


def cores_of(text):
    """The cores of a list in taskset's syntax: 0,2-3."""
    ranges = [part.split("-") for part in text.split(",")]
    return {core for ends in ranges for core in range(int(ends[0]), int(ends[-1]) + 1)}


def measure(experiment, settings):
    missing = (cores_of(settings.server_cores) | cores_of(settings.client_cores)) - os.sched_getaffinity(0)
    if missing:
        sys.exit(f"cores {sorted(missing)} are not ours to use")
    # The name that peers.py uses.
    settings.server_core = settings.server_cores
    machine = procfs.machine_facts(peers.REPOSITORY)
    # The runner uses the generator's cores; its children are pinned separately.
    os.sched_setaffinity(0, cores_of(settings.client_cores))
    with under_test.directory_of(settings):
        result = experiment.measure(settings)
    # Without paths of files, which do not affect the figures.
    asked = {name: value for name, value in vars(settings).items()
             if name not in ("directory", "kvant", "json", "from_files", "data_dir", "svg")}
    return {"experiment": settings.experiment, "machine": machine, "settings": asked, "result": result}


def earlier(experiment, paths):
    """Earlier results. Several files get the machine and the settings of the first."""
    wholes = []
    for path in paths:
        with open(path) as file:
            wholes.append(json.load(file))
    if len(wholes) > 1:
        if not hasattr(experiment, "merge"):
            raise harness.BenchError("one file at a time")
        wholes[0]["result"] = experiment.merge([whole["result"] for whole in wholes])
    return wholes[0]


def main():
    settings = parse_arguments()
    experiment = EXPERIMENTS[settings.experiment]
    try:
        if settings.from_files:
            whole = earlier(experiment, settings.from_files)
        else:
            give_up_after(settings.minutes_max)
            whole = measure(experiment, settings)
    except (harness.BenchError, load.LoadError) as error:
        sys.exit(f"{settings.experiment}: {error}")
    if settings.json:
        os.makedirs(os.path.dirname(os.path.abspath(settings.json)), exist_ok=True)
        with open(settings.json, "w") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
    machine, used = whole["machine"], whole["settings"]
    print(f"\n{machine['cpu_model']}, {machine['cpu_count']} cores, Linux {machine['kernel']}, commit {machine['commit']}, "
          f"{machine['date']}")
    print(f"server on cores {used['server_cores']}, generator on {used['client_cores']}, {used['threads']} thread(s); "
          f"kvant serve {' '.join(whole['result']['serve_options']) or '(defaults)'}\n")
    experiment.show(whole["result"], settings)


if __name__ == "__main__":
    main()
