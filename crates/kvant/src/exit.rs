//! Exit codes, standard output and error messages of commands.

use kvant_base::Error;
use std::io::{self, Write};
use std::path::Path;
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

/// Writes to standard output. A reader that closes the pipe early (`kvant man | head`) is no
/// failure.
pub(crate) fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// As [`write_stdout`], with an error that names the output.
pub(crate) fn print(text: impl AsRef<[u8]>) -> kvant_base::Result<()> {
    write_stdout(text.as_ref()).map_err(stdout_error)
}

pub(crate) fn stdout_error(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}

/// The exit code of a command that only writes.
pub(crate) fn finish(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    if writeln!(io::stderr(), "{text}").is_err() {
        // The command succeeds without it.
    }
}

/// Prints to standard error why the command failed.
pub(crate) fn complain(text: &str) {
    if writeln!(io::stderr(), "kvant: {text}").is_err() {
        // The exit code still reports the failure.
    }
}
