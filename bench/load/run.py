#!/usr/bin/env python3
"""Measures the load generator, and Kvant by means of it. See ../README.md.

`cost`: CPU per request against wrk. `precision`: its send lag, its latency floor, and its figures
against a server of known latency. `single`: one connection at a constant rate against `kvant serve`.
"""

import argparse
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import cost
import harness
import precision
import single

EXPERIMENTS = {"cost": cost, "precision": precision, "single": single}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvant", default=os.path.join(harness.REPOSITORY, "target/release/kvant"),
                        help="its binary (target/release/kvant)")
    parser.add_argument("--server-core", type=int, default=0, help="(0)")
    parser.add_argument("--client-core", type=int, default=1, help="(1)")
    parser.add_argument("--json", metavar="FILE", help="also write what was measured")
    experiments = parser.add_subparsers(dest="experiment", required=True)
    for name, experiment in EXPERIMENTS.items():
        one = experiments.add_parser(name, description=experiment.__doc__, help=experiment.__doc__.split("\n")[0])
        experiment.add_arguments(one)
    return parser.parse_args()


def main():
    settings = parse_arguments()
    if settings.experiment == "cost" and not shutil.which("wrk"):
        sys.exit("no wrk (apt-get install wrk)")
    if settings.server_core == settings.client_core:
        sys.exit("server and generator need a core each")
    # The runner stays off the server's core.
    os.sched_setaffinity(0, {settings.client_core})
    experiment = EXPERIMENTS[settings.experiment]
    try:
        result = experiment.measure(settings)
    except harness.BenchError as error:
        sys.exit(f"{settings.experiment}: {error}")
    experiment.show(result)
    if settings.json:
        with open(settings.json, "w") as file:
            json.dump({"experiment": settings.experiment, "result": result}, file, indent=1)


if __name__ == "__main__":
    main()
