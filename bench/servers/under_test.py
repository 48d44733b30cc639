"""The server under test: its options, CPU time and memory over time, and its own figures."""

import collections
import contextlib
import http.client
import json
import math
import os
import re
import shutil
import tempfile
import threading
import time

import harness
import load
import peers
import procfs

# Options passed on to `kvant serve` unchanged.
PASSED_ON = ("dispatch", "overload", "selectors", "workers", "queue-capacity", "queue-wait-max", "sync", "memory", "engine")
WATCH_INTERVAL_S = 0.1
# A run with more stolen time than this share is repeated, at most this many times.
STOLEN_PART_MAX, TRIES_MAX = 0.01, 4
STOLEN = (f"the most that other guests of the host had of this machine's time; a run with more than {STOLEN_PART_MAX:.0%} was made again, "
          f"{TRIES_MAX} times at most.")


def add_arguments(parser):
    group = parser.add_argument_group("kvant serve", "handed on; without them its defaults hold")
    for name in PASSED_ON:
        group.add_argument(f"--{name}")
    group.add_argument("--serve", default="", metavar="OPTIONS", help="any others, as one word: --serve='--compression none'")


def options_of(settings, defaults={}, fixed={}):
    """Options of `kvant serve` from the command line, over `defaults` and under `fixed`."""
    options = []
    for name in PASSED_ON:
        variable = name.replace("-", "_")
        value = fixed.get(variable) or getattr(settings, variable) or defaults.get(variable)
        if value is not None:
            options += [f"--{name}", str(value)]
    return options + settings.serve.split()


