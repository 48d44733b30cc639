"""CPU time of processes and cores, memory, and facts of the machine, from the kernel."""

import datetime
import functools
import os
import platform
import subprocess
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_ns(pid):
    """CPU time of all threads of a process, including ended ones, in nanoseconds.

    This is the process's CPU clock (clock_getcpuclockid(3)): the scheduler's exact sums up to the
    call, whereas /proc/PID/stat counts ticks of 10 ms.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


def user_kernel_ticks(pid):
    """User and kernel CPU time of a process in ticks: precise enough for their ratio only."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def core_busy_seconds(core):
    """Busy seconds of a core, including interrupts and time stolen by the hypervisor."""
    with open("/proc/stat") as file:
        for line in file:
            if line.startswith(f"cpu{core} "):
                user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
                return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND
    raise RuntimeError(f"no core {core} in /proc/stat")


def peak_rss_kib(pid):
    """The peak resident set of a process."""
    return _status_kib(pid, "VmHWM")


def rss_kib(pid):
    """The resident set of a process."""
    return _status_kib(pid, "VmRSS")


def _status_kib(pid, field):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
    # An ended process has no memory.
    raise ProcessLookupError(f"no {field} of process {pid}")


def _first_line(*command):
    """The first output line of a program, or `None` if it does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).splitlines()
    return lines[0].strip() if lines else None


def _cpu_model():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def machine_facts(repository):
    """The facts that others need to judge the figures."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": _first_line("git", "-C", repository, "describe", "--always", "--dirty", "--abbrev=12"),
        "cpu_model": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "kernel": platform.release(),
        "wrk": _first_line("wrk", "-v"),
        "nginx": _first_line("nginx", "-v"),
        "redis": _first_line("redis-server", "--version"),
        "java": _first_line("java", "-version"),
    }


def build_ids(pid):
    """The build ids, in hexadecimal, of the ELF files mapped by a process."""
    with open(f"/proc/{pid}/maps") as file:
        mapped = {line.split(maxsplit=5)[5].strip() for line in file if " r-xp " in line and "/" in line}
    return sorted(filter(None, map(_build_id, mapped)))


@functools.cache
def _build_id(path):
    with open(path, "rb") as file:
        data = file.read()
    # A note of owner "GNU" and kind 3: lengths of name and content, kind, name, content.
    at = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    return data[at + 16:at + 36].hex() if at >= 0 else None


def watch_stolen():
    """Returns a function for the share of CPU time stolen by the hypervisor since this call."""
    before_s, started_s = _stolen_s(), time.monotonic()
    return lambda: (_stolen_s() - before_s) / (time.monotonic() - started_s) / os.cpu_count()


def _stolen_s():
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / TICKS_PER_SECOND
