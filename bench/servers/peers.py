"""The compared servers: how each is built, started, filled, checked, loaded and stopped."""

import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import load
import procfs

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
OPERATIONS = ["status", "get", "absent", "put", "delete"]
CHECKED_KEYS = 200
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20
# A server is idle below this share of its core; later work is not counted.
IDLE_SHARE = 0.02
SETTLE_TIMEOUT_S = 30


class Peer:
    """A server process on its own port, pinned to one core, with a directory for its files."""

    name = ""
    programs = []  # to be found on PATH
    package = ""  # what to install when they are not
    fixed_response = False  # stores nothing: no fill, no checks of values
    warm_up_s = 1

    def __init__(self, settings):
        self.settings = settings
        self.process = None
        self.port = 0
        self.directory = os.path.join(settings.directory, self.name)
        self.log_path = os.path.join(settings.directory, f"{self.name}.log")

    def missing(self):
        """The reason why this server cannot run here, or `None`."""
        for program in self.programs:
            if not shutil.which(program):
                return f"no {program} (apt-get install {self.package})"
        return None

    def build(self):
        """Builds the server's program, if it comes as source."""

    def command(self):
        raise NotImplementedError

    def start(self):
        os.makedirs(self.directory)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # Both wrappers exec, so the process id is the server's. The kernel kills it with the runner.
        wrapped = ["taskset", "-c", str(self.settings.server_core), "setpriv", "--pdeathsig", "KILL", *self.command()]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(wrapped, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise load.LoadError(f"{self.name} did not start: {self.log_end()}")
            time.sleep(0.05)

    def ready(self):
        return self.responds_200("/v0/status")

    def responds_200(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log_end(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-1000:] or "(it printed nothing)"

    def fill(self, numbers):
        if not self.fixed_response:
            load.fill_http(self.port, numbers)

    def check_filled(self):
        """Checks a sample of the keys after the fill."""
        if not self.fixed_response:
            load.check_http(self.port, self.sample(), lambda number: [load.value_of(number)])

    def sample(self):
        return random.Random(1).sample(range(1, self.settings.keys + 1), min(CHECKED_KEYS, self.settings.keys))

    def measure(self, operation, round_number, keys_file, numbers, seconds):
        """Measures the server's CPU time for an operation on the keys `numbers` of `keys_file`."""
        pid = self.process.pid
        core = self.settings.server_core
        split_before = procfs.user_kernel_ticks(pid)
        wall_before = time.monotonic_ns()
        busy_before = procfs.core_busy_seconds(core)
        cpu_before = procfs.cpu_ns(pid)
        run, problems = self.drive(operation, round_number, keys_file, seconds)
        cpu_after = procfs.cpu_ns(pid)
        busy_ns = (procfs.core_busy_seconds(core) - busy_before) * 1e9
        wall_ns = time.monotonic_ns() - wall_before
        split_after = procfs.user_kernel_ticks(pid)
        self.settle()
        later_ns = procfs.cpu_ns(pid) - cpu_after
        if not problems:
            problems = self.check_after(operation, round_number, numbers, run["requests"])
        user, kernel = (after - before for before, after in zip(split_before, split_after))
        cpu_ns = cpu_after - cpu_before
        run.update({
            "server": self.name,
            "operation": operation,
            "round": round_number,
            "cpu_ns": cpu_ns,
            "cpu_later_ns": later_ns,
            "kernel_share": kernel / (user + kernel) if user + kernel else None,
            "core_busy_share": cpu_ns / 1000 / run["duration_us"],
            "core_others_share": max(0.0, busy_ns - cpu_ns) / wall_ns,
            "problems": problems,
        })
        return run

    def drive(self, operation, round_number, keys_file, seconds):
        settings = self.settings
        run = load.run_wrk(settings.client_core, settings.connections, seconds, os.path.join(HERE, "workload.lua"),
                           self.port, operation, keys_file, round_number)
        problems = [f"{run[kind]} {kind} errors" for kind in ("connect", "read", "write", "timeout") if run[kind]]
        refused_wanted = run["requests"] if operation == "absent" and not self.fixed_response else 0
        if run["status"] != refused_wanted:
            problems.append(f"{run['status']} responses of 400 and above where {refused_wanted} were expected")
        return run, problems

    def check_after(self, operation, round_number, numbers, request_count):
        """Checks the effect of the operation, and restores deleted keys for the next run."""
        if self.fixed_response:
            return []
        if operation == "put":
            # Connections advance through the list together: its first quarter is certainly done.
            touched = numbers[:request_count // 4][:CHECKED_KEYS]
            count = load.check_http(self.port, touched, lambda number: [load.put_value_of(number, round_number)])
            return [] if count == len(touched) else ["PUTs without effect"]
        if operation == "delete":
            touched = numbers[:request_count // 4][:CHECKED_KEYS]
            count = load.count_absent_http(self.port, touched)
            self.fill(numbers[:request_count + self.settings.connections])
            self.settle()
            return [] if count == len(touched) else [f"{len(touched) - count} of {len(touched)} DELETEs without effect"]
        return []

    def settle(self):
        """Waits until the server has finished deferred work, such as flushes and compactions."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        idle_count = 0
        before = procfs.cpu_ns(self.process.pid)
        while idle_count < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
            now = procfs.cpu_ns(self.process.pid)
            idle_count = idle_count + 1 if now - before < IDLE_SHARE * 1e8 else 0
            before = now


class EpollFloor(Peer):
    name = "epoll-floor"
    programs = ["cargo"]
    package = "cargo, or see rustup.rs"
    fixed_response = True
    directory_of_source = os.path.join(HERE, "epoll-floor")

    def build(self):
        _run(["cargo", "build", "--release", "--quiet", "--manifest-path", f"{self.directory_of_source}/Cargo.toml",
              "--target-dir", f"{self.directory_of_source}/target"])

    def command(self):
        return [f"{self.directory_of_source}/target/release/epoll-floor", str(self.port)]


class Kvant(Peer):
    name = "kvant"

    def missing(self):
        if not os.access(self.settings.kvant, os.X_OK):
            return f"no {self.settings.kvant} (cargo build --release -p kvant, or --kvant PATH)"
        return None

    def command(self):
        return [self.settings.kvant, "serve", "--data", os.path.join(self.directory, "data"),
                "--listen", f"127.0.0.1:{self.port}", *self.options()]

    def options(self):
        return ["--selectors", "1", "--sync", "os"]

    def ready(self):
        return self.responds_200("/health")


class Nginx(Peer):
    name = "nginx"
    programs = ["nginx"]
    package = "nginx-light"
    fixed_response = True

    def command(self):
        path = os.path.join(self.directory, "nginx.conf")
        with open(path, "w") as file:
            file.write(f"""
daemon off;
master_process off;
pid {self.directory}/nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_body_temp_path {self.directory}/body;
    proxy_temp_path {self.directory}/proxy;
    fastcgi_temp_path {self.directory}/fastcgi;
    uwsgi_temp_path {self.directory}/uwsgi;
    scgi_temp_path {self.directory}/scgi;
    server {{
        listen 127.0.0.1:{self.port};
        location / {{ return 200 "{load.value_of(1).decode()}"; }}
    }}
}}
""")
        return ["nginx", "-p", self.directory, "-c", path, "-e", "stderr"]


class Redis(Peer):
    """Loaded by redis-benchmark, because wrk only speaks HTTP; keys are random with repetition."""

    name = "redis"
    programs = ["redis-server", "redis-benchmark", "redis-cli"]
    package = "redis-server"
    # redis-benchmark runs a number of requests: the previous run's rate gives the number.
    rate_first = 50_000
    commands = {
        "status": ["PING"],
        "get": ["GET", "key:__rand_int__"],
        "absent": ["GET", "key:__rand_int__x"],
        "put": ["SET", "key:__rand_int__", load.value_of(1).decode()],
        "delete": ["DEL", "key:__rand_int__"],
    }

    def __init__(self, settings):
        super().__init__(settings)
        self.rates = {}

    def command(self):
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.directory,
                "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0",
                "--save", "", "--loglevel", "warning"]

    def ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16) == b"+PONG\r\n"
        except OSError:
            return False

    def fill(self, numbers):
        load.fill_redis(self.port, numbers)

    def check_filled(self):
        hits_before = load.redis_stat(self.port, "keyspace_hits")
        load.run_redis_benchmark(self.settings.client_core, 1, CHECKED_KEYS, self.settings.keys, self.port,
                                 self.commands["get"], 60)
        hits = load.redis_stat(self.port, "keyspace_hits") - hits_before
        if hits != CHECKED_KEYS:
            raise load.LoadError(f"redis: only {hits} of {CHECKED_KEYS} random keys are there after the fill")

    def drive(self, operation, round_number, keys_file, seconds):
        settings = self.settings
        requests = int(self.rates.get(operation, self.rate_first) * seconds)
        before = [load.redis_stat(self.port, field) for field in ("keyspace_hits", "keyspace_misses")]
        run = load.run_redis_benchmark(settings.client_core, settings.connections, requests, settings.keys, self.port,
                                       self.commands[operation], seconds * 20 + 60)
        after = [load.redis_stat(self.port, field) for field in ("keyspace_hits", "keyspace_misses")]
        self.rates[operation] = requests / run["duration_us"] * 1e6
        wanted = {"get": [requests, 0], "absent": [0, requests]}.get(operation, [0, 0])
        found = [a - b for a, b in zip(after, before)]
        return run, [] if found == wanted else [f"hits and misses were {found} where {wanted} were expected"]

    def check_after(self, operation, round_number, numbers, request_count):
        if operation == "delete":
            self.fill(range(1, self.settings.keys + 1))
            self.settle()
        return []


class OneNioLevelDb(Peer):
    name = "one-nio-leveldb"
    programs = ["java", "mvn"]
    package = "openjdk-17-jdk-headless maven"
    directory_of_source = os.path.join(HERE, "one-nio-leveldb")

    def __init__(self, settings):
        super().__init__(settings)
        self.warm_up_s = settings.java_warm_up

    def build(self):
        _run(["mvn", "-q", "-f", f"{self.directory_of_source}/pom.xml", "package"])

    def command(self):
        # one-nio unpacks its native library into a directory that may be deleted.
        return ["java", f"-Djava.io.tmpdir={self.directory}", *self.settings.java_options.split(), "-jar",
                f"{self.directory_of_source}/target/one-nio-leveldb.jar", str(self.port),
                os.path.join(self.directory, "data"), str(self.selectors())]

    def selectors(self):
        return 1


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise load.LoadError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-1000:]}")


# In the order of their turns.
PEERS = [EpollFloor, Kvant, Nginx, Redis, OneNioLevelDb]