class Kvant(peers.Kvant):
    """Kvant with the options of the command line."""

    def __init__(self, settings, defaults={}, fixed={}):
        super().__init__(settings)
        self.asked = options_of(settings, defaults, fixed)

    def options(self):
        return self.asked

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def fetch(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        if response.status != 200:
            raise load.LoadError(f"{path} got {response.status}: {body[:200]!r}")
        return body.decode()

    def counters(self):
        """Every number below `server` in /v0/stats by path, with the names of elements of lists."""
        found = {}

        def walk(path, value):
            if isinstance(value, bool):
                return
            if isinstance(value, (int, float)):
                found[path] = found.get(path, 0) + value
            elif isinstance(value, dict):
                names = [str(part) for part in value.values() if isinstance(part, str)]
                for name, part in value.items():
                    walk("/".join([path, *names, name]), part)
            elif isinstance(value, list):
                for part in value:
                    if isinstance(part, dict):
                        walk(path, part)

        walk("server", json.loads(self.fetch("/v0/stats"))["server"])
        return found

    def phase_buckets(self):
        """Histograms of /metrics by operation and phase: cumulative counts by bound in seconds."""
        buckets = collections.defaultdict(dict)
        for labels, count in re.findall(r"^[a-z_0-9]+_bucket\{([^}]*)\} ([0-9.e+]+)", self.fetch("/metrics"), re.MULTILINE):
            labels = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
            if "phase" in labels:
                bound = float(labels["le"].replace("+Inf", "inf"))
                buckets[labels["operation"], labels["phase"]][bound] = float(count)
        return buckets


class SlowStore(Kvant):
    """Kvant's server with a store whose every operation takes a millisecond."""

    name = "slow-store"
    directory_of_source = os.path.join(peers.HERE, "slow-store")
    # The options that it has. The engine uses its defaults.
    known = ("dispatch", "overload", "selectors", "workers", "queue-capacity", "queue-wait-max")

    def __init__(self, settings, defaults={}, fixed={}):
        super().__init__(settings, defaults, fixed)
        pairs = zip(self.asked[::2], self.asked[1::2])
        self.asked = [word for name, value in pairs if name.removeprefix("--") in self.known for word in (name, value)]

    def build(self):
        self.program = harness.build_package(self.directory_of_source, "slow-store")

    def command(self):
        return [self.program, "--data", os.path.join(self.directory, "data"), "--listen", f"127.0.0.1:{self.port}", *self.asked]


def quantile_s(before, after, share):
    """A quantile of the values between two readings of a histogram, and the bounds of its bucket.

    The quantile is interpolated within the bucket. `None` if there are no values.
    """
    grown = [(bound, count - before.get(bound, 0)) for bound, count in sorted(after.items())]
    total = max((count for _, count in grown), default=0)
    low, below = 0.0, 0
    for bound, count in grown if total else []:
        if count >= share * total:
            # Beyond the last bound.
            reckoned = low + (bound - low) * (share * total - below) / max(count - below, 1) if bound < math.inf else bound
            return {"reckoned_s": reckoned, "above_s": low, "bound_s": bound}
        low, below = bound, count
    return None


class Watch:
    """Samples CPU time and resident memory of a process during the block.

    Threads: its own thread only appends; figures are read when it has ended.
    """

    def __init__(self, pid):
        self.pid = pid
        self.samples = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._sample()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        with contextlib.suppress(OSError):
            self._sample()

    def _sample(self):
        self.samples.append((time.time_ns(), procfs.cpu_ns(self.pid), procfs.rss_kib(self.pid)))

    def _run(self):
        with contextlib.suppress(OSError):  # the process has ended
            while not self.stop.wait(WATCH_INTERVAL_S):
                self._sample()

    def cpu_ns_of(self, figures):
        """CPU time within the measured time of a run of `kvant load`."""
        start_ns = figures["start_wall_ms"] * 1_000_000
        return self._cpu_at(start_ns + figures["seconds"] * 1e9) - self._cpu_at(start_ns)

    def _cpu_at(self, wall_ns):
        for (time_a, cpu_a, _), (time_b, cpu_b, _) in zip(self.samples, self.samples[1:]):
            if time_a <= wall_ns <= time_b:
                return cpu_a + (cpu_b - cpu_a) * (wall_ns - time_a) / (time_b - time_a)
        # The measured time may end shortly after the last sample.
        return self.samples[-1][1] if wall_ns > self.samples[-1][0] else self.samples[0][1]

    def rss_max_kib(self):
        return max(rss for _, _, rss in self.samples)


def drive(settings, server, connections, seconds, *options, cores=None, prefix=()):
    """Runs `kvant load` against a server. Returns its figures and the server's CPU per request."""
    stolen_part = procfs.watch_stolen()
    with Watch(server.process.pid) as watch:
        result, _ = harness.run_load(settings.kvant, cores or settings.client_cores, seconds, connections,
                                     f"http://127.0.0.1:{server.port}", *options, threads=min(settings.threads, connections),
                                     prefix=prefix, seconds_max=seconds + 30)
    outcome = result["phases"][-1]
    figures = harness.figures(outcome)
    figures["cpu_us"] = watch.cpu_ns_of(figures) / 1e3 / max(figures["completed"], 1)
    figures["rss_max_kib"] = watch.rss_max_kib()
    figures["stolen_part"] = stolen_part()
    figures["p99_by_second_ns"] = [second["p99_ns"] for second in outcome["seconds"]]
    return figures


def undisturbed(what, measure, run_of=lambda figures: figures):
    """Repeats `measure` while too much time was stolen, and returns the last try in any case.

    `run_of` extracts the result of `drive`. Discarded runs are reported and not used otherwise.
    """
    for number in range(1, TRIES_MAX + 1):
        figures = measure()
        stolen_part = run_of(figures)["stolen_part"]
        if stolen_part <= STOLEN_PART_MAX:
            break
        harness.note(f"{what}: {stolen_part:.1%} of the time were stolen (try {number} of {TRIES_MAX})")
    return figures


def fill(settings, server, keys, *options):
    """Stores the keys of `kvant load`'s workloads."""
    harness.run(settings.client_cores, [settings.kvant, "load", "fill", "-t1", "-c64", "--keys", str(keys), "--quiet",
                                        *options, f"http://127.0.0.1:{server.port}"], 600)
    server.settle()


def find_max(settings, server, connections, seconds, slo, *options):
    """Searches the highest rate for an SLO. Returns the search's summary with a line per step."""
    result, _ = harness.run_load(settings.kvant, settings.client_cores, seconds, connections,
                                 f"http://127.0.0.1:{server.port}", "--find-max", "--slo", slo, "--warmup", "1s", *options,
                                 threads=settings.threads, seconds_max=seconds * 120 + 120, exit_codes=(0, 3, 4))
    return result["find_max"]


@contextlib.contextmanager
def directory_of(settings):
    """A temporary directory for the servers' files."""
    directory = tempfile.mkdtemp(prefix="kvant-bench-", dir=settings.data_dir)
    settings.directory = directory
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def running(*servers):
    """Runs the servers during the block."""
    try:
        for server in servers:
            reason = server.missing()
            if reason:
                raise load.LoadError(f"{server.name}: {reason}")
            server.build()
            server.start()
        yield
    finally:
        for server in servers:
            server.stop()
            # Another one with the same name may follow.
            shutil.rmtree(server.directory, ignore_errors=True)


def priority():
    """A command prefix that gives a generator priority on its core, if permitted."""
    prefix = ["chrt", "--rr", "1"]
    allowed = shutil.which("chrt") and os.spawnlp(os.P_WAIT, "chrt", *prefix, "true") == 0
    return prefix if allowed else []
