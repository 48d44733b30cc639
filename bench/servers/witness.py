"""A few individually timed requests/s: the latency of each kind of response under overload.

`kvant load` has one histogram for all responses to a kind of requests. Refusals are fast and the
others are not, so it shows neither. The witness sends the same requests, too few to affect the
server, and records status and time of each.

Its connections take turns, so that each returns after a while, as `Retry-After` requests. The server
pauses clients that return at once, as `kvant load` does; other clients are not affected.
"""

import collections
import contextlib
import os
import random
import selectors
import socket
import threading
import time

CONNECTIONS = 64
# A request without a response after this time is abandoned.
GIVE_UP_S = 10
PAUSE_AFTER_FAILURE_S = 0.05


def request_of(kind, number):
    """The same requests as those of `kvant load`'s workloads."""
    key = f"{number:012d}"
    if kind == "put":
        return f"PUT /v0/entity?id={key} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nwitness-data".encode()
    path = f"/v0/entities?start={key}&limit=100" if kind == "range" else f"/v0/entity?id={key}"
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def parse(received):
    """Status, reason and `Connection` of a complete response; `None` if bytes are missing."""
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    status = int(head[9:12])
    fields = head.lower().split(b"\r\n")[1:]
    headers = {name.strip(): value.strip() for name, _, value in (field.partition(b":") for field in fields)}
    if headers.get(b"transfer-encoding") == b"chunked":
        # The last chunk: no key, value or size is a line "0" before an empty line.
        if not body.endswith(b"0\r\n\r\n"):
            return None
    elif len(body) < int(headers.get(b"content-length", 0)):
        return None
    # The problem's type, if the response is one, gives the reason of a refusal.
    reason = body.partition(b'"type":"')[2].partition(b'"')[0].decode(errors="replace")
    return status, reason, headers.get(b"connection") == b"close"


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), GIVE_UP_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.received = b""
        self.sent_ns = 0


class Witness:
    """Runs during the block. `responses` are pairs of (status, reason) and service time in nanoseconds.

    Threads: its own thread only appends; figures are read when it has ended.
    """

    def __init__(self, port, kind, rate, keys):
        self.port, self.kind, self.rate, self.keys = port, kind, rate, keys
        self.responses = []
        self.unsent = 0
        self.lost = 0
        self.stop = threading.Event()
        self.free = collections.deque(Connection(port) for _ in range(CONNECTIONS))
        self.busy = set()
        self.ready = selectors.DefaultSelector()
        for connection in self.free:
            self.ready.register(connection.socket, selectors.EVENT_READ, connection)
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def send_no_more(self):
        """Stops sending. Responses in flight are still awaited."""
        self.stop.set()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for connection in [*self.free, *self.busy]:
            connection.socket.close()
        self.ready.close()

    def _run(self):
        # With priority on the generator's core, if permitted, so that its own waiting does not count.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        drawn = random.Random(1)
        next_s = time.monotonic()
        while not self.stop.is_set():
            wait_s = next_s - time.monotonic()
            if wait_s <= 0:
                next_s += 1 / self.rate
                self._send(drawn.randrange(self.keys))
                continue
            for key, _ in self.ready.select(min(wait_s, 0.1)):
                self._receive(key.data)
        self._drain()

    def _drain(self):
        """Waits for requests in flight at the end, so that the slowest are not missing."""
        deadline_s = time.monotonic() + GIVE_UP_S
        while self.busy and time.monotonic() < deadline_s:
            for key, _ in self.ready.select(0.1):
                self._receive(key.data)
        self.lost += len(self.busy)

    def _send(self, number):
        if not self.free:
            self.unsent += 1
            return
        connection = self.free.popleft()
        connection.sent_ns = time.monotonic_ns()
        self.busy.add(connection)
        try:
            connection.socket.send(request_of(self.kind, number))
        except OSError:
            self._replace(connection)

    def _receive(self, connection):
        now_ns = time.monotonic_ns()
        try:
            data = connection.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._replace(connection)
            return
        connection.received += data
        response = parse(connection.received)
        if response is None:
            return
        status, reason, is_last = response
        if connection in self.busy:
            self.responses.append(((status, reason), now_ns - connection.sent_ns))
            self.busy.remove(connection)
            self.free.append(connection)
        connection.received = b""
        if is_last:
            self._replace(connection)

    def _replace(self, connection):
        """Replaces a closed connection. A request on it is lost."""
        self.ready.unregister(connection.socket)
        connection.socket.close()
        if connection in self.busy:
            self.busy.remove(connection)
            self.lost += 1
        else:
            self.free.remove(connection)
        try:
            new = Connection(self.port)
        except OSError:
            time.sleep(PAUSE_AFTER_FAILURE_S)
            return
        self.ready.register(new.socket, selectors.EVENT_READ, new)
        self.free.append(new)

    def figures(self):
        """Count and percentiles of the service time by status and reason."""
        by_kind = collections.defaultdict(list)
        for kind, taken_ns in self.responses:
            by_kind[kind].append(taken_ns)
        return {
            "unsent": self.unsent, "lost": self.lost,
            "answers": [{"status": status, "reason": reason, **_percentiles(taken_ns)}
                        for (status, reason), taken_ns in sorted(by_kind.items())],
            "admitted": _percentiles([taken_ns for (status, _), taken_ns in self.responses if is_admitted(status)]),
            "refused": _percentiles([taken_ns for (status, _), taken_ns in self.responses if not is_admitted(status)]),
        }


def is_admitted(status):
    """Whether a request was executed, including those for absent keys."""
    return status < 300 or status == 404


def _percentiles(taken_ns):
    ordered = sorted(taken_ns)
    at = lambda share: ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None
    return {"count": len(ordered), "p50_ns": at(0.5), "p99_ns": at(0.99), "p99_9_ns": at(0.999), "max_ns": at(1)}
