//! The command line of `kvant load`: wrk2's options under wrk2's names, and ours as long options
//! only.
//!
//! Values are taken as they are: [`super::settings`] judges all of them together, so that all bad
//! ones are reported at once.

use crate::cli::Suggested;
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use std::ffi::OsString;

const ABOUT: &str = "Load a server at a constant rate, as wrk2 does";

const LONG_ABOUT: &str = "Load a server at a constant rate, as wrk2 does, and say what its latency was, counted from the \
    moment at which each request was due.\n\nScripts, options and text output are wrk2's; the scripts of wrk 4 run too. Counts \
    are 1000, 10k, 1M; times are 30, 30s, 5m, 1h, and 250us, 10ms. What was measured goes to standard output, progress and \
    warnings to standard error. SIGINT ends the load and prints what was measured until then; a second one ends the process.";

const AFTER_HELP: &str = "Exit codes: 0 done; 1 could not run: the server cannot be reached, a script failed, a file cannot \
    be read or written; 2 wrong usage; 3 an assertion is broken; 4 an assertion failed or cannot be decided, and the \
    generator, not the server, was the limit, or others disturbed the machine: measure again on a quieter or larger one; 130 a second SIGINT.";

/// Help headings.
const WRK2: &str = "Options of wrk2";
const PLAN: &str = "Plan";
const REQUESTS: &str = "Requests";
const WORKLOAD: &str = "Workload";
const RESULTS: &str = "Results";

/// The command.
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
        .args(wrk2())
        .args(plan())
        .args(requests())
        .args(workload())
        .args(results())
        .arg(urls())
        .arg(
            text("args", "ARGS", "Arguments of the script's init(), after `--`")
                .last(true)
                .num_args(0..),
        )
        .subcommand(fill())
        .subcommand(compare())
}

fn wrk2() -> Vec<Arg> {
    let args = vec![
        threads("2"),
        connections("10"),
        option(
            "duration",
            "T",
            "How long to measure, for each rate [default: 10s]",
        )
        .short('d'),
        rate(),
        file(
            "script",
            "FILE",
            "Lua script that makes the requests, as for wrk2 and wrk",
        )
        .short('s'),
        header(),
        flag("latency", "Print the distribution of the response time").short('L'),
        flag(
            "u_latency",
            "Print the distribution of the service time too: from the request's write, not from its plan",
        )
        .short('U'),
        flag(
            "batch_latency",
            "Record only the last answer of a pipelined batch",
        )
        .short('B'),
        timeout(),
        Arg::new("version")
            .short('v')
            .long("version")
            .action(ArgAction::Version)
            .help("Print the version"),
    ];
    headed(WRK2, args)
}

fn plan() -> Vec<Arg> {
    let args = vec![
        option(
            "ramp",
            "FROM..TO",
            "A rate that changes evenly over the duration, instead of --rate",
        ),
        words(
            "arrival",
            &["uniform", "poisson", "wrk2"],
            "How planned times are spread: evenly over all connections, as independent users arrive, or each \
             connection for itself [default: uniform]",
        ),
        option(
            "requests",
            "COUNT",
            "End each rate after so many requests, whatever came of them; without -d that may take any time",
        )
        .short('n'),
        option(
            "warmup",
            "T",
            "Load that is not measured, before each measured time [default: 0s, and 3s with --find-max]",
        ),
        flag(
            "wrk2-exact",
            "wrk2's schedule and its 10 s of calibration within the duration, in place of the better ones",
        ),
        seed(),
        flag(
            "find-max",
            "Find the highest rate that holds --slo; -d is the length of a step. Steps that failed while others disturbed the machine \
             are repeated",
        ),
        option(
            "slo",
            "EXPR",
            "What --find-max has to hold; may be repeated [default: p99<5ms]",
        )
        .action(ArgAction::Append),
        option(
            "spin",
            "T",
            "How long before a planned time a thread polls instead of sleeping, at most a tenth of the time between its \
             requests; `always`: it never sleeps, for a core each [default: 20us; 0s with --wrk2-exact]",
        ),
    ];
    headed(PLAN, args)
}

fn requests() -> Vec<Arg> {
    let args = vec![
        option("method", "METHOD", "Method of the requests [default: GET, and POST with --body]"),
        option("body", "TEXT|@FILE", "Body of the requests: a text, or what a file holds")
            .allow_hyphen_values(true),
        option("ok", "STATUS,...", "Statuses over 399 that count as success, such as 404"),
        option("pipeline", "N", "Requests in one write, on each connection [default: 1]"),
        cacert(),
    ];
    headed(REQUESTS, args)
}

