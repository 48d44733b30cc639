//! Exit codes and error messages of commands.

use std::io::{self, Write};
use std::process::ExitCode;

/// The command was understood and failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Bad settings or usage.
pub(crate) const EXIT_USAGE: u8 = 2;
/// A database was repaired, but part of it is lost.
pub(crate) const EXIT_LOST: u8 = 3;

/// Reports every problem, each about a `noun`; returns the exit code.
pub(crate) fn refuse(noun: &str, problems: &[String]) -> u8 {
    let mut text = match problems.len() {
        1 => format!("1 {noun} is refused:"),
        count => format!("{count} {noun}s are refused:"),
    };
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    complain(&text);
    EXIT_USAGE
}

/// The exit code of a command that only writes. A reader that closes the pipe early (`kvant man |
/// head`) is no failure.
pub(crate) fn finish(written: io::Result<()>) -> ExitCode {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&error.to_string());
            ExitCode::from(EXIT_FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints to standard error why the command failed.
pub(crate) fn complain(text: &str) {
    if writeln!(io::stderr(), "kvant: {text}").is_err() {
        // The exit code still reports the failure.
    }
}
