//! The command line of `kvant lab`.

use crate::commands::option::{About, file, flag};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use kvant_base::tag::Stage;
use kvant_lab::record::Suspect;
use kvant_lab::report::Language;
use std::ffi::OsString;

const ABOUT: &str = "Run experiments and write reports";

const LONG_ABOUT: &str = "Run experiments and write reports.\n\nA plan (TOML, docs/lab.md) names servers, data, workloads and phases. \
    `run` fills the servers, finds their highest rates, holds rates with everything recorded that explains latencies, and \
    repeats what others disturbed. Results go to standard output and to a directory, progress goes to standard error. SIGINT, \
    SIGTERM, SIGHUP or SIGQUIT ends the phase and the run, with a report of what was measured; a second one ends the process at once. Neither leaves a \
    server running or a temporary store.";

const AFTER_HELP: &str = "Exit codes: 0 done, or ended by a signal; 1 could not run: a plan or a file cannot be read or written, or \
    nothing could be measured; 2 wrong usage; 130 a second signal.";

const COMPARE_ABOUT: &str = "Compare two programs, settings or engines.\n\nA side is [SERVER][,OPTION=VALUE]...: SERVER is a program (a path with a /), \
    a URL, a subject of the plan, or `this` (the plan's first Kvant, also without SERVER); options are those of `serve`. Each block measures \
    A B B A or B A A B, as a seed says, each time with a new process. Ratios have intervals that all hold together in 99 of 100 comparisons.";

const COMPARE_AFTER_HELP: &str = "Examples:\n  kvant lab compare this workers=8,selectors=2\n  kvant lab compare ./old/kvant this --blocks 16 --assert 'p99 <= 1.05x' \
    --assert 'cpu <= 1.02x'\n  kvant lab compare engine=lsm engine=leveldb --plan plan.toml\n\nExit codes: 0 done, and every assertion holds; 1 could not run, \
    or nothing could be measured; 2 wrong usage; 3 an assertion is violated; 4 an assertion is undecided: repeat with more blocks; 130 a second signal.";

const EXPLAIN_ABOUT: &str = "Explain the response times of a run's attempts: what each percentile waited for.\n\nWith --intervene the run is made \
    first: under the constant rate of a plan each suspect happens at random moments, and at matched moments nothing is done. What is slower \
    for that reason is called a cause, with an interval; all intervals hold together in 99 of 100 experiments.";

const WHAT_IF_ABOUT: &str = "Ask what a faster stage of the server's work would bring.\n\nEverything else that the server does is slowed \
    down in proportion for a second at a time, and rates and times are measured by that slow-down: causal profiling. Each change of the highest \
    rate, of p50 and of p99 has an interval; all of them hold together in 99 of 100 experiments.";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("lab")
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(run())
        .subcommand(compare())
        .subcommand(
            Command::new("report")
                .about("Write the report of a run again; notes in its report.md are kept")
                .args_override_self(true)
                .arg(path("DIR", ValueHint::DirPath, "Directory of the run"))
                .arg(language()),
        )
        .subcommand(explain())
        .subcommand(what_if())
        .subcommand(Command::new("list").about("List the plans that come with the program"))
}

fn run() -> Command {
    Command::new("run")
        .about("Run a plan and write its report")
        .args_override_self(true)
        .args([
            path(
                "PLAN",
                ValueHint::FilePath,
                "A file, or the name of a plan that `kvant lab list` shows",
            ),
            quick(),
        ])
        .args(run_options())
}

fn run_options() -> [Arg; 5] {
    let [scratch, quiet, language] = ways();
    [
        file("resume")
            .value_name("DIR")
            .about("Continue the run in this directory, if the plan is unchanged"),
        file("output")
            .short('o')
            .value_name("DIR")
            .conflicts_with("resume")
            .about("Directory of the run [default: the plan's name with date and time]"),
        scratch,
        quiet,
        language,
    ]
}

fn ways() -> [Arg; 3] {
    [
            file("scratch").value_name("DIR").about(
                "Where the servers' stores are made, in a directory that is removed at the end [default: the run's \
                 directory]",
            ),
            flag("quiet").about("No progress on standard error"),
            language(),
    ]
}

