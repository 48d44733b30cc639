"""Switches the profiler on and off in a server under load; detects crashes, leaks and deadlocks.

Usage: profile_soak.py KVANT MINUTES SEED

Meanwhile: PUTs that cause flushes and compactions, GETs, ranges, flushes by an operator, storms of
short connections, recordings that are rejected because one runs, clients that disconnect during a
recording, and SIGPROF from outside. Exits with 0 if all checks hold; otherwise prints the failures
and exits with 1.
"""

import collections
import contextlib
import http.client
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

FORMATS = {"kprof": None, "pprof": None, "html": None, "collapsed": "cpu"}
EVENTS = ["cpu", "alloc", "lock", "cpu,alloc,lock", "cpu,alloc,lock", "cpu,alloc,lock"]
DURATIONS_MS = (100, 3000)
# Longest response time beyond the recording: it includes symbol resolution on a busy machine.
RESPONSE_WAIT_MAX_S = 120
LOAD_S = 20
LOADS = [
    ["-R3000", "-c16", "--workload", "put", "--value-bytes", "1..2000", "--keys", "100000"],
    ["-R3000", "-c16", "--workload", "get", "--keys", "100000"],
    ["-R50", "-c4", "--workload", "range", "--range-records", "100", "--keys", "100000"],
]
STORM_CONNECTIONS = 300
SAMPLE_INTERVAL_S = 2
# Resident memory may grow by caches and by pages that the allocator keeps.
RSS_GROWTH_MAX, RSS_SLACK_KIB = 1.10, 16 << 10
DESCRIPTORS_SLACK = 50
# Caches still fill in shorter runs.
GROWTH_JUDGED_S = 600

problems = []
counts = collections.Counter()
over = threading.Event()


def problem(text):
    problems.append(text)
    print(f"PROBLEM: {text}", flush=True)
    over.set()


class Server:
    def __init__(self, kvant, directory):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(os.path.join(directory, "server.log"), "wb")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", kvant, "serve", "--data", os.path.join(directory, "data"), "--listen",
             f"127.0.0.1:{self.port}", "--memory", "128MiB", "--sync", "os"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def request(self, method, path, timeout_s=RESPONSE_WAIT_MAX_S):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)) as connection:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()

    def await_ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.request("GET", "/health", 5)[0] == 200:
                    return
            time.sleep(0.1)
        raise SystemExit("the server does not start")

    def rss_kib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(next(line.split()[1] for line in file if line.startswith("VmRSS")))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def guarded(work):
    """Repeats a thread's work until the end; an exception before that is a problem."""
    def run(*arguments):
        while not over.is_set():
            try:
                work(*arguments)
            except Exception as error:
                if not over.is_set():
                    problem(f"{work.__name__}: {error!r}")
    return run


@guarded
def profile(server, chance):
    form = chance.choice(list(FORMATS))
    events = FORMATS[form] or chance.choice(EVENTS)
    duration_ms = chance.randint(*DURATIONS_MS)
    path = f"/v0/profile?event={events}&duration={duration_ms}ms&format={form}"
    if "cpu" in events:
        path += "&engine=" + chance.choice(["timer", "perf"])
    luck = chance.random()
    if luck < 0.1:
        # Disconnects during the recording.
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port), 10)) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
            time.sleep(duration_ms / 2000)
        counts["left"] += 1
        # Until the server notices, it rejects other recordings.
        for _ in range(100):
            if server.request("POST", "/v0/profile?event=cpu&duration=100ms&format=kprof")[0] == 200:
                return
            time.sleep(0.1)
        raise RuntimeError("a recording whose client has left goes on for 10 s")
    # The second recording may have arrived first.
    while (response := server.request("POST", path, RESPONSE_WAIT_MAX_S))[0] == 409 and not over.wait(0.1):
        pass
    status, body = response
    if over.is_set():
        return
    if status != 200 or not body:
        raise RuntimeError(f"{path} got {status}: {body[:200]!r}")
    counts[form] += 1
    counts["recorded_ms"] += duration_ms
    over.wait(chance.random() * 0.5)


@guarded
def second_profile(server, chance):
    over.wait(1 + chance.random() * 3)
    status, body = server.request("POST", "/v0/profile?event=cpu&duration=100ms&format=kprof")
    if status not in (200, 409):
        raise RuntimeError(f"a second recording got {status}: {body[:200]!r}")
    counts[f"second {status}"] += 1


