"""Starts servers and generators, each pinned to a core and bounded in time, and reads what they used."""

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

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20
# A generator that has not ended this long after its time is stuck.
GRACE_S = 60


class BenchError(Exception):
    """Something did not do what the measurement stands on."""


def build_package(directory, program):
    """Builds one of the small servers and returns its program's path."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=directory, check=True)
    return os.path.join(directory, "target/release", program)


def floor_program():
    """The raw epoll loop, which answers at once."""
    return build_package(os.path.join(REPOSITORY, "bench/servers/epoll-floor"), "epoll-floor")


def known_latency_program():
    """The server that answers after exactly a given time."""
    return build_package(os.path.join(HERE, "known-latency"), "known-latency")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(cores, command_of, stdin=subprocess.DEVNULL):
    """A server on its own port, up while the block runs: yields its port and its process."""
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
            raise BenchError(f"the server does not answer: {log.read().decode(errors='replace')[-500:]}")
        time.sleep(0.05)


def run(core, command, seconds):
    """Runs a generator to its end. Returns its output and the CPU seconds that it used."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(core), *command],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killer = threading.Timer(seconds + GRACE_S, process.kill)
    killer.start()
    try:
        output = process.stdout.read()
        # wait4 and not wait: it also says what the process used.
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"{' '.join(command)}: exit code {process.returncode}: {output[-1000:]}")
    return output, usage.ru_utime + usage.ru_stime


def run_wrk(core, seconds, connections, url, *options):
    """wrk on one thread in a closed loop. Returns requests answered and CPU seconds."""
    output, cpu_s = run(core, ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *options, url], seconds)
    found = re.search(r"^\s*(\d+) requests in", output, re.MULTILINE)
    if not found or "Socket errors" in output or "Non-2xx" in output:
        raise BenchError(f"wrk failed: {output[-500:]}")
    return int(found.group(1)), cpu_s


def run_load(kvant, core, seconds, connections, url, *options):
    """`kvant load` on one thread. Returns its JSON and CPU seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        _, cpu_s = run(core, [kvant, "load", "-t1", f"-c{connections}", f"-d{seconds}s", "--quiet",
                              "--json", file.name, *options, url], seconds)
        with open(file.name) as text:
            return json.load(text), cpu_s


def spread(values, unit="", digits=2):
    """Median, least and largest, for a table."""
    return (f"{statistics.median(values):.{digits}f}{unit} "
            f"({min(values):.{digits}f}–{max(values):.{digits}f})")


def note(text):
    print(text, flush=True)
