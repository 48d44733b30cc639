//! Every setting, declared once.
//!
//! A row says what the setting is for, its unit, what it costs and when to change it. A setting is
//! a cost for everyone who has to understand it: one is added when a measurement needs it, not
//! before.

use super::kind::{self, Choice, Kind, exists, planned};
use super::{Host, LogFormat, Settings};
use kvant_base::limits::MEMORY_BYTES_MIN;
use kvant_base::{duration, size};
use kvant_engine::Compression;
use kvant_server::{DispatchMode, Overload};

/// One setting.
pub(crate) struct Setting {
    /// The flag without its dashes, and the key in the TOML file.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: DefaultValue,
    /// What it does: one sentence, without the period.
    pub(crate) help: &'static str,
    /// What more of it costs, or when to change it.
    pub(crate) cost: &'static str,
    /// Parses a value, checks it by itself and stores it.
    pub(crate) apply: fn(&mut Settings, &str) -> Result<(), String>,
}

/// The value of a setting that no source gives.
pub(crate) enum DefaultValue {
    /// This text.
    Text(&'static str),
    /// Follows from the host.
    Derived { words: &'static str, text: fn(&Host) -> String },
    /// None: what that means.
    Unset(&'static str),
}

impl Setting {
    /// The environment variable: `KVANT_ADMIN_LISTEN`.
    pub(crate) fn env_name(&self) -> String {
        format!("{ENV_PREFIX}{}", self.name.replace('-', "_").to_uppercase())
    }
}

/// What the environment variables of all settings begin with.
pub(crate) const ENV_PREFIX: &str = "KVANT_";

const ENGINES: &[Choice] =
    &[exists("lsm"), planned("memory"), planned("leveldb"), planned("cassandra")];
const DISPATCHES: &[Choice] = &[exists("inline"), exists("pool"), exists("hybrid")];
const OVERLOADS: &[Choice] = &[
    exists("adaptive"),
    exists("reject"),
    exists("discard"),
    exists("discard-oldest"),
    exists("caller-runs"),
];
const COMPRESSIONS: &[Choice] = &[exists("none"), exists("lz4"), exists("zstd")];
const LOG_FORMATS: &[Choice] = &[exists("text"), exists("json")];
/// Most threads of a kind, the same that [`kvant_server::ServerConfig::problems`] allows.
const THREAD_COUNT_MAX: usize = 1024;
/// More of anything than a machine has memory for.
const COUNT_MAX: usize = 100_000_000;

/// All settings, in the order in which they are shown. `--config` is not among them: a file cannot
/// name itself.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting {
        name: "data",
        kind: Kind::Path,
        default: DefaultValue::Text("./kvant-data"),
        help: "Directory of the database; created when there is none",
        cost: "One process owns it at a time. Must be on a local file system",
        apply: |s, text| kind::path(text).map(|path| s.data = path),
    },
    Setting {
        name: "checkpoints",
        kind: Kind::Path,
        default: DefaultValue::Unset("`checkpoints` beside the data directory"),
        help: "Directory of the checkpoints that `POST /v0/admin/checkpoint` makes; created with the first of them",
        cost: "Must be on the file system of the data, and not in their directory. Servers that share it need other names for \
               their checkpoints",
        apply: |s, text| kind::path(text).map(|path| s.checkpoints = Some(path)),
    },
    Setting {
        name: "listen",
        kind: Kind::Addr,
        default: DefaultValue::Text("127.0.0.1:8080"),
        help: "Address of the HTTP API; port 0 takes a free one, which the log names",
        cost: "An address that is not loopback is refused without --insecure",
        apply: |s, text| kind::addr(text).map(|addr| s.listen = addr),
    },
    Setting {
        name: "admin-listen",
        kind: Kind::Addr,
        default: DefaultValue::Unset("the operator API answers on --listen"),
        help: "Address of its own for the operator API (/health, /metrics, /v0/stats, /v0/admin/...)",
        cost: "Set it when clients must not reach the operator API",
        apply: |s, text| kind::addr(text).map(|addr| s.admin_listen = Some(addr)),
    },
    Setting {
        name: "insecure",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "Allow addresses that are not loopback although there are no credentials",
        cost: "Whoever reaches the address can read, write and delete everything",
        apply: |s, text| kind::switch(text).map(|on| s.insecure = on),
    },
    Setting {
        name: "allowed-hosts",
        kind: Kind::Form("LIST"),
        default: DefaultValue::Unset("addresses and `localhost` alone"),
        help: "Names under which clients reach the server, such as `kv.example,kv`; requests whose Host or Origin has \
               another name are answered 403, because a web page may have sent them",
        cost: "Name only what the network's own name servers answer for: an attacker who answers for a name can make browsers \
               send requests under it",
        apply: |s, text| kind::hosts(text).map(|names| s.allowed_hosts = names),
    },
    Setting {
        name: "engine",
        kind: Kind::Choice(ENGINES),
        default: DefaultValue::Text("lsm"),
        help: "Storage engine",
        cost: "Only `lsm`, the log-structured merge tree, exists so far",
        apply: |_, text| kind::choose("engine", ENGINES, text).map(|_| ()),
    },
    Setting {
        name: "dispatch",
        kind: Kind::Choice(DISPATCHES),
        default: DefaultValue::Text("hybrid"),
        help: "Which threads do the storage work of a request: the selector that read it (inline), workers (pool), or the \
               selector where no disk is needed and else workers (hybrid)",
        cost: "`inline` is the cheapest while reads are cached, but a cold read holds up the other connections of its \
               selector; `pool` costs a change of threads for each request; `hybrid` pays it for cold reads only",
        apply: |s, text| dispatch(text).map(|mode| s.dispatch = mode),
    },
    Setting {
        name: "selectors",
        kind: Kind::Count,
        default: DefaultValue::Derived {
            words: "one a processor",
            text: |host| host.cpu_count.to_string(),
        },
        help: "Selector threads: event loops over which the connections are spread",
        cost: "More than there are processors only adds switches between threads; fewer leave processors to others",
        apply: |s, text| kind::count(text, THREAD_COUNT_MAX).map(|count| s.selector_count = count),
    },
    Setting {
        name: "selector-cpus",
        kind: Kind::Form("LIST"),
        default: DefaultValue::Unset("the system may move selectors between processors"),
        help: "CPUs that the selector threads are bound to, one each and in turn, such as `0,2-3`",
        cost: "Set it on a machine that does nothing else, to keep caches warm; whatever else runs on these CPUs holds \
               up their selectors, which cannot move away",
        apply: |s, text| kind::cpus(text).map(|cpus| s.selector_cpus = cpus),
    },
    Setting {
        name: "workers",
        kind: Kind::Count,
        default: DefaultValue::Derived {
            words: "two a processor, at least 4",
            text: |host| (2 * host.cpu_count).clamp(4, THREAD_COUNT_MAX).to_string(),
        },
        help: "Worker threads of --dispatch pool and hybrid; inline has none",
        cost: "More: more reads from disk at a time, until the device is busy; each costs a stack and switches between \
               threads",
        apply: |s, text| kind::count(text, THREAD_COUNT_MAX).map(|count| s.worker_count = count),
    },
    Setting {
        name: "queue-capacity",
        kind: Kind::Count,
        default: DefaultValue::Text("1024"),
        help: "Requests that may wait for a worker of --dispatch pool and hybrid; inline has no such queue",
        cost: "Longer: bursts are taken instead of refused, and those at the end of the queue wait longer",
        apply: |s, text| kind::count(text, COUNT_MAX).map(|count| s.queue_capacity = count),
    },
    Setting {
        name: "overload",
        kind: Kind::Choice(OVERLOADS),
        default: DefaultValue::Text("adaptive"),
        help: "What happens to requests beyond what the server can do: the limit follows the measured latency (adaptive), \
               or, at a full queue, the new request is refused (reject, discard), the one that has waited longest is \
               (discard-oldest), or the selector does the work itself (caller-runs)",
        cost: "Whoever is refused is answered 503 with Retry-After. `discard-oldest` suits clients that give up soon; \
               `caller-runs` refuses nobody and holds up all connections of the selector",
        apply: |s, text| overload(text).map(|policy| s.overload = policy),
    },
    Setting {
        name: "queue-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("1s"),
        help: "Longest time that a request waits before its storage work, as in a write stall; then it is answered 503",
        cost: "Longer: fewer refusals in short stalls, more requests that hold memory meanwhile",
        apply: |s, text| duration::parse(text).map(|wait| s.queue_wait_max = wait),
    },
    Setting {
        name: "range-idle-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("30s"),
        help: "Longest time that the reader of a range may take nothing; then its connection is cut",
        cost: "Longer: forgotten readers keep deleted data on disk for longer, because a range reads one snapshot",
        apply: |s, text| positive_duration(text).map(|idle| s.range_idle_max = idle),
    },
    Setting {
        name: "connections-max",
        kind: Kind::Count,
        default: DefaultValue::Unset(
            "the descriptor limit, raised to the hard one, less 1,000 or three quarters of it, whichever is less",
        ),
        help: "Connections open at once, all listeners together, at most the default; further ones wait in the kernel until one \
               closes",
        cost: "Lower it when memory is short: an idle connection holds a few KiB, and the kernel's buffers beside it",
        apply: |s, text| kind::count(text, COUNT_MAX).map(|count| s.connections_max = Some(count)),
    },
    Setting {
        name: "connection-idle-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("5m"),
        help: "Longest time that a connection may be open without a request; then it is closed",
        cost: "Longer than the idle time of the clients' pools, or they send requests into closing connections; \
               longer: forgotten connections count against --connections-max for longer",
        apply: |s, text| positive_duration(text).map(|idle| s.connection_idle_max = idle),
    },
    Setting {
        name: "head-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("10s"),
        help: "Longest time from the first byte of a request's head to its last; then it is answered 408 and the \
               connection closed",
        cost: "Longer for clients behind very slow networks; shorter: connections that only pretend to send a request go \
               sooner",
        apply: |s, text| positive_duration(text).map(|wait| s.head_wait_max = wait),
    },
    Setting {
        name: "stop-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("10s"),
        help: "Longest time that requests in flight are given to finish after SIGTERM or SIGINT",
        cost: "Longer: slower restarts when a client hangs",
        apply: |s, text| duration::parse(text).map(|wait| s.stop_wait_max = wait),
    },
    Setting {
        name: "sync",
        kind: Kind::Form("os|interval=DURATION|always"),
        default: DefaultValue::Text("interval=1s"),
        help: "What an acknowledged write has survived: the process (os), all but the last interval of a power loss \
               (interval=1s), a power loss (always)",
        cost: "`always`: one fsync for each group of writes that wait together",
        apply: |s, text| kind::sync(text).map(|level| s.sync = level),
    },
    Setting {
        name: "recover-anyway",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "Repair a database that is damaged or lacks files, as `kvant db repair` does, and serve what is left, instead of \
               refusing to start",
        cost: "Records may be missing, and older or deleted ones may have come back: the log says what is lost. For one start; \
               left on, it decides so the next time too",
        apply: |s, text| kind::switch(text).map(|on| s.recover_anyway = on),
    },
    Setting {
        name: "memory",
        kind: Kind::Size,
        default: DefaultValue::Derived {
            words: "a quarter of the machine's memory or of the control group's limit, at least 64MiB",
            text: memory_default,
        },
        help: "Memory for memtables, block cache, indexes and filters, iterators, compaction, connections and requests \
               together",
        cost: "More: fewer disk reads, fewer and larger flushes, longer recovery. At least 64MiB",
        apply: |s, text| memory(text).map(|bytes| s.memory_bytes = bytes),
    },
    Setting {
        name: "value-bytes-max",
        kind: Kind::Size,
        default: DefaultValue::Text("16MiB"),
        help: "Longest value that is accepted; longer ones are answered 413",
        cost: "A value is in memory as a whole while it is written. At most a quarter of --memory, and 1GiB",
        apply: |s, text| size::parse(text).map(|bytes| s.value_bytes_max = bytes),
    },
    Setting {
        name: "compression",
        kind: Kind::Choice(COMPRESSIONS),
        default: DefaultValue::Text("lz4"),
        help: "Compression of tables written from now on; those that exist stay readable",
        cost: "`zstd`: smaller than `lz4`, slower to read and write. `none`: for values that are compressed already",
        apply: |s, text| compression(text).map(|method| s.compression = method),
    },
    Setting {
        name: "log-format",
        kind: Kind::Choice(LOG_FORMATS),
        default: DefaultValue::Text("text"),
        help: "Log lines on standard error: for people (text) or one JSON object a line (json)",
        cost: "JSON lines are longer; take them when a program reads the log",
        apply: |s, text| log_format(text).map(|format| s.log_format = format),
    },
];

fn positive_duration(text: &str) -> Result<std::time::Duration, String> {
    let parsed = duration::parse(text)?;
    if parsed.is_zero() { Err("must be longer than zero".to_string()) } else { Ok(parsed) }
}

fn memory(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    match bytes < MEMORY_BYTES_MIN {
        true => Err(format!("`{text}` is below the least, {}", size::format(MEMORY_BYTES_MIN))),
        false => Ok(bytes),
    }
}

/// Where the host does not tell its memory, the least with which the database is comfortable on any
/// machine.
fn memory_default(host: &Host) -> String {
    const UNKNOWN_HOST_BYTES: u64 = 256 << 20;
    let quarter = host.memory_bytes.map_or(UNKNOWN_HOST_BYTES, |bytes| bytes / 4);
    // Whole mebibytes: the figure is for people.
    size::format((quarter >> 20 << 20).max(MEMORY_BYTES_MIN))
}

fn dispatch(text: &str) -> Result<DispatchMode, String> {
    Ok(match kind::choose("dispatch mode", DISPATCHES, text)? {
        "pool" => DispatchMode::Pool,
        "hybrid" => DispatchMode::Hybrid,
        _ => DispatchMode::Inline,
    })
}

fn overload(text: &str) -> Result<Overload, String> {
    Ok(match kind::choose("overload policy", OVERLOADS, text)? {
        "adaptive" => Overload::Adaptive,
        "discard" => Overload::Reject,
        "discard-oldest" => Overload::DiscardOldest,
        "caller-runs" => Overload::CallerRuns,
        _ => Overload::Reject,
    })
}

fn compression(text: &str) -> Result<Compression, String> {
    Ok(match kind::choose("compression", COMPRESSIONS, text)? {
        "none" => Compression::None,
        "zstd" => Compression::Zstd,
        _ => Compression::Lz4,
    })
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    Ok(match kind::choose("log format", LOG_FORMATS, text)? {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    })
}
