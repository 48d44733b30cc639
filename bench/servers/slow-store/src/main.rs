//! Kvant's server with a store that takes a given time for each read, commit and range on the
//! calling thread, like a disk of known speed. It serves to measure the server: dispatch, queues,
//! refusals.
//!
//! The store is Kvant's own engine behind a pause. It always needs its disk, so that `hybrid` sends
//! reads to workers. With `--lock true` all pauses are under one lock, named `store`: one request
//! at a time has its pause. It runs until a signal.
//!
//! `slow-store --data DIR --listen ADDRESS [--pause 1ms] [--lock BOOL] [--dispatch MODE]
//! [--overload POLICY] [--selectors N] [--workers N] [--queue-capacity N] [--queue-wait-max TIME]`,
//! as for `kvant serve`.

use kvant_base::lock::NamedMutex;
use kvant_base::{Events, NoLog, Result, duration};
use kvant_engine::{Db, Options, Resources};
use kvant_env::Env;
use kvant_server::{
    Backend, Capability, Completion, DispatchMode, LocalStore, Lookup, LsmStore, Overload,
    ReadTrace, Records, Server, ServerConfig, Store, Write, WriteHealth,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Enough to keep all data in memory.
const MEMORY_BYTES: u64 = 512 << 20;
/// Entries of `/v0/events`, as in `kvant serve`.
const EVENTS_KEPT: usize = 4096;

struct Arguments {
    data: PathBuf,
    pause: Duration,
    is_locked: bool,
    config: ServerConfig,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> std::result::Result<Arguments, String> {
        let (mut data, mut pause, mut is_locked) = (None, Duration::from_millis(1), false);
        let mut config = ServerConfig::default();
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} has no value"))?;
            match name.as_str() {
                "--data" => data = Some(PathBuf::from(value)),
                "--pause" => pause = duration::parse(&value)?,
                "--lock" => is_locked = parse(&name, &value)?,
                "--listen" => config.listen = parse(&name, &value)?,
                "--selectors" => config.selectors = parse(&name, &value)?,
                "--workers" => config.workers = parse(&name, &value)?,
                "--queue-capacity" => config.queue_capacity = parse(&name, &value)?,
                "--queue-wait-max" => config.queue_wait_max = duration::parse(&value)?,
                "--dispatch" => config.dispatch = dispatch(&value)?,
                "--overload" => config.overload = overload(&value)?,
                _ => return Err(format!("there is no option {name}")),
            }
        }
        let data = data.ok_or("--data is missing")?;
        Ok(Arguments { data, pause, is_locked, config })
    }
}

fn parse<T: FromStr>(name: &str, value: &str) -> std::result::Result<T, String> {
    value.parse().map_err(|_| format!("{name} cannot be `{value}`"))
}

fn dispatch(name: &str) -> std::result::Result<DispatchMode, String> {
    Ok(match name {
        "inline" => DispatchMode::Inline,
        "pool" => DispatchMode::Pool,
        "hybrid" => DispatchMode::Hybrid,
        _ => return Err(format!("there is no dispatch mode `{name}`")),
    })
}

fn overload(name: &str) -> std::result::Result<Overload, String> {
    Ok(match name {
        "adaptive" => Overload::Adaptive,
        "reject" | "discard" => Overload::Reject,
        "discard-oldest" => Overload::DiscardOldest,
        "caller-runs" => Overload::CallerRuns,
        _ => return Err(format!("there is no policy `{name}`")),
    })
}

/// The engine behind a pause.
struct SlowStore {
    store: LsmStore,
    pause: Duration,
    lock: Option<NamedMutex<()>>,
}

impl SlowStore {
    /// The disk's time, without CPU use.
    fn wait(&self) {
        let _held = self.lock.as_ref().map(NamedMutex::lock);
        thread::sleep(self.pause);
    }
}

impl Store for SlowStore {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn has(&self, capability: Capability) -> bool {
        self.store.has(capability)
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, count_max: u64) -> Result<Box<dyn Records>> {
        self.wait();
        self.store.range(start, end, count_max)
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        self.store.stats_json()
    }

    fn write_metrics(&self, out: &mut String) {
        self.store.write_metrics(out);
    }

    fn write_health(&self) -> WriteHealth {
        self.store.write_health()
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    fn compact(&self) -> Result<()> {
        self.store.compact()
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.store.checkpoint(dir)
    }

    fn close(&self) -> Result<()> {
        self.store.close()
    }
}

impl LocalStore for SlowStore {
    fn get(&self, key: &[u8], block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup> {
        self.wait();
        self.store.get(key, block_bytes_max, trace)
    }

    fn try_get(
        &self,
        _key: &[u8],
        _buffer: Option<&mut Vec<u8>>,
        _trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        Ok(Lookup::NeedsDisk { block_bytes: 0 })
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        self.wait();
        self.store.submit(writes, done);
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.store.on_writable(wake);
    }

    fn stall(&self) -> Option<&'static str> {
        self.store.stall()
    }
}

fn serve(arguments: Arguments) -> std::result::Result<(), String> {
    let Arguments { data, pause, is_locked, config } = arguments;
    let env = Env::posix();
    let options = Options::for_memory(MEMORY_BYTES);
    let resources = Resources { events: Events::new(EVENTS_KEPT), ..Resources::new(&options) };
    let (memory, events) = (Arc::clone(&resources.memory), Arc::clone(&resources.events));
    let server = Server::start(config, env.clone(), memory, Arc::new(NoLog), events)
        .map_err(|error| error.to_string())?;
    let db = Db::open(env, &data, options, resources).map_err(|error| error.to_string())?;
    let lock = is_locked.then(|| NamedMutex::new("store", ()));
    let store = SlowStore { store: LsmStore::new(db), pause, lock };
    server.set_ready(Backend::Local(Arc::new(store)));
    loop {
        thread::park();
    }
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("slow-store: {problem}");
            ExitCode::FAILURE
        }
    }
}
