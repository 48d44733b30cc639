//! Every setting, declared once.
//!
//! A row gives the purpose of the setting, its default and its cost. Every user has to understand a
//! setting: one is added when a measurement requires it, not before.

use super::kind::{self, Kind};
use super::{Engine, Host, LogFormat, Settings};
use kvant_base::limits::MEMORY_BYTES_MIN;
use kvant_base::{duration, size};
use kvant_engine::{CompactionGoal, Compression};
use kvant_server::{DispatchMode, Overload};

pub(crate) struct Setting {
    /// The flag without its dashes, and the key in the TOML file.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: DefaultValue,
    /// Its effect: one sentence, without the period.
    pub(crate) help: &'static str,
    /// The cost of a larger value, or when to change it.
    pub(crate) cost: &'static str,
    /// Parses a value, checks it by itself and stores it.
    pub(crate) apply: fn(&mut Settings, &str) -> Result<(), String>,
}

/// The value of a setting that no source contains.
pub(crate) enum DefaultValue {
    Text(&'static str),
    /// Computed from the host.
    Derived {
        words: &'static str,
        text: fn(&Host) -> String,
    },
    /// No value, with the resulting behaviour.
    Unset(&'static str),
}

impl Setting {
    /// The environment variable: `KVANT_ADMIN_LISTEN`.
    pub(crate) fn env_name(&self) -> String {
        format!("{ENV_PREFIX}{}", self.name.replace('-', "_").to_uppercase())
    }
}

pub(crate) const ENV_PREFIX: &str = "KVANT_";

const ENGINES: &[(&str, Engine)] = &[
    ("lsm", Engine::Lsm),
    ("leveldb", Engine::LevelDb),
    ("cassandra", Engine::Cassandra),
    ("memory", Engine::Memory),
];
const DISPATCHES: &[(&str, DispatchMode)] = &[
    ("inline", DispatchMode::Inline),
    ("pool", DispatchMode::Pool),
    ("hybrid", DispatchMode::Hybrid),
];
const OVERLOADS: &[(&str, Overload)] = &[
    ("adaptive", Overload::Adaptive),
    ("reject", Overload::Reject),
    // Another name of `reject`.
    ("discard", Overload::Reject),
    ("discard-oldest", Overload::DiscardOldest),
    ("caller-runs", Overload::CallerRuns),
];
const COMPRESSIONS: &[(&str, Compression)] =
    &[("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
const COMPACTIONS: &[(&str, CompactionGoal)] =
    &[("space", CompactionGoal::Space), ("writes", CompactionGoal::Writes)];
const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];
/// Most threads of a kind, as in [`kvant_server::ServerConfig::problems`].
const THREAD_COUNT_MAX: usize = 1024;
/// Far beyond what clusters have.
const REPLICA_COUNT_MAX: u32 = 100;
const BUCKET_COUNT_MAX: u32 = 1 << 20;
/// More requests or connections than a machine has memory for.
const COUNT_MAX: usize = 100_000_000;

/// All settings, in display order, except `--config`: a file cannot name itself.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting {
        name: "data",
        kind: Kind::Path,
        default: DefaultValue::Text("./kvant-data"),
        help: "Directory of the database; created if it does not exist",
        cost: "Only one process can use it at a time. Must be on a local file system",
        apply: |s, text| kind::path(text).map(|path| s.data = path),
    },
    Setting {
        name: "checkpoints",
        kind: Kind::Path,
        default: DefaultValue::Unset("`checkpoints` beside the data directory"),
        help: "Directory of the checkpoints of `POST /v0/admin/checkpoint`; created with the \
                first one",
        cost: "Must be on the file system of the data, outside the data directory. Servers that \
                share it need distinct checkpoint names",
        apply: |s, text| kind::path(text).map(|path| s.checkpoints = Some(path)),
    },
    Setting {
        name: "listen",
        kind: Kind::Addr,
        default: DefaultValue::Text("127.0.0.1:8080"),
        help: "Address of the HTTP API; port 0 picks a free port, which the log shows",
        cost: "An address that is not loopback requires --insecure",
        apply: |s, text| kind::addr(text).map(|addr| s.server.listen = addr),
    },
    Setting {
        name: "admin-listen",
        kind: Kind::Addr,
        default: DefaultValue::Unset("the operator API is served on --listen"),
        help: "Separate address for the operator API (/health, /metrics, /v0/stats, \
                /v0/admin/...)",
        cost: "Set it if clients must not reach the operator API",
        apply: |s, text| kind::addr(text).map(|addr| s.server.admin_listen = Some(addr)),
    },
    Setting {
        name: "insecure",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "Allow addresses that are not loopback, without credentials",
        cost: "Any client that reaches the address can read, write and delete everything",
        apply: |s, text| kind::switch(text).map(|on| s.insecure = on),
    },
    Setting {
        name: "allowed-hosts",
        kind: Kind::Form("LIST"),
        default: DefaultValue::Unset("addresses and `localhost` only"),
        help: "Names under which clients reach the server, such as `kv.example,kv`; a request \
                with another name in Host or Origin gets 403, because a web page may have sent it",
        cost: "List only names that the network's own name servers resolve: an attacker who \
                controls a name can make browsers send requests under it",
        apply: |s, text| kind::hosts(text).map(|names| s.server.allowed_hosts = names),
    },
    Setting {
        name: "engine",
        kind: Kind::Choice(|| kind::words(ENGINES)),
        default: DefaultValue::Text("lsm"),
        help: "Storage engine",
        cost: "`lsm` is Kvant's log-structured merge tree. `leveldb` is Google's LevelDB, in a \
                directory that its own tools open: no time to live (see leveldb.md). `cassandra` \
                is a cluster of Apache Cassandra or ScyllaDB: no snapshots, no checkpoints (see \
                cluster.md). `memory` is a sorted map, for tests and comparisons: at most half of \
                `memory`, no time to live, no checkpoints, and nothing survives the process",
        apply: |s, text| engine(text).map(|engine| s.engine = engine),
    },
    Setting {
        name: "dispatch",
        kind: Kind::Choice(|| kind::words(DISPATCHES)),
        default: DefaultValue::Text("hybrid"),
        help: "Threads that do the storage work of a request: the selector that read it \
                (inline), workers (pool), or the selector unless the request needs the disk, else \
                workers (hybrid)",
        cost: "`inline` costs least while reads are cached, but a cold read delays the other \
                connections of its selector; `pool` costs a thread switch per request; `hybrid` \
                pays it for cold reads only",
        apply: |s, text| {
            kind::choose("dispatch mode", DISPATCHES, text).map(|mode| s.server.dispatch = mode)
        },
    },
    Setting {
        name: "selectors",
        kind: Kind::Count,
        default: DefaultValue::Derived {
            words: "one per processor",
            text: |host| host.cpu_count.clamp(1, THREAD_COUNT_MAX).to_string(),
        },
        help: "Selector threads: event loops that share the connections",
        cost: "More than one per processor only adds thread switches; fewer leave processors for \
                other work",
        apply: |s, text| {
            kind::count(text, THREAD_COUNT_MAX).map(|count| s.server.selectors = count)
        },
    },
    Setting {
        name: "selector-cpus",
        kind: Kind::Form("LIST"),
        default: DefaultValue::Unset("the system may move selectors between processors"),
        help: "CPUs to bind selector threads to, one each in turn, such as `0,2-3`",
        cost: "Set it on a dedicated machine, to keep caches warm; other work on these CPUs \
                delays their selectors, which cannot move",
        apply: |s, text| kind::cpus(text).map(|cpus| s.server.selector_cpus = cpus),
    },
    Setting {
        name: "workers",
        kind: Kind::Count,
        default: DefaultValue::Derived {
            words: "two per processor, at least 4",
            text: |host| (2 * host.cpu_count).clamp(4, THREAD_COUNT_MAX).to_string(),
        },
        help: "Worker threads of --dispatch pool and hybrid; inline has none",
        cost: "More: more concurrent disk reads, until the device is saturated; each costs a \
                stack and thread switches",
        apply: |s, text| kind::count(text, THREAD_COUNT_MAX).map(|count| s.server.workers = count),
    },
    Setting {
        name: "queue-capacity",
        kind: Kind::Count,
        default: DefaultValue::Text("1024"),
        help: "Requests that may wait for a worker with --dispatch pool or hybrid; inline has no \
                queue",
        cost: "Longer: bursts are queued instead of rejected, and the last requests in the queue \
                wait longer",
        apply: |s, text| kind::count(text, COUNT_MAX).map(|count| s.server.queue_capacity = count),
    },
    Setting {
        name: "overload",
        kind: Kind::Choice(|| kind::words(OVERLOADS)),
        default: DefaultValue::Text("adaptive"),
        help: "What happens to requests beyond the server's capacity: the limit follows the \
                measured latency (adaptive), or, at a full queue, the server rejects the new \
                request (reject, also called discard), rejects the one that has waited longest \
                (discard-oldest), or does the work in the selector (caller-runs)",
        cost: "A rejected request gets 503 with Retry-After. `discard-oldest` suits clients that \
                give up soon; `caller-runs` rejects nothing and delays all connections of the \
                selector",
        apply: |s, text| {
            kind::choose("overload policy", OVERLOADS, text)
                .map(|policy| s.server.overload = policy)
        },
    },
    Setting {
        name: "queue-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("1s"),
        help: "Longest wait of a request before its storage work, as in a write stall; then it \
                gets 503",
        cost: "Longer: fewer rejections in short stalls, more requests that hold memory while \
                they wait",
        apply: |s, text| duration::parse(text).map(|wait| s.server.queue_wait_max = wait),
    },
    Setting {
        name: "range-idle-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("30s"),
        help: "Longest time without progress of a client that reads a response or sends a body; \
                then its connection is closed",
        cost: "Longer: an abandoned reader of a range keeps deleted data on disk longer, because \
                a range reads one snapshot",
        apply: |s, text| kind::positive_duration(text).map(|idle| s.server.range_idle_max = idle),
    },
    Setting {
        name: "history",
        kind: Kind::Duration,
        default: DefaultValue::Text("10m"),
        help: "How much of the past `/v0/history` shows: latency in windows of 100 ms, events, slow \
                requests; 0: nothing is recorded",
        cost: "Longer: more memory, at most 8 MiB or a sixteenth of `memory`; beyond that the \
                oldest part goes",
        apply: |s, text| kind::duration_or_zero(text).map(|kept| s.server.history = kept),
    },
    Setting {
        name: "connections-max",
        kind: Kind::Count,
        default: DefaultValue::Unset(
            "the descriptor limit, raised to the hard limit, minus 1,000 or three quarters of it, whichever is less",
        ),
        help: "Open connections over all listeners, at most the default; further connections \
                wait in the kernel until one closes",
        cost: "Lower it if memory is short: an idle connection uses a few KiB, plus the kernel's \
                buffers",
        apply: |s, text| {
            kind::count(text, COUNT_MAX).map(|count| s.server.connections_max = Some(count))
        },
    },
    Setting {
        name: "connection-idle-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("5m"),
        help: "Longest time that a connection stays open without a request",
        cost: "Must be longer than the idle time of the clients' pools, or they send requests \
                into closing connections; longer: abandoned connections count against \
                --connections-max longer",
        apply: |s, text| {
            kind::positive_duration(text).map(|idle| s.server.connection_idle_max = idle)
        },
    },
    Setting {
        name: "head-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("10s"),
        help: "Longest time from the first to the last byte of a request's head; then the server \
                responds 408 and closes the connection",
        cost: "Longer: for clients on very slow networks; shorter: connections that only pretend \
                to send a request close sooner",
        apply: |s, text| kind::positive_duration(text).map(|wait| s.server.head_wait_max = wait),
    },
    Setting {
        name: "stop-wait-max",
        kind: Kind::Duration,
        default: DefaultValue::Text("10s"),
        help: "Longest time for requests in flight to finish after SIGTERM or SIGINT",
        cost: "Longer: slower restarts if a client hangs",
        apply: |s, text| duration::parse(text).map(|wait| s.stop_wait_max = wait),
    },
    Setting {
        name: "sync",
        kind: Kind::Form("os|interval=DURATION|always"),
        default: DefaultValue::Text("interval=1s"),
        help: "What an acknowledged write survives: a crash of the process (os), a power loss \
                except for the last interval (interval=1s), a power loss (always)",
        cost: "`always`: one fsync per group of writes that wait together",
        apply: |s, text| kind::sync(text).map(|level| s.sync = level),
    },
    Setting {
        name: "recover-anyway",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "Repair a database that is damaged or lacks files, as `kvant db repair` does, and \
                serve the rest, instead of refusing to start",
        cost: "Records may be missing, and older or deleted ones may reappear: the log lists the \
                losses. Meant for one start; left on, it repairs at every start",
        apply: |s, text| kind::switch(text).map(|on| s.recover_anyway = on),
    },
    Setting {
        name: "memory",
        kind: Kind::Size,
        default: DefaultValue::Derived {
            words: "a quarter of the memory of the machine or control group, at least 64MiB",
            text: memory_default,
        },
        help: "Memory for memtables, block cache, indexes and filters, iterators, compaction, \
                connections and requests together",
        cost: "More: fewer disk reads, fewer and larger flushes, longer recovery. At least 64MiB",
        apply: |s, text| memory(text).map(|bytes| s.memory_bytes = bytes),
    },
    Setting {
        name: "direct-reads",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "The engine `lsm` reads blocks of up to 64 KiB past the system's page cache: for \
                data several times the memory of the machine or control group",
        cost: "Give --memory about three quarters of that memory: nothing else caches these \
                blocks. Where the page cache would hold the data, reads take more than ten times \
                as long",
        apply: |s, text| kind::switch(text).map(|on| s.direct_reads = on),
    },
    Setting {
        name: "value-bytes-max",
        kind: Kind::Size,
        default: DefaultValue::Text("16MiB"),
        help: "Longest accepted value; a longer one gets 413",
        cost: "A value is in memory as a whole while it is written. At most a quarter of \
                --memory, and 1GiB",
        apply: |s, text| size::parse(text).map(|bytes| s.server.value_bytes_max = bytes),
    },
    Setting {
        name: "compression",
        kind: Kind::Choice(|| kind::words(COMPRESSIONS)),
        default: DefaultValue::Text("lz4"),
        help: "Compression of new tables; existing ones stay readable",
        cost: "`zstd`: smaller than `lz4`, slower to read and write. `none`: for values that are \
                already compressed. The engine `leveldb` has `none` and, by default, Snappy",
        apply: |s, text| {
            kind::choose("compression", COMPRESSIONS, text).map(|method| s.compression = method)
        },
    },
    Setting {
        name: "compaction",
        kind: Kind::Choice(|| kind::words(COMPACTIONS)),
        default: DefaultValue::Text("space"),
        help: "What the engine `lsm` saves when it merges tables: disk space and time of reads \
                (space), or bytes written to the disk (writes)",
        cost: "`writes` flushes and merges less often: a fill in random order writes about half as \
                many bytes, memtables take up to half of --memory, a read searches up to 16 tables more, and \
                overwritten records may take up to 16 memtables of space beside a quarter of the \
                data",
        apply: |s, text| {
            kind::choose("compaction", COMPACTIONS, text).map(|goal| s.compaction = goal)
        },
    },
    Setting {
        name: "cluster-nodes",
        kind: Kind::Form("LIST"),
        default: DefaultValue::Text("127.0.0.1:9042"),
        help: "Nodes of the engine `cassandra`, such as `db1:9042,db2:9042`; the others are \
                learned from them",
        cost: "Name several, so that a start does not depend on one of them",
        apply: |s, text| words_of_list(text).map(|nodes| s.cluster.nodes = nodes),
    },
    Setting {
        name: "cluster-keyspace",
        kind: Kind::Form("NAME"),
        default: DefaultValue::Text("kvant"),
        help: "Keyspace of the cluster; created unless it exists",
        cost: "A keyspace with other tables than Kvant's is refused",
        apply: |s, text| word(text).map(|name| s.cluster.keyspace = name),
    },
    Setting {
        name: "cluster-datacenter",
        kind: Kind::Form("NAME"),
        default: DefaultValue::Unset("nodes of any datacenter coordinate requests"),
        help: "Datacenter whose nodes coordinate requests, while one of them is up",
        cost: "Set it if the cluster has several: another one is farther away",
        apply: |s, text| word(text).map(|name| s.cluster.datacenter = Some(name)),
    },
    Setting {
        name: "cluster-user",
        kind: Kind::Form("NAME"),
        default: DefaultValue::Unset("no credentials are sent"),
        help: "User of the cluster, with --cluster-password-file",
        cost: "The user creates keyspace and tables at the first start, and reads and writes them",
        apply: |s, text| word(text).map(|name| s.cluster.user = Some(name)),
    },
    Setting {
        name: "cluster-password-file",
        kind: Kind::Path,
        default: DefaultValue::Unset("no credentials are sent"),
        help: "File whose first line is the password of --cluster-user",
        cost: "Make it readable for the server's user alone",
        apply: |s, text| kind::path(text).map(|path| s.cluster.password_file = Some(path)),
    },
    Setting {
        name: "cluster-tls-ca",
        kind: Kind::Path,
        default: DefaultValue::Unset("connections with the cluster are not encrypted"),
        help: "File with the certificates, in PEM form, that vouch for the nodes; connections are \
                then encrypted",
        cost: "Encryption takes processor time of both sides",
        apply: |s, text| kind::path(text).map(|path| s.cluster.tls_ca = Some(path)),
    },
    Setting {
        name: "cluster-replicas",
        kind: Kind::Count,
        default: DefaultValue::Unset("what the keyspace has; 3 in a new one"),
        help: "Nodes that store each record",
        cost: "Only used when the keyspace is created; later, another number is refused",
        apply: |s, text| {
            count_u32(text, REPLICA_COUNT_MAX).map(|count| s.cluster.replica_count = Some(count))
        },
    },
    Setting {
        name: "cluster-buckets",
        kind: Kind::Count,
        default: DefaultValue::Unset("what the keyspace has; 256 in a new one"),
        help: "Partitions over which the records are spread",
        cost: "More: smaller partitions, and ranges that cost more, because each reads every one; \
                see cluster.md. Only used when the keyspace is created",
        apply: |s, text| {
            count_u32(text, BUCKET_COUNT_MAX).map(|count| s.cluster.bucket_count = Some(count))
        },
    },
    Setting {
        name: "cluster-ack",
        kind: Kind::Form("quorum|N"),
        default: DefaultValue::Text("quorum"),
        help: "Nodes that have to answer a request that does not say so itself, of those that \
                store the record",
        cost: "Fewer than a quorum: a read may miss the last writes, which then may also be lost",
        apply: |s, text| ack(text).map(|count| s.cluster.ack_count = count),
    },
    Setting {
        name: "cluster-timeout",
        kind: Kind::Duration,
        default: DefaultValue::Text("8s"),
        help: "Longest time of a request to the cluster with all its attempts; then it gets 504",
        cost: "Shorter than the cluster's own limits, it hides how many nodes have answered",
        apply: |s, text| kind::positive_duration(text).map(|wait| s.cluster.timeout = wait),
    },
    Setting {
        name: "cluster-connections",
        kind: Kind::Count,
        default: DefaultValue::Text("1"),
        help: "Connections of each selector with each node of the cluster, or with each shard of \
               ScyllaDB; as many again for ranges",
        cost: "A connection carries thousands of requests at a time; more of them use more \
                processors of the nodes",
        apply: |s, text| kind::count(text, 128).map(|count| s.cluster.connection_count = count),
    },
    Setting {
        name: "cluster-second-reads",
        kind: Kind::Switch,
        default: DefaultValue::Text("false"),
        help: "Send a read of a record to a second node too when it has no answer after the time \
                in which 99 of 100 have one; the first answer counts",
        cost: "The cluster has up to 5 per cent more reads to do",
        apply: |s, text| kind::switch(text).map(|on| s.cluster.has_second_reads = on),
    },
    Setting {
        name: "log-format",
        kind: Kind::Choice(|| kind::words(LOG_FORMATS)),
        default: DefaultValue::Text("text"),
        help: "Format of log lines on standard error: for people (text) or one JSON object per \
                line (json)",
        cost: "JSON lines are longer; use them if a program reads the log",
        apply: |s, text| {
            kind::choose("log format", LOG_FORMATS, text).map(|format| s.log_format = format)
        },
    },
];

fn memory(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    match bytes < MEMORY_BYTES_MIN {
        true => Err(format!("`{text}` is below the minimum, {}", size::format(MEMORY_BYTES_MIN))),
        false => Ok(bytes),
    }
}

/// A quarter of the host's memory; if that is unknown, an amount that suits any machine.
fn memory_default(host: &Host) -> String {
    const UNKNOWN_HOST_BYTES: u64 = 256 << 20;
    let quarter = host.memory_bytes.map_or(UNKNOWN_HOST_BYTES, |bytes| bytes / 4);
    // Whole mebibytes, for readability.
    size::format((quarter >> 20 << 20).max(MEMORY_BYTES_MIN))
}

fn engine(text: &str) -> Result<Engine, String> {
    match kind::choose("engine", ENGINES, text)? {
        Engine::LevelDb if !cfg!(feature = "leveldb") => Err(
            "this program was built without LevelDB: build it with the cargo feature `leveldb`, or \
             use lsm"
                .to_string(),
        ),
        Engine::Cassandra if !cfg!(feature = "cassandra") => Err(
            "this program was built without the driver of clusters: build it with the cargo feature \
             `cassandra`, or use lsm"
                .to_string(),
        ),
        engine => Ok(engine),
    }
}

fn words_of_list(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = text.split(',').map(|word| word.trim().to_string()).collect();
    match words.iter().any(String::is_empty) {
        true => Err(format!("`{text}` is no list: an entry is empty")),
        false => Ok(words),
    }
}

fn word(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("the name is empty".to_string()) } else { Ok(text.to_string()) }
}

fn count_u32(text: &str, max: u32) -> Result<u32, String> {
    // At most `max`.
    kind::count(text, max as usize).map(|count| count as u32)
}

fn ack(text: &str) -> Result<Option<u32>, String> {
    if text == "quorum" { Ok(None) } else { count_u32(text, REPLICA_COUNT_MAX).map(Some) }
}
