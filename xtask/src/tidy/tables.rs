//! What the checks know about this repository: orders, and exceptions with their reasons. The
//! tables of exceptions only shrink.

use super::calls::{self, Rule, WorldCall};
use super::files::{LongFile, UnsafeFile};
use super::modules::Row;
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

/// The engine's modules, lowest first: each with those that it may use.
#[rustfmt::skip]
pub(super) const ENGINE_MODULES: &[Row] = &[
    ("format", &[]),
    ("options", &[]),
    ("stats", &[]),
    ("events", &[]),
    ("cursor", &["format"]),
    ("batch", &["format"]),
    ("wal", &["format", "batch"]),
    ("memtable", &["format", "cursor", "batch"]),
    ("cache", &["format", "stats"]),
    ("table", &["format", "options", "cursor", "cache"]),
    ("version", &["format", "table"]),
    ("iter", &["format", "cursor", "stats", "memtable", "table", "version"]),
    ("compaction", &["format", "options", "stats", "events", "cursor", "table", "version", "iter"]),
    ("commit", &["format", "options", "stats", "events", "batch", "wal", "memtable"]),
    ("db", &["format", "options", "stats", "events", "cursor", "batch", "wal", "memtable", "cache",
        "table", "version", "iter", "compaction", "commit"]),
    ("tools", &["format", "options", "stats", "cursor", "batch", "wal", "memtable", "cache",
        "table", "version", "iter", "compaction", "commit", "db"]),
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
        path: "crates/kvant-engine/src/memtable/node.rs",
        reason: "an entry has a variable size",
    },
    UnsafeFile {
        path: "crates/kvant-engine/src/memtable/skiplist.rs",
        reason: "readers follow links without a lock",
    },
    UnsafeFile {
        path: "crates/kvant-env/src/posix.rs",
        reason: "signals and socket queues have no safe interface",
    },
    UnsafeFile {
        path: "crates/kvant-env/src/posix/memory.rs",
        reason: "maps memory and tunes the allocator",
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
        path: "crates/kvant-profiler/src/collect/handler.rs",
        reason: "a signal handler reads what the kernel passes to it",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/lane.rs",
        reason: "maps memory for rings that is never unmapped",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/perf.rs",
        reason: "shares memory with the kernel",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/record.rs",
        reason: "walks the caller's stack",
    },
    UnsafeFile {
        path: "crates/kvant-profiler/src/collect/ring.rs",
        reason: "carries static strings as words",
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