fn compare() -> Command {
    let text = |name: &'static str| Arg::new(name).required(true).value_name(name);
    Command::new("compare")
        .about("Compare two programs, settings or engines")
        .long_about(COMPARE_ABOUT)
        .after_help(COMPARE_AFTER_HELP)
        .args_override_self(true)
        .args([
            text("A").help("A side: [SERVER][,OPTION=VALUE]..."),
            text("B").help("The other side; ratios are B by A"),
            Arg::new("plan")
                .long("plan")
                .value_name("PLAN")
                .default_value("compare")
                .value_hint(ValueHint::FilePath)
                .help(
                    "What is measured: a file, or the name of a plan that `kvant lab list` shows",
                ),
            Arg::new("blocks")
                .long("blocks")
                .value_name("N")
                .default_value("10")
                .value_parser(value_parser!(u32).range(1..=400))
                .help("Blocks of four attempts a case; from 8 on differences are claimed"),
            Arg::new("assert").long("assert").value_name("EXPR").action(ArgAction::Append).help(
                "Fail unless this holds: `p99 <= 1.05x`, `get/held: cpu <= 1.02x`; repeatable",
            ),
        ])
        .args(run_options())
}

fn explain() -> Command {
    Command::new("explain")
        .about("Explain the response times of a run's attempts: what each percentile waited for")
        .long_about(EXPLAIN_ABOUT)
        .args_override_self(true)
        .args([
            path(
                "DIR",
                ValueHint::DirPath,
                "Directory of the run; each attempt gets its explanation.html there",
            ),
            Arg::new("attempt")
                .long("attempt")
                .value_name("NUMBER")
                .value_parser(value_parser!(u32).range(1..))
                .help("Only this attempt [default: all, with those that do not count]"),
            flag("json").about("Print the explanations as JSON, one a line, instead of text"),
            flag("intervene").conflicts_with_all(["attempt", "json"]).about(
                "Make the run in DIR, or continue it: make suspects happen at random moments",
            ),
            Arg::new("plan")
                .long("plan")
                .value_name("PLAN")
                .default_value("intervene")
                .value_hint(ValueHint::FilePath)
                .help("What is loaded: a file, or the name of a plan that `kvant lab list` shows"),
            Arg::new("suspects")
                .long("suspects")
                .value_name("LIST")
                .value_delimiter(',')
                .value_parser(Suspect::ALL.map(Suspect::name))
                .help("What is made to happen [default: all that the plan allows]"),
            Arg::new("blocks")
                .long("blocks")
                .value_name("N")
                .default_value("20")
                .value_parser(value_parser!(u32).range(1..=400))
                .help(
                    "Blocks with each suspect and its control; fewer than about 16 claim nothing",
                ),
        ])
        .args(ways())
}

fn what_if() -> Command {
    Command::new("what-if")
        .about("Ask what a faster stage of the server's work would bring")
        .long_about(WHAT_IF_ABOUT)
        .args_override_self(true)
        .args([
            path(
                "DIR",
                ValueHint::DirPath,
                "Directory of the run; one that was interrupted goes on",
            ),
            Arg::new("plan")
                .long("plan")
                .value_name("PLAN")
                .default_value("what-if")
                .value_hint(ValueHint::FilePath)
                .help("What is loaded: a file, or the name of a plan that `kvant lab list` shows"),
            Arg::new("stages")
                .long("stages")
                .value_name("LIST")
                .value_delimiter(',')
                .value_parser(Stage::ALL.map(Stage::name))
                .help("What is sped up [default: the stages that the plan's requests pass]"),
            Arg::new("spare")
                .long("spare")
                .value_name("LIST")
                .value_delimiter(',')
                .default_value("10,25,50")
                .value_parser(value_parser!(u32).range(1..=75))
                .help("Per cent of its time that a stage is spared"),
            Arg::new("blocks")
                .long("blocks")
                .value_name("N")
                .default_value("20")
                .value_parser(value_parser!(u32).range(1..=400))
                .help("Blocks, each with all stages; fewer than about 16 claim nothing"),
        ])
        .args(ways())
}

fn quick() -> Arg {
    Arg::new("quick")
        .long("quick")
        .value_name("SECONDS")
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(value_parser!(u64).range(1..))
        .help("Shorten the plan to two minutes, or SECONDS, to see that it works; its figures are no measurements")
}

fn language() -> Arg {
    Arg::new("lang")
        .long("lang")
        .value_name("LANGUAGE")
        .value_parser(Language::ALL.map(Language::name))
        .default_value(Language::default().name())
        .help("Language of the report; its page has both")
}

fn path(name: &'static str, hint: ValueHint, help: &'static str) -> Arg {
    Arg::new(name)
        .required(true)
        .value_name(name)
        .value_parser(value_parser!(OsString))
        .value_hint(hint)
        .help(help)
}
