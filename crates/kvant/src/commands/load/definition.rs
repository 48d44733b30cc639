//! The command line of `kvant load`, one row an option: wrk2's options under wrk2's names, ours
//! with long names only.

use super::parse;
use crate::commands::option::{About, argument, file, flag, option, words};
use clap::builder::ArgPredicate::IsPresent;
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use kvant_load::workload::{KeyBytes, KeyDist, Mix, ValueBytes};
use kvant_load::{Arrival, units};
use std::ffi::OsString;

const ABOUT: &str = "Load a server at a constant rate, as wrk2 does";

const LONG_ABOUT: &str = "Load a server at a constant rate, as wrk2 does, and say what its latency was, counted from the \
    moment at which each request was due.\n\nScripts, options and text output are wrk2's; the scripts of wrk 4 run too. Counts \
    are 1000, 10k, 1M; times are 30, 30s, 5m, 1h, and 250us, 10ms. What was measured goes to standard output, progress and \
    warnings to standard error. SIGINT ends the load and prints what was measured until then; a second one ends the process.";

const AFTER_HELP: &str = "Exit codes: 0 done; 1 could not run: the server cannot be reached, a script failed, a file cannot \
    be read or written; 2 wrong usage; 3 an assertion is broken; 4 an assertion failed or cannot be decided, and the \
    generator, not the server, was the limit, or others disturbed the machine: measure again on a quieter or larger one; 130 a second SIGINT.";

pub(crate) fn command() -> Command {
    Command::new("load")
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .after_help(AFTER_HELP)
        .version(clap::crate_version!())
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .arg_required_else_help(true)
        .args_override_self(true)
        .args_conflicts_with_subcommands(true)
        .override_usage(
            "kvant load [OPTIONS] -R RATE URL... [-- ARGS...]\n       kvant load fill [OPTIONS] --keys N URL...\n       \
             kvant load compare A.json B.json",
        )
        .next_help_heading("Options of wrk2")
        .args(wrk2())
        .next_help_heading("Plan")
        .args(plan())
        .next_help_heading("Requests")
        .args(requests())
        .next_help_heading("Workload")
        .args(workload())
        .next_help_heading("Results")
        .args(results())
        .next_help_heading(None::<&str>)
        .arg(urls())
        .arg(
            argument("args", "ARGS", parse::any)
                .last(true)
                .num_args(0..)
                .about("Arguments of the script's init(), after `--`"),
        )
        .subcommand(fill())
        .subcommand(compare())
}

fn wrk2() -> impl IntoIterator<Item = Arg> {
    [
        threads("2"),
        connections("10"),
        option("duration", "T", "10s", parse::positive_time)
            .short('d')
            // A number of requests may take as long as histograms reach.
            .default_value_ifs([("ramp", IsPresent, "10s"), ("requests", IsPresent, "24h")])
            .about("How long to measure, for each rate"),
        option("rate", "RATE,...", "", parse::rates)
            .short('R')
            .allow_hyphen_values(true)
            .about(
                "Requests a second, over all threads; several are held one after the other; 0 sends as soon as an answer is \
                 there (closed loop). Required",
            ),
        file("script").short('s').about("Lua script that makes the requests, as for wrk2 and wrk"),
        header(),
        flag("latency").short('L').about("Print the distribution of the response time"),
        flag("u_latency").short('U').about(
            "Print the distribution of the service time too: from the request's write, not from its plan",
        ),
        flag("batch_latency").short('B').about("Record only the last answer of a pipelined batch"),
        timeout(),
        Arg::new("version")
            .short('v')
            .long("version")
            .action(ArgAction::Version)
            .help("Print the version"),
    ]
}

fn plan() -> impl IntoIterator<Item = Arg> {
    [
        option("ramp", "FROM..TO", "", parse::ramp)
            .about("A rate that changes evenly over the duration, instead of --rate"),
        words("arrival", &Arrival::ALL.map(Arrival::name), "uniform", parse::arrival).about(
            "How planned times are spread: evenly over all connections, as independent users arrive, or each connection \
             for itself",
        ),
        option("requests", "COUNT", "", parse::positive_number).short('n').about(
            "End each rate after so many requests, whatever came of them; without -d that may take any time",
        ),
        option("warmup", "T", "0s, and 3s with --find-max", units::parse_time)
            .default_value_if("find-max", "true", "3s")
            .about("Load that is not measured, before each measured time"),
        flag("wrk2-exact").about(
            "wrk2's schedule and its 10 s of calibration within the duration, in place of the better ones",
        ),
        seed(),
        flag("find-max").about(
            "Find the highest rate that holds --slo; -d is the length of a step. Steps that failed while others disturbed \
             the machine are repeated",
        ),
        option("slo", "EXPR", "p99<5ms", parse::assertion)
            .action(ArgAction::Append)
            .about("What --find-max has to hold; may be repeated"),
        // 20us is about the time of a wake-up; wrk2 waits for whole milliseconds.
        option("spin", "T", "20us; 0s with --wrk2-exact", parse::spin)
            .default_value_if("wrk2-exact", "true", "0s")
            .about(
                "How long before a planned time a thread polls instead of sleeping, at most a tenth of the time between its \
                 requests; `always`: it never sleeps, for a core each",
            ),
    ]
}

