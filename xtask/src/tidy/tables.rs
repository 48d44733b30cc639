//! What the checks know about this repository: orders, and exceptions with their reasons. The
//! tables of exceptions only shrink.

use super::modules::CrateModules;
use super::ratchet::Exception;

/// The crates, lowest first: each depends only on crates before it.
pub(super) const CRATE_ORDER: &[&str] = &[
    "kvant-base",
    "kvant-env",
    "kvant-engine",
    "kvant-profiler",
    "kvant-server",
    "kvant-load",
    "kvant",
];

/// The modules of each crate, lowest first: each with those that it may use.
#[rustfmt::skip]
pub(super) const MODULES: &[CrateModules] = &[
    CrateModules { name: "kvant-base", rows: &[
        ("budget", &[]),
        ("checksum", &[]),
        ("duration", &[]),
        ("error", &[]),
        ("limits", &[]),
        ("log", &[]),
        ("named_enum", &[]),
        ("size", &[]),
        ("tag", &[]),
        ("timestamp", &[]),
        ("varint", &[]),
        ("wait", &[]),
        ("lock", &["wait"]),
        ("events", &["lock"]),
    ] },
    CrateModules { name: "kvant-env", rows: &[
        ("clock", &[]),
        ("fs", &[]),
        ("host", &[]),
        ("rng", &[]),
        ("posix", &["fs"]),
        ("spawner", &["clock", "rng"]),
        ("tree", &["fs"]),
        ("memory", &["fs", "tree"]),
        ("faulty", &["fs", "rng", "tree", "memory"]),
    ] },
    CrateModules { name: "kvant-engine", rows: &[
        ("events", &[]),
        ("format", &[]),
        ("options", &[]),
        ("stats", &[]),
        // The trait that everything with entries in order implements; the rest of `iter` stands above.
        ("iter::InternalIterator", &["format"]),
        ("batch", &["format"]),
        ("cache", &["format", "stats"]),
        ("commit", &["events", "format", "options", "stats", "batch"]),
        ("wal", &["format", "batch"]),
        ("memtable", &["format", "iter::InternalIterator"]),
        ("table", &["format", "options", "iter::InternalIterator", "cache"]),
        ("version", &["format", "table"]),
        ("iter", &["format", "version"]),
        ("compaction", &["events", "format", "options", "iter::InternalIterator", "table", "version", "iter"]),
        ("db", &["events", "format", "options", "stats", "iter::InternalIterator", "batch", "commit", "wal", "memtable",
            "table", "version", "iter", "compaction"]),
        ("tools", &["format", "options", "stats", "iter::InternalIterator", "wal", "memtable", "table", "version",
            "iter", "db"]),
    ] },
    CrateModules { name: "kvant-profiler", rows: &[
        ("recording", &[]),
        ("collect", &["recording"]),
        ("render", &["recording"]),
        ("symbols", &["recording"]),
    ] },
    CrateModules { name: "kvant-load", rows: &[
        ("histogram", &[]),
        ("lateness", &[]),
        ("net", &[]),
        ("op", &[]),
        ("units", &[]),
        ("record", &["histogram", "lateness", "op"]),
        ("target", &["net"]),
        ("config", &["target"]),
        ("machine", &["target"]),
        ("request", &["target"]),
        ("source", &["op", "target"]),
        ("http", &["source"]),
        ("outcome", &["histogram", "record", "config", "machine"]),
        ("plan", &["config"]),
        ("assertion", &["histogram", "record", "outcome"]),
        ("script", &["histogram", "op", "target", "source", "outcome"]),
        ("verdict", &["units", "config", "machine", "outcome"]),
        ("worker", &["histogram", "net", "record", "target", "config", "source", "http",
            "outcome", "plan"]),
        ("find_max", &["config", "machine", "outcome", "verdict"]),
        ("load", &["histogram", "net", "op", "record", "config", "machine", "source", "outcome",
            "worker"]),
        ("report", &["histogram", "lateness", "units", "record", "config", "machine", "outcome",
            "assertion", "verdict", "find_max"]),
        ("workload", &["op", "record", "target", "config", "request", "source", "outcome", "load"]),
        ("compare", &["histogram", "record", "config", "outcome", "verdict", "report"]),
    ] },
    CrateModules { name: "kvant", rows: &[
        ("settings", &[]),
        ("log", &["settings"]),
        ("commands", &["settings", "log"]),
        ("cli", &["settings", "commands"]),
    ] },
    CrateModules { name: "xtask", rows: &[
        ("args", &[]),
        ("cargo", &[]),
        ("bench", &["cargo"]),
        ("hlog_check", &["cargo"]),
        ("profile_soak", &["args", "cargo"]),
        ("server", &["cargo"]),
        ("tidy", &["cargo"]),
        ("torture", &["args", "cargo"]),
        ("profile_check", &["args", "cargo", "server"]),
        ("readme", &["args", "cargo", "server"]),
    ] },
];

