//! `kvant lab run`.

use super::report::write_report;
use crate::commands::signals::{self, EXIT_INTERRUPTED};
use crate::exit::EXIT_USAGE;
use clap::ArgMatches;
use kvant_base::{Error, ErrorKind, Result, timestamp};
use kvant_env::Env;
use kvant_env::host::{self, procfs::ProcFs};
use kvant_lab::conduct::{self, Options, Progress, Stop, cleanup};
use kvant_lab::plan::Plan;
use kvant_lab::record::{AttemptVerdict, RunState};
use kvant_lab::report::Language;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a plan; returns the exit code.
pub(super) fn run(args: &ArgMatches) -> u8 {
    let plan = match Plan::open(&path(args, "PLAN").to_string_lossy()) {
        Ok(plan) if args.contains_id("quick") => {
            plan.quick(args.get_one("quick").map_or(Plan::QUICK, |s| Duration::from_secs(*s)))
        }
        Ok(plan) => plan,
        Err(problem) => {
            crate::complain(&problem.to_string());
            return crate::EXIT_FAILED;
        }
    };
    let place = place(args, &plan);
    run_plan(args, plan, place)
}

/// Makes an experiment of the plan that the arguments name, with their number of blocks, and runs
/// it in DIR, where it goes on if it has begun; returns the exit code.
pub(super) fn run_experiment(
    args: &ArgMatches,
    experiment: impl FnOnce(Plan, u32) -> std::result::Result<Plan, String>,
) -> u8 {
    let name: &String = args.get_one("plan").expect("it has a default");
    let block_count = args.get_one("blocks").copied().expect("it has a default");
    let plan = match Plan::open(name) {
        Ok(plan) => plan,
        Err(problem) => {
            crate::complain(&problem.to_string());
            return crate::EXIT_FAILED;
        }
    };
    match experiment(plan, block_count) {
        Ok(plan) => {
            let dir = path(args, "DIR");
            let resumes = host::is_file(&dir.join("run.json"));
            run_plan(args, plan, Place { dir, resumes })
        }
        Err(problem) => {
            crate::complain(&problem);
            EXIT_USAGE
        }
    }
}

/// Runs a plan in this directory and writes its report; returns the exit code.
pub(super) fn run_plan(args: &ArgMatches, plan: Plan, place: Place) -> u8 {
    let env = Env::posix();
    let options = match options(args, place) {
        Ok(options) => options,
        Err(error) => return exit_code(Err(error)),
    };
    let (is_quiet, language) = (args.get_flag("quiet"), language(args));
    if cfg!(panic = "abort") {
        clean_up_after_panics();
    }
    let ended = signals::run_until_hangup(move |signal| {
        let stop = Stop::default();
        signal.on_request({
            let stop = stop.clone();
            move || stop.request()
        });
        let progress = progress(is_quiet);
        exit_code(conduct(&plan, &options, &env, &stop, progress, language))
    });
    if let Ok(None) = ended {
        cleanup::remove_all();
    }
    exit_code(ended.map(|code| code.unwrap_or(EXIT_INTERRUPTED)))
}

/// Runs the plan and writes the report; returns the exit code.
fn conduct(
    plan: &Plan,
    options: &Options,
    env: &Env,
    stop: &Stop,
    mut progress: Progress,
    language: Language,
) -> Result<u8> {
    let ended = match conduct::run(plan, options, env, stop, &mut progress) {
        Err(error) if error.kind() != ErrorKind::Invalid => {
            // What was measured before a full disk, for example.
            if host::is_file(&options.dir.join("run.json"))
                && let Err(problem) = write_report(&options.dir, language)
            {
                crate::complain(&problem.to_string());
            }
            return Err(error);
        }
        ended => ended?,
    };
    let code = write_report(&options.dir, language)?;
    let valid = ended.count(|verdict| *verdict == AttemptVerdict::Valid);
    if valid == 0 && ended.run.state == RunState::Complete {
        let problem = "no attempt counts: see the progress, and the log of each subject in the run's directory";
        return Err(Error::new(ErrorKind::Io, problem).with_file(&options.dir));
    }
    Ok(code)
}

fn progress(is_quiet: bool) -> Progress {
    match is_quiet {
        true => Progress::none(),
        false => Progress::new(Box::new(io::stderr()), io::stderr().is_terminal()),
    }
}

/// The value of `--lang`.
pub(super) fn language(args: &ArgMatches) -> Language {
    let name: &String = args.get_one("lang").expect("it has a default");
    Language::from_name(name).expect("clap accepts no other name")
}

/// The directory of a run.
pub(super) struct Place {
    pub(super) dir: PathBuf,
    /// Whether to continue the run that the directory has.
    pub(super) resumes: bool,
}

/// The directory that `--resume` or `--output` names, or a new one.
pub(super) fn place(args: &ArgMatches, plan: &Plan) -> Place {
    let path = |id: &str| args.get_one::<OsString>(id).map(PathBuf::from);
    let resumed = path("resume");
    let resumes = resumed.is_some();
    let dir = resumed.or_else(|| path("output")).unwrap_or_else(|| {
        let now = timestamp::format(Env::posix().clock.wall_ms());
        let digits: String = now.chars().filter(char::is_ascii_digit).collect();
        PathBuf::from(format!("{}-{}-{}", plan.name, &digits[..8], &digits[8..14]))
    });
    Place { dir, resumes }
}

#[expect(clippy::disallowed_methods, reason = "subjects are this program")]
fn options(args: &ArgMatches, place: Place) -> Result<Options> {
    let program = std::env::current_exe()
        .map_err(|error| Error::io("find", Path::new("this program"), error))?;
    Ok(Options {
        dir: place.dir,
        resumes: place.resumes,
        scratch: args.get_one::<OsString>("scratch").map(PathBuf::from),
        program,
        proc: ProcFs::system(),
    })
}

/// A program that aborts runs no destructor.
fn clean_up_after_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        cleanup::remove_all();
    }));
}

/// The exit code; reports an error.
pub(super) fn exit_code(result: std::result::Result<u8, impl Display>) -> u8 {
    result.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        crate::EXIT_FAILED
    })
}

/// The value of a required argument.
pub(super) fn path(args: &ArgMatches, id: &str) -> PathBuf {
    PathBuf::from(args.get_one::<OsString>(id).expect("clap requires the argument"))
}
