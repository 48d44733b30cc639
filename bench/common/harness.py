"""Runs servers and generators, pinned to cores and with time limits; reads their CPU time."""

import contextlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20
# A generator that runs this long after its end time is stuck.
GRACE_S = 60
PERCENTILES = ("p50", "p99", "p99_9", "max")


class BenchError(Exception):
    """A precondition of the measurement does not hold."""


def build_package(directory, program):
    """Builds one of the small servers and returns its program's path."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=directory, check=True)
    return os.path.join(directory, "target/release", program)


def floor_program():
    """The raw epoll loop, which responds at once."""
    return build_package(os.path.join(REPOSITORY, "bench/servers/epoll-floor"), "epoll-floor")


def known_latency_program():
    """The server that responds after a given time."""
    return build_package(os.path.join(REPOSITORY, "bench/load/known-latency"), "known-latency")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(cores, command_of, stdin=subprocess.DEVNULL):
    """Runs a server on its own port during the block. Yields its port and its process."""
    port = free_port()
    command = ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", cores, *command_of(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            _await_port(port, process, log)
            yield port, process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_port(port, process, log):
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            log.seek(0)
            raise BenchError(f"the server does not respond: {log.read().decode(errors='replace')[-500:]}")
        time.sleep(0.05)


def run(cores, command, seconds, exit_codes=(0,)):
    """Runs a generator to its end. Returns its output and its CPU seconds."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(cores), *command],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killer = threading.Timer(seconds + GRACE_S, process.kill)
    killer.start()
    try:
        output = process.stdout.read()
        # wait4 also returns the process's CPU time.
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in exit_codes:
        raise BenchError(f"{' '.join(command)}: exit code {process.returncode}: {output[-1000:]}")
    return output, usage.ru_utime + usage.ru_stime


def run_wrk(core, seconds, connections, url, *options):
    """Runs wrk on one thread in a closed loop. Returns completed requests and CPU seconds."""
    output, cpu_s = run(core, ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *options, url], seconds)
    found = re.search(r"^\s*(\d+) requests in", output, re.MULTILINE)
    if not found or "Socket errors" in output or "Non-2xx" in output:
        raise BenchError(f"wrk failed: {output[-500:]}")
    return int(found.group(1)), cpu_s


def run_load(kvant, cores, seconds, connections, url, *options, threads=1, prefix=(), seconds_max=None, exit_codes=(0,)):
    """Runs `kvant load`; `seconds` is a step with `--find-max`. Returns its JSON and CPU seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        _, cpu_s = run(cores, [*prefix, kvant, "load", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--quiet",
                               "--json", file.name, *options, url], seconds_max or seconds, exit_codes)
        with open(file.name) as text:
            return json.load(text), cpu_s


def figures(outcome):
    """A phase of `kvant load` without its histograms."""
    statuses = {}
    for op in outcome["ops"]:
        for status, count in op["statuses"].items():
            statuses[status] = statuses.get(status, 0) + count
    verdict = outcome["verdict"] or {"is_valid": None, "bound": None, "headline": None}
    return {
        "planned": outcome["planned"], "sent": outcome["sent"], "completed": outcome["completed"],
        "backlog": outcome["backlog"], "seconds": outcome["measured_ns"] / 1e9, "start_wall_ms": outcome["start_wall_ms"],
        "achieved": outcome["rate_achieved_per_s"], "errors": sum(outcome["errors"].values()),
        "errors_by_kind": outcome["errors"], "statuses": statuses,
        "is_valid": verdict["is_valid"], "bound": verdict["bound"], "headline": verdict["headline"],
        **{what: {name: outcome[what][f"{name}_ns"] for name in PERCENTILES} for what in ("response", "service", "send_lag")},
        # Includes requests without a response, so that a hanging server has no good percentiles.
        "response_all": {name: outcome["response_with_unanswered"][f"{name}_ns"] for name in PERCENTILES},
    }


def spread(values, unit="", digits=2):
    """Median, minimum and maximum, for a table."""
    return (f"{statistics.median(values):.{digits}f}{unit} "
            f"({min(values):.{digits}f}–{max(values):.{digits}f})")


def note(text):
    print(text, flush=True)


def markdown(columns, rows):
    """A Markdown table. All columns but the first are right-aligned."""
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def verdict(goal, met, found):
    """A line about a goal: met, not met, or undecided (`met` is `None`)."""
    word = ("not shown" if found else "not measured") if met is None else "met" if met else "NOT met"
    return f"{word:12}  {goal}" + (f": {found}" if found else "")
