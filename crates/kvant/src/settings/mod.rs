//! Settings of `kvant serve`: their sources, and how they are checked.
//!
//! [`table::SETTINGS`] declares every setting once. The arguments of `serve`, the `KVANT_`
//! variables, the keys of the TOML file, `--print-config`, `docs/configuration.md` and the manual
//! page all follow from it.
//!
//! Invariants:
//! 1. A flag overrides an environment variable, which overrides the file, which overrides the
//!    default.
//! 2. Every given value is checked, even if another source overrides it: a wrong line in a file is
//!    reported now, not when the overriding flag is removed.
//! 3. All problems are reported together, each with the source of the value.

mod check;
mod kind;
mod print;
mod sources;
mod table;

use kvant_engine::{CompactionGoal, Compression, Options, SyncLevel};
use kvant_server::ServerConfig;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use kind::Kind;
pub(crate) use print::{markdown, print_config};
pub(crate) use sources::{Sources, read};
pub(crate) use table::{DefaultValue, SETTINGS, Setting};

/// The settings as the program uses them.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) insecure: bool,
    pub(crate) engine: Engine,
    pub(crate) server: ServerConfig,
    /// `None`: beside the data. [`ServerConfig::checkpoints`] has the result.
    pub(crate) checkpoints: Option<PathBuf>,
    pub(crate) stop_wait_max: Duration,
    pub(crate) recover_anyway: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) direct_reads: bool,
    pub(crate) sync: SyncLevel,
    pub(crate) compression: Compression,
    pub(crate) compaction: CompactionGoal,
    pub(crate) log_format: LogFormat,
    pub(crate) cluster: ClusterSettings,
}

/// Settings of the engine `cassandra`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterSettings {
    pub(crate) nodes: Vec<String>,
    pub(crate) keyspace: String,
    pub(crate) datacenter: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) tls_ca: Option<PathBuf>,
    /// `None`: what the keyspace has.
    pub(crate) replica_count: Option<u32>,
    /// `None`: what the keyspace has.
    pub(crate) bucket_count: Option<u32>,
    /// `None`: a quorum.
    pub(crate) ack_count: Option<u32>,
    pub(crate) timeout: Duration,
    pub(crate) connection_count: usize,
    pub(crate) has_second_reads: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A cluster of Cassandra or ScyllaDB, where the build has the driver.
    Cassandra,
    Lsm,
    /// Google's LevelDB, where the build has it.
    LevelDb,
    /// A sorted map, without persistence.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Time, level, name, `key=value`.
    Text,
    /// One JSON object per line.
    Json,
}

impl Settings {
    /// Settings before any source is applied, the defaults of [`SETTINGS`] included.
    fn blank() -> Settings {
        Settings {
            data: PathBuf::new(),
            insecure: false,
            engine: Engine::Lsm,
            server: ServerConfig::default(),
            checkpoints: None,
            stop_wait_max: Duration::ZERO,
            recover_anyway: false,
            memory_bytes: 0,
            direct_reads: false,
            sync: SyncLevel::Always,
            compression: Compression::None,
            compaction: CompactionGoal::default(),
            log_format: LogFormat::Text,
            cluster: ClusterSettings::default(),
        }
    }

    /// The engine's options that follow from these settings.
    pub(crate) fn engine_options(&self) -> Options {
        let mut options = Options::for_goal(self.memory_bytes, self.compaction);
        options.sync = self.sync;
        options.direct_reads = self.direct_reads;
        options.value_bytes_max = self.server.value_bytes_max;
        options.compression.fill(self.compression);
        options
    }
}

/// What the host offers; defaults follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu_count: usize,
}

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

/// The value of one setting as text, and its source. `None`: not set.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
}

/// The result of [`read`]: valid settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// One for each of [`SETTINGS`], in its order.
    pub(crate) chosen: Vec<Chosen>,
    /// The TOML file and the source of its path.
    pub(crate) file: Option<(PathBuf, Origin)>,
}

/// A problem with the value of the setting `name`. The name of a flag or variable identifies the
/// setting; a line of a file does not.
fn problem(name: &str, origin: &Origin, sentence: &str) -> String {
    match origin {
        Origin::Flag(_) | Origin::Env(_) => format!("{origin}: {sentence}"),
        Origin::Default | Origin::File { .. } => format!("{origin}: {name}: {sentence}"),
    }
}

#[cfg(test)]
mod tests;