@guarded
def storm(server, chance):
    over.wait(chance.random() * 4)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", server.port), 30)))
                       for _ in range(STORM_CONNECTIONS)]
        for connection in connections:
            connection.sendall(b"GET /v0/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for connection in chance.sample(connections, STORM_CONNECTIONS // 2):
            if not connection.recv(1 << 12).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("a status in a storm got no response")
    counts["storms"] += 1


@guarded
def foreign_signals(server, chance):
    over.wait(chance.random() * 2)
    os.kill(server.process.pid, signal.SIGPROF)
    counts["SIGPROF"] += 1


@guarded
def flush(server, chance):
    over.wait(3 + chance.random() * 5)
    status, body = server.request("POST", "/v0/admin/flush")
    if status != 200:
        raise RuntimeError(f"a flush got {status}: {body[:200]!r}")
    counts["flushes"] += 1


@guarded
def load(kvant, server, options):
    done = subprocess.run(["setpriv", "--pdeathsig", "KILL", kvant, "load", "-t1", f"-d{LOAD_S}s", "--quiet", *options,
                           f"http://127.0.0.1:{server.port}"], capture_output=True, text=True, timeout=LOAD_S + 120)
    if done.returncode not in (0, 3, 4):
        raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    counts["loads"] += 1


def main():
    kvant, minutes, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="kvant-soak-") as directory:
        server = Server(kvant, directory)
        server.await_ready()
        chances = (random.Random(f"{seed} {number}") for number in range(100))
        threads = [threading.Thread(target=work, args=(server, next(chances)), daemon=True)
                   for work in (profile, second_profile, storm, foreign_signals, flush)]
        threads += [threading.Thread(target=load, args=(kvant, server, options), daemon=True) for options in LOADS]
        for thread in threads:
            thread.start()
        samples = watch(server, minutes * 60)
        over.set()
        for thread in threads:
            thread.join(RESPONSE_WAIT_MAX_S + LOAD_S)
            if thread.is_alive():
                problem("something waits for the server for ever")
        stop(server)
        if problems:
            with open(os.path.join(directory, "server.log"), errors="replace") as log:
                print(log.read()[-3000:])
    judge_growth(samples)
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print("profile-soak: " + ("failed: " + "; ".join(problems) if problems else "passed"))
    sys.exit(bool(problems))


def watch(server, seconds):
    """Resident memory and descriptors over time."""
    samples = []
    deadline = time.monotonic() + seconds
    reported = time.monotonic()
    while time.monotonic() < deadline and not over.wait(SAMPLE_INTERVAL_S):
        if server.process.poll() is not None:
            problem(f"the server ended with {server.process.returncode}")
            break
        samples.append((server.rss_kib(), server.descriptors()))
        if time.monotonic() - reported > 60:
            reported = time.monotonic()
            rss, descriptors = samples[-1]
            print(f"{(deadline - reported) / 60:.0f} min left: RSS {rss >> 10} MiB, {descriptors} descriptors, "
                  f"{sum(counts[name] for name in FORMATS)} recordings", flush=True)
    return samples


def stop(server):
    server.process.send_signal(signal.SIGTERM)
    try:
        if server.process.wait(60) != 0:
            problem(f"the server stopped with {server.process.returncode}")
    except subprocess.TimeoutExpired:
        problem("the server does not stop")
        server.process.kill()
        server.process.wait()
    server.log.close()


def judge_growth(samples):
    """Compares the second quarter, when caches are full, with the last."""
    quarter = len(samples) // 4
    if len(samples) * SAMPLE_INTERVAL_S < GROWTH_JUDGED_S:
        print("too short to judge growth")
        return
    (early_rss, early_descriptors), (late_rss, late_descriptors) = (
        (statistics.median(rss for rss, _ in part), min(descriptors for _, descriptors in part))
        for part in (samples[quarter:2 * quarter], samples[-quarter:]))
    print(f"RSS {early_rss / 1024:.0f} MiB, at the end {late_rss / 1024:.0f} MiB; descriptors {early_descriptors}, at the end {late_descriptors}")
    if late_rss > early_rss * RSS_GROWTH_MAX + RSS_SLACK_KIB:
        problem("resident memory grows")
    if late_descriptors > early_descriptors + DESCRIPTORS_SLACK:
        problem("descriptors grow")


main()
