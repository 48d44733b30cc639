//! Calls of cargo and git, and where the repository is.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository's root: chores work from any directory inside it. Cargo says where this package
/// is now, which is not where it was built when checkouts share a target directory.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().expect("xtask/ lies in the root").to_path_buf()
}

/// The cargo that runs this chore, started in the root.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command to its end, with its output shown; an error names the command that failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command to its end and returns what it printed on standard output.
pub(crate) fn stdout_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{}: {}", shown(command), output.status))
    }
}

/// `cargo metadata`: every package of the lock file, on every platform.
pub(crate) fn metadata() -> Result<Value, String> {
    let text = stdout_of(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_slice(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let dir =
        metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(PathBuf::from(dir))
}

/// Builds Kvant's binary; returns the directory that it is in.
pub(crate) fn build_kvant(release: bool) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--bin", "kvant"]).args(release.then_some("--release"));
    run(&mut build)?;
    Ok(target_dir()?.join(if release { "release" } else { "debug" }))
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut words =
        vec![Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    let settings = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={} ", name.to_string_lossy(), value?.to_string_lossy()))
    });
    settings.collect::<String>() + &words.join(" ")
}
