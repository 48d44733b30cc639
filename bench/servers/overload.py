"""Beyond the limit: goodput, refusals and latency at half to five times the sustained rate.

`slow-store` is Kvant's server with a store whose every operation takes a millisecond; `sync-always`
waits for the disk's own fsync.
"""

import collections
import os
import statistics

import harness
import overload_graph
import under_test
import witness

CORES = ("0", "1")
THREADS = 1
# Options of `kvant load`; the kind of request, and of operation in the server's metrics; options of
# `kvant serve`; whether serving costs at least ten times a refusal, which the goals for refusals and
# admitted requests assume.
Case = collections.namedtuple("Case", "workload kind fixed is_dear server keys_max", defaults=(under_test.Kvant, None))
CASES = {
    "point-get": Case(["--workload", "get"], "get", {}, False),
    "point-put": Case(["--workload", "put", "--value-bytes", "12"], "put", {}, False),
    "ranges": Case(["--workload", "range", "--range-records", "100"], "range", {}, True),
    "sync-always": Case(["--workload", "put", "--value-bytes", "12"], "put", {"sync": "always"}, True),
    "slow-store": Case(["--workload", "get"], "get", {}, True, under_test.SlowStore, 100_000),
}
# Goodput beyond the limit, as a share of the highest of any step.
GOODPUT_PART = 0.9
REFUSAL_MS = 5
# p99 of admitted requests, relative to its value at this share of the limit.
ADMITTED_FACTOR, ADMITTED_TIMES = 0.8, 3
# After a step beyond the limit: half of it for this long, of which the second second counts.
RECOVERY_S = 3
RECOVERY_FACTOR = 0.5
# The witness sends at most this share of the limit.
WITNESS_PART = 0.02
PHASES = ("selector", "body", "queue", "storage", "answer")


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=3, help="(3)")
    parser.add_argument("--seconds", type=int, default=10, choices=range(1, 61), metavar="1..60",
                        help="length of a step (10)")
    parser.add_argument("--search-seconds", type=int, default=2, help="length of a step of the search for the limit (2)")
    parser.add_argument("--factors", default="0.5,0.8,1,2,5", help="offered load, by the limit (0.5,0.8,1,2,5)")
    parser.add_argument("--cases", default=",".join(CASES), help="(all, separated by commas)")
    parser.add_argument("--connections", type=int, default=1024, help="(1024)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000; slow-store: at most 100000)")
    parser.add_argument("--slo", default="p99<50ms", help="what the limit has to hold (p99<50ms)")
    parser.add_argument("--limits", default="", metavar="CASE=RATE,...",
                        help="limits that are known: search no others for these cases")
    parser.add_argument("--witness-rate", type=int, default=200, help="requests a second that are timed one by one (200)")
    parser.add_argument("--svg", metavar="FILE", help="draw goodput and latency by offered load")


def measure(settings):
    known = {name: float(rate) for name, _, rate in (part.partition("=") for part in settings.limits.split(",") if part)}
    result = {"serve_options": under_test.options_of(settings), "connections": settings.connections, "slo": settings.slo,
              "limits": {}, "steps": []}
    for name in settings.cases.split(","):
        case = CASES[name]
        kvant = case.server(settings, fixed=case.fixed)
        with under_test.running(kvant):
            if case.kind != "put":
                under_test.fill(settings, kvant, _keys(settings, case))
            limit = known.get(name) or _limit(settings, kvant, name)
            result["limits"][name] = limit
            harness.note(f"{name}: the limit is {limit:,.0f}/s")
            for round_number in range(1, settings.rounds + 1):
                for factor in map(float, settings.factors.split(",")):
                    step = under_test.undisturbed(f"{name} {factor} x", lambda: _step(settings, kvant, name, limit, factor),
                                                  lambda step: step["run"])
                    result["steps"].append(step | {"case": name, "factor": factor, "round": round_number})
                    harness.note(f"{name} {round_number}/{settings.rounds} {factor} x: goodput {step['goodput']:,.0f}/s")
    return result


def merge(results):
    """Merges several results. Cases of the same name must have the same limit."""
    whole = results[0]
    for other in results[1:]:
        for name, limit in other["limits"].items():
            if whole["limits"].setdefault(name, limit) != limit:
                raise harness.BenchError(f"{name}: limits of {whole['limits'][name]:,.0f} and {limit:,.0f}/s do not go together")
        whole["steps"] += other["steps"]
    return whole


def _keys(settings, case):
    return min(settings.keys, case.keys_max or settings.keys)


def _options(settings, name):
    return [*CASES[name].workload, "--keys", str(_keys(settings, CASES[name]))]


