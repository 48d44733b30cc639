"""The client side: fills and verifies servers, and loads them with wrk or redis-benchmark."""

import contextlib
import csv
import http.client
import re
import socket
import subprocess

FILL_BATCH = 500
SOCKET_TIMEOUT_S = 60


class LoadError(Exception):
    """A server or generator violated a precondition of the measurement."""


def key_of(number):
    return str(number)


def absent_key_of(number):
    """A key that is never written and sorts between two written ones."""
    return f"{number}x"


def value_of(number):
    """The value after the fill: 12 bytes."""
    return f"value{number:07d}".encode()


def put_value_of(number, round_number):
    """The value after a PUT of workload.lua in a round: 12 bytes."""
    return f"put{round_number % 100:02d}{number:07d}".encode()


def fill_http(port, numbers):
    """Puts keys in pipelined batches. Each must be acknowledged with 201."""
    def request(number):
        return (f"PUT /v0/entity?id={key_of(number)} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12\r\n\r\n"
                f"{value_of(number).decode()}")
    _fill(port, numbers, request, re.compile(rb"HTTP/1\.1 (\d{3})"), b"201")


def fill_redis(port, numbers):
    """Sets keys in pipelined batches, with the names of redis-benchmark's random keys."""
    def request(number):
        return f"*3\r\n$3\r\nSET\r\n$16\r\nkey:{number - 1:012d}\r\n$12\r\n{value_of(number).decode()}\r\n"
    _fill(port, numbers, request, re.compile(rb"([+-][^\r\n]*)\r\n"), b"+OK")


def _fill(port, numbers, request, response_pattern, response_wanted):
    with socket.create_connection(("127.0.0.1", port), SOCKET_TIMEOUT_S) as connection:
        for start in range(0, len(numbers), FILL_BATCH):
            batch = numbers[start:start + FILL_BATCH]
            connection.sendall("".join(map(request, batch)).encode())
            received, responses = b"", []
            while len(responses) < len(batch):
                data = connection.recv(1 << 20)
                if not data:
                    raise LoadError(f"the server closed the connection during the fill: {received[-200:]!r}")
                received += data
                responses = response_pattern.findall(received)
            unwanted = [response for response in responses if response != response_wanted]
            if unwanted:
                raise LoadError(f"{len(unwanted)} writes of the fill were refused, the first with {unwanted[0]!r}")


def check_http(port, numbers, accepted_of):
    """Reads keys one by one. Returns how many had the first of their values.

    Each must have one of the values `accepted_of(number)`; its never-written neighbour must be absent.
    """
    first_count = 0
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SOCKET_TIMEOUT_S)) as connection:
        for number in numbers:
            accepted = accepted_of(number)
            status, body = _get(connection, key_of(number))
            if status != 200 or body not in accepted:
                raise LoadError(f"key {number} should hold one of {accepted} but got {status} {body[:50]!r}")
            first_count += body == accepted[0]
            status, _ = _get(connection, absent_key_of(number))
            if status != 404:
                raise LoadError(f"key {absent_key_of(number)} should be absent but got {status}")
    return first_count


def count_absent_http(port, numbers):
    """The number of keys with a 404."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SOCKET_TIMEOUT_S)) as connection:
        return sum(_get(connection, key_of(number))[0] == 404 for number in numbers)


def _get(connection, key):
    connection.request("GET", f"/v0/entity?id={key}")
    response = connection.getresponse()
    return response.status, response.read()


def redis_stat(port, field):
    """A counter of Redis's INFO."""
    done = subprocess.run(["redis-cli", "-p", str(port), "INFO", "stats"], capture_output=True, text=True, timeout=10)
    found = re.search(rf"^{field}:(\d+)", done.stdout, re.MULTILINE)
    if not found:
        raise LoadError(f"Redis's INFO has no {field}: {(done.stdout + done.stderr)[-200:]}")
    return int(found.group(1))


def run_wrk(core, connections, seconds, script, port, operation, keys_file, round_number):
    """Runs one operation with wrk. Returns wrk's counts as a dict of integers."""
    path = "/v0/status" if operation == "status" else "/v0/entity"
    done = subprocess.run(
        ["taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s",
         "-s", script, f"http://127.0.0.1:{port}{path}", "--", operation, keys_file, str(round_number)],
        capture_output=True, text=True, timeout=seconds + 60)
    line = re.search(r"^kvant-bench (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not line:
        raise LoadError(f"wrk failed: {(done.stdout + done.stderr)[-500:]}")
    counts = {name: int(value) for name, value in (pair.split("=") for pair in line.group(1).split())}
    if counts["requests"] == 0:
        raise LoadError(f"wrk got no response: {done.stdout[-500:]}")
    return counts


def run_redis_benchmark(core, connections, requests, keys, port, command, seconds_max):
    """Sends one command `requests` times. Returns counts with the names of `run_wrk`."""
    done = subprocess.run(
        ["taskset", "-c", str(core), "redis-benchmark", "-p", str(port), "-c", str(connections), "-n", str(requests),
         "-r", str(keys), "--csv", *command],
        capture_output=True, text=True, timeout=seconds_max)
    if done.returncode != 0 or "rror" in done.stdout:
        raise LoadError(f"redis-benchmark failed: {(done.stdout + done.stderr)[-500:]}")
    row = list(csv.DictReader(done.stdout.splitlines()))[0]
    return {
        "requests": requests,
        "duration_us": int(requests / float(row["rps"]) * 1e6),
        "p50_us": round(float(row["p50_latency_ms"]) * 1000),
        "p99_us": round(float(row["p99_latency_ms"]) * 1000),
        "connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 0,
    }
