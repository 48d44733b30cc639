//! What chores share: child processes, cargo's among them, directories and options.

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a chore: `Ok(true)` passed, `Ok(false)` found something and has printed it, `Err`
/// could not run.
pub(crate) type Verdict = Result<bool, String>;

/// The repository's root: chores work from any directory inside it. Cargo says where this package
/// is now, which is not where it was built when checkouts share a target directory.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().expect("xtask/ lies in the root").to_path_buf()
}

/// The cargo that runs this chore, started in the root, without what it has told this process about
/// this package: a build script that reads that (of `ring`) would run again, and everything that
/// depends on it be built anew.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    let is_of_package =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end, with its output shown; the error names the command that failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(about(shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command to its end and returns its standard output.
pub(crate) fn stdout_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(about(shown(command)))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{}: {}", shown(command), output.status)),
    }
}

/// Runs an example of a crate, which prints one JSON object.
pub(crate) fn json_of_example(package: &str, example: &str) -> Result<Value, String> {
    let arguments = ["run", "--quiet", "--package", package, "--example", example];
    serde_json::from_slice(&stdout_of(cargo().args(arguments))?).map_err(about(example))
}

/// `cargo metadata`: every package of the lock file, on every platform.
pub(crate) fn metadata() -> Result<Value, String> {
    let text = stdout_of(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_slice(&text).map_err(about("cargo metadata"))
}

pub(crate) fn target_dir() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let dir =
        metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(PathBuf::from(dir))
}

pub(crate) fn number(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).help(help)
}

pub(crate) fn release_flag() -> Arg {
    let flag = Arg::new("release").long("release").action(ArgAction::SetTrue);
    flag.help("Use the optimized build of kvant")
}

/// Builds Kvant's binary, in release mode if [`release_flag`] is given; returns its directory.
pub(crate) fn build_kvant(matches: &ArgMatches) -> Result<PathBuf, String> {
    let release = matches.get_flag("release");
    let mut build = cargo();
    build.args(["build", "--quiet", "--bin", "kvant"]).args(release.then_some("--release"));
    run(&mut build)?;
    Ok(target_dir()?.join(if release { "release" } else { "debug" }))
}

/// An empty directory below the target directory.
pub(crate) fn empty_dir(name: &str) -> Result<PathBuf, String> {
    let dir = target_dir()?.join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(about(dir.display()))?;
    }
    fs::create_dir_all(&dir).map_err(about(dir.display()))?;
    Ok(dir)
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(path, text).map_err(about(path.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(about(path.display()))
}

/// For `map_err`: prefixes an error with its subject.
pub(crate) fn about<E: Display>(what: impl Display) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let settings = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={} ", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    settings.collect::<String>() + &program.to_string_lossy() + &arguments.collect::<String>()
}