def _limit(settings, kvant, name):
    found = under_test.find_max(settings, kvant, settings.connections, settings.search_seconds, settings.slo,
                                *_options(settings, name))
    if not found["rate_max_per_s"]:
        raise harness.BenchError(f"{name}: no rate holds {settings.slo}: {'; '.join(found['reasons'])}")
    return found["rate_max_per_s"]


def _step(settings, kvant, name, limit, factor):
    case = CASES[name]
    kvant.settle()
    counters, buckets = kvant.counters(), kvant.phase_buckets()
    rate = max(1, min(settings.witness_rate, int(limit * WITNESS_PART)))
    with witness.Witness(kvant.port, case.kind, rate, _keys(settings, case)) as seen:
        run = under_test.drive(settings, kvant, settings.connections, settings.seconds, f"-R{int(limit * factor)}",
                               *_options(settings, name))
        seen.send_no_more()
        grown = {path: count - counters.get(path, 0) for path, count in kvant.counters().items()}
        buckets_after = kvant.phase_buckets()
        # Immediately, while the overload still has effects.
        recovery = None
        if factor > 1:
            recovery = under_test.drive(settings, kvant, settings.connections, RECOVERY_S, f"-R{int(limit * RECOVERY_FACTOR)}",
                                        *_options(settings, name))
    p99 = lambda operation, phase: under_test.quantile_s(buckets[operation, phase], buckets_after[operation, phase], 0.99)
    done = sum(count for status, count in run["statuses"].items() if witness.is_admitted(int(status)))
    return {
        "run": run, "witness": seen.figures(), "recovery": recovery,
        "counters_grown": {path: count for path, count in grown.items() if count},
        "server_p99": {"admitted": p99(case.kind, "total"), "refused": p99("refused", "total"),
                       **{phase: p99(case.kind, phase) for phase in PHASES}},
        "goodput": done / run["seconds"], "refused": (run["completed"] - done) / run["seconds"], "offered": run["sent"] / run["seconds"],
    }


def show(result, settings):
    print(f"{result['connections']} connections, limit: {result['slo']}. Medians (least–largest) of the rounds; "
          "times in milliseconds.")
    print("`sent` is less than `planned` where all connections wait, or the generator can send no more.\n")
    summary = summarise(result)
    spread = lambda values, digits=2: harness.spread(values, digits=digits) if values else "–"
    rows, phases = [], []
    for row in summary:
        title = f"{row['case']} {row['factor']:g} x"
        rows.append([title, f"{row['planned']:,.0f}",
                     spread(row["sent"], 0), spread(row["goodput"], 0),
                     f"{statistics.median(row['goodput_part']):.0%}", spread(row["refused"], 0), row["reasons"] or "–",
                     spread(row["load_p99_ms"]), spread(row["admitted_p99_ms"]), spread(row["server_p99_ms"]), spread(row["refused_p50_ms"]),
                     spread(row["refused_p99_ms"]), _bounds(row["server_refused_bound_ms"]), spread(row["rss_mib"], 0),
                     spread(row["after_p99_ms"]), f"{max(row['stolen_part']):.1%}" if row["stolen_part"] else "–",
                     f"{row['valid']} of {row['rounds']}"])
        phases.append([title, *(spread(row[f"server_{phase}_p99_ms"]) for phase in PHASES)])
    print(harness.markdown(["case, x limit", "planned /s", "sent /s", "goodput /s", "of the most", "refused /s",
                            "why: share in p99", "load p99", "admitted p99", "by the server", "refusals p50", "refusals p99",
                            "by the server, at most", "RSS MiB", "p99 1–2 s after", "stolen", "valid"], rows))
    print("\nWhere the server's time of what is admitted goes: p99 of each phase.\n")
    print(harness.markdown(["case, x limit", *PHASES], phases))
    print("\n" + "\n".join(_verdicts(summary)))
    print(f"\n`stolen`: {under_test.STOLEN}")
    print("\nTwo clocks. The server's own counts from the turn of its event loop that saw that a request had come (/metrics), and is in\n"
          "buckets: p99 is reckoned within its bucket, that of refusals is the bucket's bound. The witness times single requests on\n"
          "connections of its own, from write to last byte; they take turns, so that none comes back at once. The load's own do, and\n"
          "are not read again at once when they were refused: what their next request then lies in the socket is in `load p99` alone.")
    if settings.svg:
        os.makedirs(os.path.dirname(os.path.abspath(settings.svg)), exist_ok=True)
        with open(settings.svg, "w") as file:
            file.write(overload_graph.svg(summary, " ".join(result["serve_options"]) or "default options"))


def _bounds(bounds_ms):
    return ", ".join(f"{bound:g}" for bound in sorted(set(bounds_ms))) or "–"


