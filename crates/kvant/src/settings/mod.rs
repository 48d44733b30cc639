//! Settings of `kvant serve`: where they come from and how they are checked.
//!
//! [`table::SETTINGS`] declares every setting once. The arguments of `serve`, the `KVANT_`
//! variables, the keys of the TOML file, `--print-config`, `docs/configuration.md` and the manual
//! page all follow from it.
//!
//! Invariants:
//! 1. A flag beats an environment variable, which beats the file, which beats the default.
//! 2. Every given value is checked, also one that another source overrides: a wrong line in a file
//!    is found today, not on the day when the flag above it goes.
//! 3. All problems are reported together, each with the source that the value came from.

mod check;
mod kind;
mod print;
mod sources;
mod table;

use kvant_engine::{Compression, SyncLevel};
use kvant_server::{DispatchMode, Overload};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use kind::{Kind, Presence};
pub(crate) use print::{markdown, print_config};
pub(crate) use sources::{Sources, read};
pub(crate) use table::{DefaultValue, SETTINGS, Setting};

/// The settings as the program uses them.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) checkpoints: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) admin_listen: Option<SocketAddr>,
    pub(crate) insecure: bool,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) dispatch: DispatchMode,
    pub(crate) selector_count: usize,
    pub(crate) selector_cpus: Vec<usize>,
    pub(crate) worker_count: usize,
    pub(crate) queue_capacity: usize,
    pub(crate) overload: Overload,
    pub(crate) queue_wait_max: Duration,
    pub(crate) range_idle_max: Duration,
    pub(crate) connections_max: Option<usize>,
    pub(crate) connection_idle_max: Duration,
    pub(crate) head_wait_max: Duration,
    pub(crate) stop_wait_max: Duration,
    pub(crate) sync: SyncLevel,
    pub(crate) recover_anyway: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) value_bytes_max: u64,
    pub(crate) compression: Compression,
    pub(crate) log_format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Time, level, name, `key=value`.
    Text,
    /// One JSON object a line.
    Json,
}

impl Settings {
    /// Settings that no source has been applied to yet, not even the defaults.
    fn blank() -> Settings {
        Settings {
            data: PathBuf::new(),
            checkpoints: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            admin_listen: None,
            insecure: false,
            allowed_hosts: Vec::new(),
            dispatch: DispatchMode::Hybrid,
            selector_count: 0,
            selector_cpus: Vec::new(),
            worker_count: 0,
            queue_capacity: 0,
            overload: Overload::Adaptive,
            queue_wait_max: Duration::ZERO,
            range_idle_max: Duration::ZERO,
            connections_max: None,
            connection_idle_max: Duration::ZERO,
            head_wait_max: Duration::ZERO,
            stop_wait_max: Duration::ZERO,
            sync: SyncLevel::Always,
            recover_anyway: false,
            memory_bytes: 0,
            value_bytes_max: 0,
            compression: Compression::None,
            log_format: LogFormat::Text,
        }
    }
}

/// What the host offers; defaults follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu_count: usize,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    Flag(&'static str),
    Env(String),
    File { path: PathBuf, line: usize },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Flag(name) => write!(f, "flag --{name}"),
            Origin::Env(name) => write!(f, "env {name}"),
            Origin::File { path, line } => write!(f, "file {}:{line}", path.display()),
        }
    }
}

/// The value of one setting as text, and where it came from. `None`: not set.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
}

/// What [`read`] found, all of it usable.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// One for each of [`SETTINGS`], in its order.
    pub(crate) chosen: Vec<Chosen>,
    /// The TOML file and where its path came from.
    pub(crate) file: Option<(PathBuf, Origin)>,
}

/// One reason to refuse the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The source of the value: `flag --listen`.
    pub(crate) origin: String,
    /// What is wrong and what to write instead.
    pub(crate) sentence: String,
}

impl Problem {
    /// A problem with the value of the setting `name`. The names of flags and variables tell the
    /// setting; a line of a file has to be told.
    fn of(name: &str, origin: &Origin, sentence: String) -> Problem {
        match origin {
            Origin::Flag(_) | Origin::Env(_) => Problem { origin: origin.to_string(), sentence },
            Origin::Default | Origin::File { .. } => {
                Problem { origin: format!("{origin}: {name}"), sentence }
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.sentence)
    }
}

#[cfg(test)]
mod tests;
