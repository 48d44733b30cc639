//! Runs `kvant` to its end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The built binary, in an environment without `KVANT_` variables: those of the tests are not for
/// the server.
pub(crate) fn kvant() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvant"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KVANT_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> Finished {
    finished(command.output().expect("the binary can be started"))
}

/// As [`run`]; standard input is a pipe with `input`.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Finished {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary can be started");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).expect("a pipe holds it");
    drop(stdin);
    finished(child.wait_with_output().expect("the process is ours"))
}

fn finished(output: Output) -> Finished {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs `kvant` with `args`.
pub(crate) fn run_kvant(args: &[&str]) -> Finished {
    run(kvant().args(args))
}

/// The result of `run`, which is repeated while it is too little to judge, at most eight times.
pub(crate) fn run_again_while(
    is_too_little: impl Fn(&Finished) -> bool,
    mut run: impl FnMut() -> Finished,
) -> Finished {
    const TRIES: usize = 8;
    let mut done = run();
    for _ in 1..TRIES {
        if !is_too_little(&done) {
            break;
        }
        done = run();
    }
    done
}

/// A directory that is removed at the end of the test, but kept after a failure.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> TempDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("it-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the target directory is writable");
        TempDir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept {}", self.0.display());
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
