"""The highest rates that Kvant and one-nio with LevelDB sustain, and latency at Java's limit.

Both servers run, filled, and take turns for each workload and round. A rate holds if the SLO holds,
99.5 % of the plan gets a response, the backlog does not grow and at most 0.1 % fails (`kvant load
--find-max`). Then both are loaded at Java's highest rate.
"""

import statistics

import harness
import peers
import under_test

CORES = ("0,1", "0,1")
THREADS = 2

# The scenarios of the report that the goals come from, as options of `kvant load`, and the goals as
# multiples of Java's rate. The report's own rates come from another machine and are no goals.
SCENARIOS = {
    "get-one": (["--workload", "get", "--keys", "1"], None),
    "get-existing": (["--workload", "get"], 1.6),
    "get-absent": (["--workload", "get", "--hit-ratio", "0"], 1.8),
    "get-mixed": (["--workload", "get", "--hit-ratio", "0.5"], 1.8),
    "put": (["--workload", "put", "--value-bytes", "12"], 1.5),
    "put-1-to-10000-bytes": (["--workload", "put", "--value-bytes", "1..10000"], 5.0),
}
P99_9_TIMES_LOWER = 20
# At Java's rate, this many times the length of a step, because the tail needs requests.
COMPARED_STEPS = 4


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=5, help="(5)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a step of the search (3)")
    parser.add_argument("--connections", type=int, default=64, help="(64)")
    parser.add_argument("--slo", default="p99<50ms", help="what a rate has to hold (p99<50ms)")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="(all, separated by commas)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="records (1000000)")
    parser.add_argument("--large-keys", type=int, default=100_000,
                        help="different keys among the PUTs of 1 to 10,000 bytes, which bounds the disk space (100000)")
    parser.add_argument("--java-options", default="-Xms1g -Xmx1g", help="('-Xms1g -Xmx1g')")
    parser.add_argument("--java-selectors", type=int, default=2, help="selector threads of the Java server (2)")
    parser.add_argument("--java-warm-up", type=int, default=8, help="seconds of each scenario before its first round (8)")


class Java(peers.OneNioLevelDb):
    def selectors(self):
        return self.settings.java_selectors


def measure(settings):
    # LevelDB makes no fsyncs, so neither does Kvant, unless the command line says so.
    kvant, java = under_test.Kvant(settings, defaults={"sync": "os"}), Java(settings)
    result = {"serve_options": kvant.options(), "slo": settings.slo, "connections": settings.connections, "runs": []}
    with under_test.running(kvant, java):
        for server in (kvant, java):
            harness.note(f"{server.name}: fill")
            under_test.fill(settings, server, settings.keys)
        for name in settings.scenarios.split(","):
            for server in (kvant, java):
                seconds = settings.java_warm_up if server is java else 1
                under_test.drive(settings, server, settings.connections, seconds, "-R0", *_options(settings, name))
            for round_number in range(1, settings.rounds + 1):
                # The order alternates, so that a machine that becomes slower favours neither.
                servers = [kvant, java] if round_number % 2 else [java, kvant]
                run = _round(settings, name, servers)
                run["round"] = round_number
                result["runs"].append(run)
                harness.note(f"{name} {round_number}/{settings.rounds}: " + ", ".join(
                    f"{server.name} {_rate_text(run, server.name)}" for server in servers))
    return result


def _options(settings, name):
    options, _ = SCENARIOS[name]
    if "--keys" in options:
        return options
    return [*options, "--keys", str(settings.large_keys if name == "put-1-to-10000-bytes" else settings.keys)]


def _round(settings, name, servers):
    options = _options(settings, name)
    run = {"scenario": name, "found": {}, "at_java_rate": {}}
    for server in servers:
        server.settle()
        run["found"][server.name] = under_test.find_max(settings, server, settings.connections, settings.seconds, settings.slo,
                                                        *options)
    rate = run["found"][peers.OneNioLevelDb.name]["rate_max_per_s"]
    if rate:
        for server in servers:
            server.settle()
            run["at_java_rate"][server.name] = under_test.drive(
                settings, server, settings.connections, settings.seconds * COMPARED_STEPS, f"-R{int(rate)}", "--warmup", "1s",
                *options)
    return run


def _rate_text(run, server):
    rate = run["found"][server]["rate_max_per_s"]
    return f"{rate:,.0f}/s" if rate else "no rate held"


def show(result, _settings):
    kvant, java = peers.Kvant.name, peers.OneNioLevelDb.name
    print(f"{result['connections']} connections, SLO {result['slo']}. Medians (least–largest) of the rounds; ratios are medians of "
          "the rounds' ratios.\n")
    rows, verdicts = [], []
    for name in dict.fromkeys(run["scenario"] for run in result["runs"]):
        runs = [run for run in result["runs"] if run["scenario"] == name]
        rates = {server: [run["found"][server]["rate_max_per_s"] or 0 for run in runs] for server in (kvant, java)}
        ratios = [ours / theirs for ours, theirs in zip(rates[kvant], rates[java]) if theirs]
        compared = [run["at_java_rate"] for run in runs if run["at_java_rate"]]
        # Requests without a response count with the time that they had waited.
        tails = {server: [run[server]["response_all"]["p99_9"] / 1e6 for run in compared] for server in (kvant, java)}
        lower = [theirs / ours for ours, theirs in zip(tails[kvant], tails[java])]
        rows.append([name, *(harness.spread(rates[server], digits=0) for server in (kvant, java)), _spread(ratios),
                     "/".join(f"{ends(runs, server)}" for server in (kvant, java)),
                     *(_spread(tails[server], " ms") for server in (kvant, java)), _spread(lower),
                     *(_spread([run[server]["cpu_us"] for run in compared], " us") for server in (kvant, java))])
        wanted = SCENARIOS[name][1]
        if wanted:
            verdicts.append(harness.verdict(f"{name}: breaking point at least {wanted} x Java's",
                                            statistics.median(ratios) >= wanted if ratios else None, _spread(ratios)))
        verdicts.append(harness.verdict(f"{name}: p99.9 at Java's breaking point at least {P99_9_TIMES_LOWER} x lower",
                                        statistics.median(lower) >= P99_9_TIMES_LOWER if lower else None, _spread(lower)))
    print(harness.markdown(["scenario", "Kvant /s", "Java /s", "x Java", "ended by (Kvant/Java)", "p99.9 at Java's rate: Kvant",
                            "Java", "x lower", "CPU a request there: Kvant", "Java"], rows))
    print("\n" + "\n".join(verdicts))
    not_valid = sum(figures["is_valid"] is False for run in result["runs"] for figures in run["at_java_rate"].values())
    if not_valid:
        of = sum(len(run["at_java_rate"]) for run in result["runs"])
        print(f"\n{not_valid} of {of} runs at Java's rate were bound by the generator, which shares the cores: "
              "their latencies are too high, on both sides")


def ends(runs, server):
    """What limited the searches: the server, the generator, or neither."""
    found = [run["found"][server]["limit"] for run in runs]
    return ", ".join(f"{limit} {found.count(limit)}" if len(set(found)) > 1 else limit for limit in dict.fromkeys(found))


def _spread(values, unit=""):
    return harness.spread(values, unit) if values else "–"