def summarise(result):
    """One dict per case and factor."""
    rows = []
    for case, factor in dict.fromkeys((step["case"], step["factor"]) for step in result["steps"]):
        steps = [step for step in result["steps"] if (step["case"], step["factor"]) == (case, factor)]
        most = {}
        for step in result["steps"]:
            if step["case"] == case:
                most[step["round"]] = max(most.get(step["round"], 0), step["goodput"])
        ms = lambda values: [value / 1e6 for value in values if value is not None]
        server_ms = lambda what, figure="reckoned_s": [
            step["server_p99"][what][figure] * 1e3 for step in steps if (step["server_p99"][what] or {}).get(figure) is not None]
        reasons = {}
        for step in steps:
            for answer in step["witness"]["answers"]:
                if not witness.is_admitted(answer["status"]):
                    reasons.setdefault(f"{answer['status']} {answer['reason']}".strip(), []).append(answer)
        refused = sum(answer["count"] for answers in reasons.values() for answer in answers)
        rows.append({
            "case": case, "factor": factor, "rounds": len(steps), "planned": result["limits"][case] * factor,
            "sent": [step["offered"] for step in steps], "goodput": [step["goodput"] for step in steps],
            "goodput_part": [step["goodput"] / (most[step["round"]] or 1) for step in steps],
            "refused": [step["refused"] for step in steps],
            "reasons": ", ".join(
                f"{name} {sum(answer['count'] for answer in answers) / refused:.0%} in "
                f"{statistics.median(answer['p99_ns'] for answer in answers) / 1e6:.1f}" for name, answers in sorted(reasons.items())),
            "load_p99_ms": ms(step["run"]["service"]["p99"] for step in steps),
            "admitted_p99_ms": ms(step["witness"]["admitted"]["p99_ns"] for step in steps),
            "refused_p50_ms": ms(step["witness"]["refused"]["p50_ns"] for step in steps),
            "refused_p99_ms": ms(step["witness"]["refused"]["p99_ns"] for step in steps),
            "server_p99_ms": server_ms("admitted"), "server_above_ms": server_ms("admitted", "above_s"),
            "server_refused_bound_ms": server_ms("refused", "bound_s"),
            **{f"server_{phase}_p99_ms": server_ms(phase) for phase in PHASES},
            "rss_mib": [step["run"]["rss_max_kib"] / 1024 for step in steps],
            "after_p99_ms": ms((step["recovery"]["p99_by_second_ns"] + [None, None])[1] for step in steps if step["recovery"]),
            # Not in earlier files.
            "stolen_part": [step["run"]["stolen_part"] for step in steps if "stolen_part" in step["run"]],
            "valid": sum(step["run"]["is_valid"] is True for step in steps),
        })
    return rows


def _verdicts(summary):
    by_step = {(row["case"], row["factor"]): row for row in summary}
    for row in summary:
        if row["factor"] <= 1:
            continue
        name = f"{row['case']} at {row['factor']:g} x"
        part = statistics.median(row["goodput_part"])
        yield harness.verdict(f"{name}: goodput at least {GOODPUT_PART:.0%} of the most", part >= GOODPUT_PART, f"{part:.0%}")
        if not CASES[row["case"]].is_dear:
            continue
        bounds, outside = row["server_refused_bound_ms"], row["refused_p99_ms"]
        yield harness.verdict(f"{name}: p99 of refusals within {REFUSAL_MS} ms of being read, by the server",
                              statistics.median(bounds) <= REFUSAL_MS if bounds else None,
                              f"at most {_bounds(bounds)} ms; from the client's write {harness.spread(outside)}" if outside else
                              f"at most {_bounds(bounds)} ms")
        base = by_step.get((row["case"], ADMITTED_FACTOR))
        # The server's figures are as precise as its buckets: if the limit is within one, there is no
        # verdict.
        for field, above, clock in (("server_p99_ms", "server_above_ms", "by the server"),
                                    ("admitted_p99_ms", "admitted_p99_ms", "from the client's write")):
            goal = f"{name}: p99 of what is admitted within {ADMITTED_TIMES} x of that at {ADMITTED_FACTOR:g} x, {clock}"
            if not base or not base[field] or not row[field]:
                yield harness.verdict(goal, None, "")
                continue
            now_ms, base_ms = statistics.median(row[field]), statistics.median(base[field])
            limit_ms = ADMITTED_TIMES * base_ms
            holds = now_ms <= limit_ms or (None if not row[above] or statistics.median(row[above]) < limit_ms else False)
            yield harness.verdict(goal, holds, f"{now_ms / base_ms:.1f} x ({base_ms:.2f}, then {now_ms:.2f} ms)")
