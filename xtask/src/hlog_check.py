"""Reads the files of kvant load with HdrHistogram's Python library and a JSON Schema validator, and
compares them.

Usage: hlog_check.py SCHEMA RUN.hlog RUN.json [RUN.hgrm]

Exits with 0 if all agree; otherwise prints the differences and exits with 1.
"""

import json
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from urllib.parse import unquote

import jsonschema
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

# As in crates/kvant-load/src/histogram.rs.
LOWEST_NS, HIGHEST_NS, DIGITS = 256, 24 * 3600 * 10**9, 3
PERCENTILES = {
    "p50_ns": "50", "p75_ns": "75", "p90_ns": "90", "p99_ns": "99", "p99_9_ns": "99.9", "p99_99_ns": "99.99",
}
LINE = re.compile(r"^Tag=([^, ]+),(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),(HIST[A-Za-z0-9+/=]+)$")

problems = []
checked = Counter()


def expect(what, found, wanted):
    checked["figures"] += 1
    if found != wanted:
        problems.append(f"{what}: found {found}, expected {wanted}")


def new_histogram():
    return HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)


def counts(histogram):
    """The count of each nonempty unit of resolution, by the unit's first value."""
    recorded = (item for item in histogram.get_recorded_iterator() if item.count_at_value_iterated_to)
    found = Counter()
    for item in recorded:
        start = histogram.get_lowest_equivalent_value(item.value_iterated_to)
        found[start] += item.count_at_value_iterated_to
    return found


def percentile(histogram, values, percent):
    """The end of the unit below which the given part of all values lies, computed without rounding."""
    total = sum(values.values())
    wanted = min(max(1, math.ceil(Fraction(percent) / 100 * total)), total)
    below = 0
    for value in sorted(values):
        below += values[value]
        if below >= wanted:
            return histogram.get_highest_equivalent_value(value)
    return 0


def read_log(path):
    """Intervals merged by tag, as the library reads them. Also checks the lines against the format."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    expect("first line", lines[0], "#[Histogram log format version 1.3]")
    for name in ("StartTime", "BaseTime"):
        expect(f"{name} lines", sum(line.startswith(f"#[{name}: ") for line in lines), 1)
    rows = [line for line in lines if not line.startswith(("#", '"'))]
    for row in rows:
        match = LINE.match(row)
        if not match:
            problems.append(f"not a line of the format: {row[:80]}")
            continue
        largest = HdrHistogram.decode(match[5]).get_max_value() / 1e6
        expect(f"Interval_Max of {row[:40]}", match[4], f"{largest:.3f}")

    reader = HistogramLogReader(str(path), new_histogram())
    merged, ends, count = {}, {}, 0
    while (interval := reader.get_next_interval_histogram()) is not None:
        count += 1
        tag = unquote(interval.get_tag())
        begin = round(interval.get_start_time_stamp())
        if begin < ends.get(tag, 0):
            problems.append(f"{tag}: the interval at {begin} ms begins before the last one ended")
        ends[tag] = round(interval.get_end_time_stamp())
        merged.setdefault(tag, new_histogram()).add(interval)
    expect("intervals that the library read", count, len(rows))
    checked["intervals"] += count
    return merged


def check_latency(what, latency):
    """Compares a latency of the JSON with its histogram; returns the histogram."""
    histogram = HdrHistogram.decode(latency["histogram"])
    values = counts(histogram)
    total = sum(values.values())
    expect(f"{what} count", latency["count"], total)
    if total == 0:
        expect(f"{what} figures", sum(v for k, v in latency.items() if k.endswith("_ns")), 0)
        return histogram
    for name, percent in PERCENTILES.items():
        checked["figures"] += 1
        # Libraries round the rank differently: both results are within one value of the exact one.
        near = [percentile(histogram, values, Fraction(percent) + Fraction(100 * by, total)) for by in (-1, 0, 1)]
        theirs = histogram.get_value_at_percentile(float(percent))
        if latency[name] not in near[1:] or theirs not in near:
            problems.append(f"{what} {name}: found {latency[name]}, the library has {theirs}, exact is {near[1]}")
    expect(f"{what} max_ns", latency["max_ns"], max(values))
    expect(f"{what} min_ns", latency["min_ns"], min(values))
    for name, theirs in (("mean_ns", histogram.get_mean_value()), ("stdev_ns", histogram.get_stddev())):
        if abs(latency[name] - theirs) > 0.5 + 1e-9 * theirs:
            problems.append(f"{what} {name}: found {latency[name]}, the library has {theirs}")
    return histogram


def check_result(path, schema_path, merged):
    """Compares the JSON with its schema, its histograms and the log; returns all response times."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    for error in jsonschema.Draft202012Validator(schema).iter_errors(result):
        problems.append(f"schema: {error.json_path}: {error.message[:120]}")

    sums, together = {}, new_histogram()
    for number, phase in enumerate(result["phases"]):
        what = f"phase {number}"
        for name in ("response", "service", "response_with_unanswered", "unanswered"):
            histogram = check_latency(f"{what} {name}", phase[name])
            if name == "response":
                together.add(histogram)
        tags = {"send-lag": phase["send_lag"], "connect": phase["connect"]}
        for op in phase["ops"]:
            tags[f"{op['name']}/response"] = op["response"]
            tags[f"{op['name']}/service"] = op["service"]
        for tag, latency in tags.items():
            sums.setdefault(tag, new_histogram()).add(check_latency(f"{what} {tag}", latency))
    for tag, histogram in sums.items():
        expect(f"log {tag}", counts(merged.pop(tag, new_histogram())), counts(histogram))
        checked["tags"] += 1
    expect("tags of the log that the result does not have", sorted(merged), [])
    return together


def expected_rows(histogram):
    """Value in ms, quantile and count of each row: five rows for each halving of the distance to 100 %, a row for the
    first value that reaches each quantile, and a last one. The Python library uses other steps than the reference
    implementation, so that only its counts are used."""
    values = counts(histogram)
    total = sum(values.values())
    units = iter(sorted(values))
    percent, below, value = 0.0, 0, 0
    while below < total:
        while below == 0 or 100.0 * below / total < percent:
            value = next(units)
            below += values[value]
        yield histogram.get_highest_equivalent_value(value) / 1e6, percent / 100, below
        percent += 100.0 / (5 * 2 ** (math.floor(math.log2(100.0 / (100.0 - percent))) + 1))
    if total:
        yield histogram.get_highest_equivalent_value(value) / 1e6, 1.0, total


def check_hgrm(path, together):
    """Compares the rows of a percentile file with those computed from the histogram."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    expect("header of the percentile file", lines[0], ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"])
    rows = list(expected_rows(together))
    expect("rows of the percentile file", len(lines) - 1, len(rows))
    for words, (value_ms, quantile, count) in zip(lines[1:], rows):
        wanted = [f"{value_ms:.3f}", f"{quantile:.12f}", str(count)]
        if quantile < 1:
            wanted.append(f"{1 / (1 - quantile):.2f}")
        expect("row of the percentile file", words, wanted)
        checked["rows"] += 1


def main():
    schema, hlog, result, *hgrm = sys.argv[1:]
    together = check_result(result, schema, read_log(hlog))
    for path in hgrm:
        check_hgrm(path, together)
    for problem in problems[:40]:
        print(problem)
    if len(problems) > 40:
        print(f"and {len(problems) - 40} more")
    print(", ".join(f"{count} {what}" for what, count in checked.items()), "compared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
