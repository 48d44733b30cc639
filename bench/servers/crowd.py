#!/usr/bin/env python3
"""Holds idle and slow connections: crowd.py PORT COUNT SLOW FIRST_SOURCE

Each connection makes one complete request. Then COUNT - SLOW of them are idle, and SLOW send an
endless head, one byte per second. Connections closed by the server are reopened. Prints a line when
all are open; ends with its standard input, with a line of JSON. Source addresses are
127.0.0.FIRST_SOURCE and up, because one address alone runs out of ports.
"""

import contextlib
import errno
import json
import os
import resource
import selectors
import socket
import sys
import time

CONNECTIONS_BY_SOURCE = 2_500
OPENED_AT_ONCE = 100
OPEN_TIMEOUT_S = 60
DESCRIPTORS_SPARE = 50
SLOW_INTERVAL_S = 1.0
REQUEST = b"GET /v0/entity?id=000000000000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW_HEAD = b"GET /v0/entity?id=000000000000 HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


class Member:
    def __init__(self, number):
        self.number = number
        self.socket = None
        self.has_response = False
        self.sent_bytes = 0


class Crowd:
    def __init__(self, port, count, slow, first_source):
        self.port, self.first_source = port, first_source
        self.ready = selectors.DefaultSelector()
        self.members = [Member(number) for number in range(count)]
        self.slow = self.members[:slow]
        self.closed = {"idle": 0, "slow": 0}
        self.refused = 0
        self.waiting = 0

    def open(self, member):
        member.socket = socket.socket()
        member.socket.setblocking(False)
        # The port is chosen when the peer is known, so that sources share none needlessly.
        member.socket.setsockopt(socket.SOL_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        source = self.first_source + member.number // CONNECTIONS_BY_SOURCE
        member.socket.bind((f"127.0.0.{source}", 0))
        code = member.socket.connect_ex(("127.0.0.1", self.port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        member.has_response, member.sent_bytes = False, 0
        self.waiting += 1
        self.ready.register(member.socket, selectors.EVENT_WRITE, member)

    def on_ready(self, member, mask):
        try:
            if mask & selectors.EVENT_WRITE:
                member.socket.send(REQUEST)
                self.ready.modify(member.socket, selectors.EVENT_READ, member)
                return
            data = member.socket.recv(4096)
        except OSError:
            data = b""
        if data and not member.has_response:
            # A refusal is a response, too. The response is small and arrives in one piece.
            self.refused += not data.startswith((b"HTTP/1.1 200", b"HTTP/1.1 404"))
            member.has_response = True
            self.waiting -= 1
        if not data:
            self.on_closed(member)

    def on_closed(self, member):
        if not member.has_response:
            self.waiting -= 1
        self.closed["slow" if member.number < len(self.slow) else "idle"] += 1
        self.ready.unregister(member.socket)
        member.socket.close()
        self.open(member)

    def poll(self, timeout_s):
        for key, mask in self.ready.select(timeout_s):
            if key.data is None:
                return False
            self.on_ready(key.data, mask)
        return True

    def open_all(self):
        deadline_s = time.monotonic() + OPEN_TIMEOUT_S
        opened = 0
        while opened < len(self.members) or self.waiting:
            while opened < len(self.members) and self.waiting < OPENED_AT_ONCE:
                self.open(self.members[opened])
                opened += 1
            self.poll(0.1)
            if time.monotonic() > deadline_s:
                sys.exit(f"only {opened - self.waiting} of {len(self.members)} connections are open after {OPEN_TIMEOUT_S} s")

    def hold(self):
        self.ready.register(sys.stdin, selectors.EVENT_READ, None)
        at, next_s = 0, time.monotonic()
        while self.poll(max(0.0, min(next_s - time.monotonic(), 0.5)) if self.slow else 0.5):
            # One after the other, spread over the interval.
            while self.slow and time.monotonic() >= next_s:
                self.drip(self.slow[at])
                at = (at + 1) % len(self.slow)
                next_s += SLOW_INTERVAL_S / len(self.slow)

    def drip(self, member):
        if not member.has_response:
            return
        byte = SLOW_HEAD[member.sent_bytes:member.sent_bytes + 1] or b"x"
        with contextlib.suppress(OSError):  # closed: its end is ready for reading
            member.sent_bytes += member.socket.send(byte)


def main():
    port, count, slow, first_source = map(int, sys.argv[1:])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if count + DESCRIPTORS_SPARE > most:
        sys.exit(f"{count} connections need as many descriptors, and only {most} are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd(port, count, slow, first_source)
    crowd.open_all()
    print("open", flush=True)
    crowd.hold()
    print(json.dumps({"closed_by_server": crowd.closed, "refused": crowd.refused}), flush=True)


if __name__ == "__main__":
    main()