const DIVIDED: &str = "being divided";

/// Crates without rows, and imports against the order (`crate::module uses module`).
pub(super) const ORDER_EXCEPTIONS: &[Exception] = &[
    Exception { what: "kvant-server", reason: DIVIDED },
    Exception { what: "kvant-load::machine uses outcome", reason: DIVIDED },
    Exception { what: "kvant-load::net uses target", reason: DIVIDED },
    Exception { what: "kvant::commands uses cli", reason: DIVIDED },
];

/// Modules that import from more than twelve others.
pub(super) const FAN_OUT_EXCEPTIONS: &[Exception] = &[
    Exception { what: "kvant-server::express", reason: DIVIDED },
    Exception { what: "kvant-server::routes", reason: DIVIDED },
    Exception { what: "kvant-server::selector", reason: DIVIDED },
];

/// One file of each circle of imports.
pub(super) const CIRCLES: &[Exception] = &[
    Exception { what: "crates/kvant-engine/src/cache/mod.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-engine/src/db/checkpoint.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-engine/src/table/point_read.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-engine/src/tools/dump.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-env/src/faulty.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-env/src/posix.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/assertion.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/compare.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/find_max.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/http/chunked.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/machine.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/report/json/parts.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/script/failure.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/worker/mod.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/workload/config.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-load/src/workload/fill.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-profiler/src/collect/handler.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-profiler/src/collect/mod.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-profiler/src/recording/decode.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-profiler/src/symbols/identity.rs", reason: DIVIDED },
    Exception { what: "crates/kvant-server/src/activity.rs", reason: DIVIDED },
    Exception { what: "crates/kvant/src/cli.rs", reason: DIVIDED },
    Exception { what: "crates/kvant/src/commands/load/facts.rs", reason: DIVIDED },
    Exception { what: "xtask/src/bench.rs", reason: DIVIDED },
];

/// Product crates whose root does not deny the calls and types of `clippy.toml`.
pub(super) const ROOT_EXCEPTIONS: &[Exception] =
    &[Exception { what: "kvant-server", reason: DIVIDED }];

/// Files that are longer than 600 lines.
pub(super) const LONG_FILES: &[Exception] = &[];

/// Hosts that a URL in the repository may name.
pub(super) const URL_HOSTS: &[&str] = &[
    // This machine, and the names that RFC 2606 sets aside for examples.
    "127.0.0.1",
    "localhost",
    "example.com",
    "example.org",
    // Where Rust comes from, and what Cargo.lock names.
    "github.com",
    "sh.rustup.rs",
    // References.
    "doc.rust-lang.org",
    "json-schema.org",
    "keepachangelog.com",
    "maven.apache.org",
    "semver.org",
    "spec.openapis.org",
    "www.apache.org",
    "www.rfc-editor.org",
    "www.w3.org",
];