fn requests() -> impl IntoIterator<Item = Arg> {
    [
        option("method", "METHOD", "GET, and POST with --body", parse::method)
            .default_value_if("body", IsPresent, "POST")
            .about("Method of the requests"),
        option("body", "TEXT|@FILE", "", parse::body)
            .allow_hyphen_values(true)
            .about("Body of the requests: a text, or what a file holds"),
        option("ok", "STATUS,...", "", parse::statuses)
            .about("Statuses over 399 that count as success, such as 404"),
        pipeline("1"),
        cacert(),
    ]
}

fn workload() -> impl IntoIterator<Item = Arg> {
    let workloads = ["status", "put", "get", "delete", "range", "mixed"];
    [
        words("workload", &workloads, "", parse::any)
            .about("Requests for Kvant's interface, made without a script"),
        option("keys", "N", "1M", units::parse_count).about("How many keys there are"),
        words("key-dist", &KeyDist::ALL.map(KeyDist::name), "uniform", KeyDist::parse)
            .about("Which keys are asked for"),
        key_bytes(),
        value_bytes(),
        option("hit-ratio", "0..1", "1", parse::ratio)
            .about("Share of reads that ask for keys which are there"),
        option("mix", "OP=WEIGHT,...", "", Mix::parse)
            .about("Shares of operations of --workload mixed, such as get=90,put=10"),
        option("range-records", "N", "100", units::parse_count)
            .about("Most records that a range asks for"),
    ]
}

fn results() -> impl IntoIterator<Item = Arg> {
    [
        option("assert", "EXPR", "", parse::assertion)
            .action(ArgAction::Append)
            .about("What must hold, such as 'p99<5ms'; else the exit code is 3; may be repeated"),
        flag("abort-on-fail").about(
            "End the load when an --assert is broken: failures and latencies are looked at each second, all else at the end \
             of a rate",
        ),
        file("baseline").about("JSON of an earlier run, for assertions that compare with it"),
        file("json").about("Write everything that was measured as JSON"),
        file("hlog").about("Write a histogram for each second, as an HdrHistogram log"),
        file("hgrm")
            .about("Write the percentiles of the response time, for HdrHistogram's plotter"),
        option("profile", "FILE", "", parse::profile).value_hint(ValueHint::FilePath).about(
            "Record the generator itself while it measures: .html, .kprof, .pb.gz, or .collapsed for CPU time",
        ),
        quiet(),
    ]
}

fn fill() -> Command {
    Command::new("fill")
        .about("Store keys through HTTP, as fast as the server takes them")
        .long_about(
            "Store keys through HTTP, as fast as the server takes them, each once; what was refused is sent again.\n\nThe keys are \
             those that --workload get, put, delete, range and mixed ask for with the same --keys and --key-bytes.",
        )
        .after_help(
            "Exit codes: 0 all keys are stored; 1 they are not, or the server cannot be reached; 2 wrong usage; 130 a second \
             SIGINT.",
        )
        .args_override_self(true)
        .args([
            option("keys", "N", "", units::parse_count).about("How many keys to store; required"),
            key_bytes(),
            value_bytes(),
            pipeline("16"),
            threads("1"),
            connections("64"),
            timeout(),
            header(),
            seed(),
            cacert(),
            quiet(),
            urls(),
        ])
}

fn compare() -> Command {
    let report = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .required(true)
            .value_parser(value_parser!(OsString))
            .value_hint(ValueHint::FilePath)
            .help(help)
    };
    Command::new("compare")
        .about("Compare two runs that --json has written")
        .after_help(
            "Exit codes: 0 compared, whatever came out; 1 a file cannot be read; 2 wrong usage.",
        )
        .arg(report("A", "JSON of the first run: what it was"))
        .arg(report("B", "JSON of the second run: what it has become"))
}

fn threads(default: &'static str) -> Arg {
    option("threads", "N", default, parse::positive_count)
        .short('t')
        .about("Threads, one event loop each")
}

fn connections(default: &'static str) -> Arg {
    option("connections", "N", default, parse::positive_count)
        .short('c')
        .about("Connections, over all threads")
}

fn pipeline(default: &'static str) -> Arg {
    option("pipeline", "N", default, parse::pipeline)
        .about("Requests in one write, on each connection")
}

fn key_bytes() -> Arg {
    option("key-bytes", "N|MIN..MAX", "12", KeyBytes::parse).about("Length of keys")
}

fn value_bytes() -> Arg {
    option("value-bytes", "N|MIN..MAX", "12", ValueBytes::parse)
        .about("Length of values; grow:MIN..MAX for one byte more each time")
}

fn header() -> Arg {
    option("header", "'NAME: VALUE'", "", parse::header)
        .short('H')
        .action(ArgAction::Append)
        .about("Header of all requests; may be repeated")
}

fn timeout() -> Arg {
    option("timeout", "T", "2s", parse::positive_time)
        .short('T')
        .about("How long a request may take: then it is counted and its connection replaced")
}

fn seed() -> Arg {
    option("seed", "N", "1: runs repeat", parse::seed)
        .about("Seed of everything random; each thread has its own from it")
}

fn cacert() -> Arg {
    file("cacert")
        .about("Check the server's certificate against this PEM file [default: not checked]")
}

fn quiet() -> Arg {
    flag("quiet").about("No progress on standard error")
}

fn urls() -> Arg {
    argument("url", "URL", parse::url).num_args(0..).value_hint(ValueHint::Url).about(
        "http://, https://, or http+unix:// with the socket's path percent-encoded as the host; connections are shared out \
         over several",
    )
}
