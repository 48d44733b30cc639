//! What the checks know about this repository: orders, and exceptions with their reasons. The
//! tables of exceptions only shrink.

use super::calls::{self, Rule, WorldCall};
use super::files::{LongFile, UnsafeFile};
use super::modules::CrateModules;
use super::ratchet::Exception;
use super::results;

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
        // The trait that everything with entries in order implements; the rest of `iter` merges them
        // and stands above.
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

/// The world is to be had from kvant-env.
pub(super) const WORLD: Rule = Rule {
    calls: WORLD_CALLS,
    exceptions: WORLD_EXCEPTIONS,
    table: "WORLD_EXCEPTIONS",
    why: "outside kvant-env a test could not replace it, nor a seed replay it",
};

/// The world: where each part of it lives, and what other code uses instead.
const WORLD_CALLS: &[WorldCall] = &[
    WorldCall { call: "std::time::Instant::now", home: &[ENV], instead: "use kvant_env::Clock" },
    WorldCall { call: "std::time::SystemTime::now", home: &[ENV], instead: "use kvant_env::Clock" },
    WorldCall { call: "std::fs", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".exists()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".is_dir()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".is_file()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".metadata()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".canonicalize()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: ".read_dir()", home: &[ENV], instead: "use kvant_env::Fs" },
    WorldCall { call: "std::thread::spawn", home: &[ENV], instead: "use kvant_env::Spawner" },
    WorldCall { call: "std::thread::scope", home: &[ENV], instead: "use kvant_env::Spawner" },
    WorldCall { call: "std::thread::Builder", home: &[ENV], instead: "use kvant_env::Spawner" },
    WorldCall {
        call: "std::thread::sleep",
        home: &[ENV],
        instead: "wait for an event with kvant_env::Spawner::wait_until",
    },
    WorldCall { call: "std::hash::RandomState", home: &[ENV], instead: "use kvant_env::rng" },
    WorldCall {
        call: "std::collections::hash_map::RandomState",
        home: &[ENV],
        instead: "use kvant_env::rng",
    },
    WorldCall { call: "rand", home: &[], instead: "use kvant_env::rng" },
    WorldCall {
        call: "std::process::Command",
        home: &[],
        instead: "the product starts no processes",
    },
    WorldCall {
        call: "std::env",
        home: &[BINARY],
        instead: "read settings in the binary and hand them down",
    },
    WorldCall {
        call: "std::net::TcpStream",
        home: &[SERVER, LOAD],
        instead: "sockets belong to kvant-server and kvant-load",
    },
    WorldCall {
        call: "std::net::TcpListener",
        home: &[SERVER],
        instead: "only kvant-server listens",
    },
    WorldCall { call: "std::net::UdpSocket", home: &[], instead: "nothing here speaks UDP" },
];

const ENV: &str = "crates/kvant-env/";
const SERVER: &str = "crates/kvant-server/";
const LOAD: &str = "crates/kvant-load/";
const BINARY: &str = "crates/kvant/";

/// Files that touch a part of the world outside its home.
const WORLD_EXCEPTIONS: &[calls::Exception] = &[
    calls::Exception {
        path: "crates/kvant-server/src/selector.rs",
        call: "std::thread::Builder",
        reason: "an event loop owns its thread and blocks in it: it is no task of steps",
    },
    calls::Exception {
        path: "crates/kvant-load/src/load.rs",
        call: "std::thread::Builder",
        reason: "an event loop owns its thread and blocks in it: it is no task of steps",
    },
];

/// Threads wait in kvant-base.
pub(super) const WAITS: Rule = Rule {
    calls: WAIT_CALLS,
    exceptions: WAIT_EXCEPTIONS,
    table: "WAIT_EXCEPTIONS",
    why: "a profiler would not hear of who waits for it",
};

/// What threads wait with, and what to use instead.
const WAIT_CALLS: &[WorldCall] = &[
    WorldCall {
        call: "std::sync::Mutex",
        home: &[LOCK],
        instead: "use kvant_base::lock::NamedMutex",
    },
    WorldCall {
        call: "std::sync::RwLock",
        home: &[LOCK],
        instead: "use kvant_base::lock::NamedMutex",
    },
    WorldCall {
        call: "std::sync::Condvar",
        home: &[LOCK],
        instead: "use kvant_base::lock::NamedCondvar",
    },
    WorldCall {
        call: "std::sync::Barrier",
        home: &[],
        instead: "use kvant_base::lock::NamedCondvar",
    },
    WorldCall {
        call: "std::sync::mpsc",
        home: &[],
        instead: "use a queue under kvant_base::lock::NamedMutex",
    },
    WorldCall { call: "std::thread::park", home: &[LOCK], instead: "use kvant_base::lock::park" },
    WorldCall {
        call: "std::thread::park_timeout",
        home: &[LOCK],
        instead: "use kvant_base::lock::park",
    },
];

const LOCK: &str = "crates/kvant-base/src/lock";

/// Files whose threads wait with something else.
const WAIT_EXCEPTIONS: &[calls::Exception] = &[
    calls::Exception {
        path: "crates/kvant-env/src/memory.rs",
        call: "std::sync::RwLock",
        reason: "a disk for tests and benchmarks, where readers are to run side by side",
    },
    calls::Exception {
        path: "crates/kvant-server/src/selector.rs",
        call: "std::sync::mpsc",
        reason: "hears once, at the start, whether a thread has its runtime",
    },
    calls::Exception {
        path: "crates/kvant-load/src/load.rs",
        call: "std::sync::mpsc",
        reason: "the coordinator hears of many workers; it tells the profiler when it waits for them",
    },
    calls::Exception {
        path: "crates/kvant-load/src/worker/mod.rs",
        call: "std::sync::mpsc",
        reason: "orders between phases; the worker tells the profiler when it waits for them",
    },
    calls::Exception {
        path: "crates/kvant-load/src/worker/recorder.rs",
        call: "std::sync::mpsc",
        reason: "looks for empty boxes and never waits",
    },
];

/// Lines that drop a result.
pub(super) const DROPPED_RESULTS: &[results::Exception] = &[];

/// Files that are longer than 600 lines.
pub(super) const LONG_FILES: &[LongFile] = &[];

/// Files with `unsafe` code.
pub(super) const UNSAFE_FILES: &[UnsafeFile] = &[
    UnsafeFile {
        path: "bench/servers/epoll-floor/src/main.rs",
        reason: "the floor is the system calls themselves",
    },
    UnsafeFile {
        path: "crates/kvant-engine/src/memtable/arena.rs",
        reason: "hands out memory that lives as long as itself",
    },
    UnsafeFile {
        path: "crates/kvant-engine/src/memtable/skiplist.rs",
        reason: "readers follow links without a lock",
    },
    UnsafeFile {
        path: "crates/kvant-env/src/posix.rs",
        reason: "calls libc for what std does not offer",
    },
    UnsafeFile {
        path: "crates/kvant-load/src/script/state.rs",
        reason: "scripts of wrk may use LuaJIT's ffi, which only an unsafe call opens",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/alloc.rs",
        reason: "a global allocator is an unsafe trait",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/arch.rs",
        reason: "reads registers and the code around an address",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/clock.rs",
        reason: "CPU clocks of other threads have no safe interface",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/code.rs",
        reason: "asks the loader what is mapped",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/handler.rs",
        reason: "a signal handler reads what the kernel passes to it",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/lane.rs",
        reason: "maps memory for rings that is never given back",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/perf.rs",
        reason: "shares memory with the kernel",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/ring.rs",
        reason: "walks the caller's stack, and carries static strings as words",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/timer.rs",
        reason: "timers that signal a thread have no safe interface",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/walk.rs",
        reason: "follows frame pointers",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/walk/tests.rs",
        reason: "walks stacks that are built by hand",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/symbols/heap.rs",
        reason: "asks the C library to give memory back",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/tests/session.rs",
        reason: "only assembly leaves no frame pointers",
    },
    UnsafeFile {
        path: "crates/kvant-server/src/descriptors.rs",
        reason: "std offers no resource limits",
    },
];

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