fn workload() -> Vec<Arg> {
    let args = vec![
        words(
            "workload",
            &["status", "put", "get", "delete", "range", "mixed"],
            "Requests for Kvant's interface, made without a script",
        ),
        option("keys", "N", "How many keys there are [default: 1M]"),
        words(
            "key-dist",
            &["sequential", "uniform", "zipfian"],
            "Which keys are asked for [default: uniform]",
        ),
        option("key-bytes", "N|MIN..MAX", "Length of keys [default: 12]"),
        option(
            "value-bytes",
            "N|MIN..MAX",
            "Length of values; grow:MIN..MAX for one byte more each time [default: 12]",
        ),
        option(
            "hit-ratio",
            "0..1",
            "Share of reads that ask for keys which are there [default: 1]",
        ),
        option(
            "mix",
            "OP=WEIGHT,...",
            "Shares of operations of --workload mixed, such as get=90,put=10",
        ),
        option("range-records", "N", "Most records that a range asks for [default: 100]"),
    ];
    headed(WORKLOAD, args)
}

fn results() -> Vec<Arg> {
    let args = vec![
        option(
            "assert",
            "EXPR",
            "What must hold, such as 'p99<5ms'; else the exit code is 3; may be repeated",
        )
        .action(ArgAction::Append),
        flag(
            "abort-on-fail",
            "End the load when an --assert is broken: failures and latencies are looked at each second, all else at the end of a rate",
        ),
        file("baseline", "FILE", "JSON of an earlier run, for assertions that compare with it"),
        file("json", "FILE", "Write everything that was measured as JSON"),
        file("hlog", "FILE", "Write a histogram for each second, as an HdrHistogram log"),
        file(
            "hgrm",
            "FILE",
            "Write the percentiles of the response time, for HdrHistogram's plotter",
        ),
        file(
            "profile",
            "FILE",
            "Record the generator itself while it measures: .html, .kprof, .pb.gz, or .collapsed for CPU time",
        ),
        quiet(),
    ];
    headed(RESULTS, args)
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
        .arg(option("keys", "N", "How many keys to store; required"))
        .arg(option("key-bytes", "N|MIN..MAX", "Length of keys [default: 12]"))
        .arg(option("value-bytes", "N|MIN..MAX", "Length of values; grow:MIN..MAX for one byte more each time [default: 12]"))
        .arg(option("pipeline", "N", "Requests in one write, on each connection [default: 16]"))
        .arg(threads("1"))
        .arg(connections("64"))
        .arg(timeout())
        .arg(header())
        .arg(seed())
        .arg(cacert())
        .arg(quiet())
        .arg(urls())
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

fn headed(heading: &'static str, args: Vec<Arg>) -> Vec<Arg> {
    args.into_iter().map(|arg| arg.help_heading(heading)).collect()
}

fn threads(default: &str) -> Arg {
    option("threads", "N", &format!("Threads, one event loop each [default: {default}]")).short('t')
}

fn connections(default: &str) -> Arg {
    option("connections", "N", &format!("Connections, over all threads [default: {default}]"))
        .short('c')
}

fn rate() -> Arg {
    option(
        "rate",
        "RATE,...",
        "Requests a second, over all threads; several are held one after the other; 0 sends as soon as an answer is there \
         (closed loop). Required",
    )
    .short('R')
    .allow_hyphen_values(true)
}

fn header() -> Arg {
    option("header", "'NAME: VALUE'", "Header of all requests; may be repeated")
        .short('H')
        .action(ArgAction::Append)
}

fn timeout() -> Arg {
    option(
        "timeout",
        "T",
        "How long a request may take: then it is counted and its connection replaced [default: 2s]",
    )
    .short('T')
}

fn seed() -> Arg {
    option(
        "seed",
        "N",
        "Seed of everything random; each thread has its own from it [default: 1: runs repeat]",
    )
}

fn cacert() -> Arg {
    file(
        "cacert",
        "FILE",
        "Check the server's certificate against this PEM file [default: not checked]",
    )
}

fn quiet() -> Arg {
    flag("quiet", "No progress on standard error")
}

fn urls() -> Arg {
    text(
        "url",
        "URL",
        "http://, https://, or http+unix:// with the socket's path percent-encoded as the host; connections are shared out \
         over several",
    )
    .num_args(0..)
    .value_hint(ValueHint::Url)
}

fn text(id: &'static str, value: &'static str, help: &str) -> Arg {
    Arg::new(id).value_name(value).value_parser(value_parser!(OsString)).help(help.to_owned())
}

/// An option with a value. Where a value may begin with a hyphen, it is judged like any other.
fn option(id: &'static str, value: &'static str, help: &str) -> Arg {
    text(id, value, help).long(id).allow_hyphen_values(false)
}

fn file(id: &'static str, value: &'static str, help: &str) -> Arg {
    option(id, value, help).value_hint(ValueHint::FilePath)
}

fn flag(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
}

/// An option whose words the shell completes.
fn words(id: &'static str, words: &'static [&'static str], help: &str) -> Arg {
    option(id, "WORD", help)
        .value_name(words.join("|"))
        .value_parser(clap::builder::ValueParser::new(Suggested(words.to_vec())))
        .hide_possible_values(true)
}
