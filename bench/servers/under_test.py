"""The Kvant that an experiment on limits looks at: its options, its CPU time and memory over time, its own figures."""

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

# Options of `kvant serve` that are handed on as they are.
PASSED_ON = ("dispatch", "overload", "selectors", "workers", "queue-capacity", "queue-wait-max", "sync", "memory", "engine")
WATCH_INTERVAL_S = 0.1
# A run during which other guests of the host had more of this machine's time than that is made again, so many times at most.
STOLEN_PART_MAX, TRIES_MAX = 0.01, 4
STOLEN = (f"the most that other guests of the host had of this machine's time; a run with more than {STOLEN_PART_MAX:.0%} was made again, "
          f"{TRIES_MAX} times at most.")


def add_arguments(parser):
    group = parser.add_argument_group("kvant serve", "handed on; without them its defaults hold")
    for name in PASSED_ON:
        group.add_argument(f"--{name}")
    group.add_argument("--serve", default="", metavar="OPTIONS", help="any others, as one word: --serve='--compression none'")


def options_of(settings, defaults={}, fixed={}):
    """The options of `kvant serve` that the command line asks for; `defaults` hold where it is silent, `fixed` in any case."""
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
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != 200:
            raise load.LoadError(f"{path} was answered {answer.status}: {body[:200]!r}")
        return body.decode()

    def counters(self):
        """Every number below `server` in /v0/stats, by its path; lists of objects by what names their elements."""
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
        """The histograms of requests in /metrics: by operation and phase, cumulated counts by upper bound in seconds."""
        buckets = collections.defaultdict(dict)
        for labels, count in re.findall(r"^[a-z_0-9]+_bucket\{([^}]*)\} ([0-9.e+]+)", self.fetch("/metrics"), re.MULTILINE):
            labels = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
            if "phase" in labels:
                bound = float(labels["le"].replace("+Inf", "inf"))
                buckets[labels["operation"], labels["phase"]][bound] = float(count)
        return buckets


class SlowStore(Kvant):
    """Kvant's server in a process of its own, with a store that takes a millisecond for whatever it is asked."""

    name = "slow-store"
    directory_of_source = os.path.join(peers.HERE, "slow-store")
    # What it knows of the options: the engine has its defaults.
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
    """What a share of what came between two looks at a histogram did not exceed, and the bounds of its bucket, which are certain; the
    first is reckoned as if a bucket's values were spread evenly. `None` when nothing came."""
    grown = [(bound, count - before.get(bound, 0)) for bound, count in sorted(after.items())]
    total = max((count for _, count in grown), default=0)
    low, below = 0.0, 0
    for bound, count in grown if total else []:
        if count >= share * total:
            # Beyond the last bound nothing is known but that.
            reckoned = low + (bound - low) * (share * total - below) / max(count - below, 1) if bound < math.inf else bound
            return {"reckoned_s": reckoned, "above_s": low, "bound_s": bound}
        low, below = bound, count
    return None


class Watch:
    """Notes CPU time and resident memory of a process while the block runs.

    Threads: one of its own, which only appends; figures are asked for when it has ended.
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
        # The measured time may end a moment after the last look.
        return self.samples[-1][1] if wall_ns > self.samples[-1][0] else self.samples[0][1]

    def rss_max_kib(self):
        return max(rss for _, _, rss in self.samples)


def drive(settings, server, connections, seconds, *options, cores=None, prefix=()):
    """One run of `kvant load` against a server. Returns its figures, with the server's CPU time a request."""
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
    """What `measure` returns, again and again while other guests of the host had too much of this machine's time; the last of all tries
    even so. `run_of` takes what `drive` returned out of it. What is thrown away is told, and looked at for nothing else."""
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
    """The highest rate that holds an SLO. Returns the search's own summary with a line for each step."""
    result, _ = harness.run_load(settings.kvant, settings.client_cores, seconds, connections,
                                 f"http://127.0.0.1:{server.port}", "--find-max", "--slo", slo, "--warmup", "1s", *options,
                                 threads=settings.threads, seconds_max=seconds * 120 + 120, exit_codes=(0, 3, 4))
    return result["find_max"]


@contextlib.contextmanager
def directory_of(settings):
    """A directory for the servers' files, gone afterwards."""
    directory = tempfile.mkdtemp(prefix="kvant-bench-", dir=settings.data_dir)
    settings.directory = directory
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def running(*servers):
    """The servers, up while the block runs."""
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
            # Another one of the same name may follow.
            shutil.rmtree(server.directory, ignore_errors=True)


def priority():
    """What to put before a generator whose own lateness must not count: first in line for its core, where that is allowed."""
    prefix = ["chrt", "--rr", "1"]
    allowed = shutil.which("chrt") and os.spawnlp(os.P_WAIT, "chrt", *prefix, "true") == 0
    return prefix if allowed else []
