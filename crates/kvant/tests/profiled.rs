//! Server and load generator in one process, under the signals of a profile: interrupts cause no
//! failure, and stacks are complete.

use addr2line::Loader;
use kvant_base::{Events, MemoryBudget, NoLog};
use kvant_engine::{Db, Options, Resources};
use kvant_env::Env;
use kvant_load::request::{HeaderBlock, append_request};
use kvant_load::script::{Options as ScriptOptions, Script};
use kvant_load::{
    Arrival, Batch, Expected, Load, LoadConfig, OpNames, Outcome, Phase, Rate, RequestSource,
    StatusSet, Target,
};
use kvant_profiler::collect::{
    CpuOptions, Engine, Options as ProfileOptions, Profiler, interrupt_threads,
};
use kvant_profiler::recording::{Kind, Recording};
use kvant_server::{Backend, LsmStore, Server, ServerConfig};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, thread};

/// Signals go to the whole process, and only one profile can run: the tests run one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is removed at the end of a test that passes.
struct TempDir(PathBuf);

impl TempDir {
    fn new(parent: &Path) -> TempDir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("kvant-profiled-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a new directory");
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !thread::panicking() {
            fs::remove_dir_all(&self.0).expect("it is ours");
        }
    }
}

/// Calls `work` while all threads of the process are interrupted repeatedly; returns the number of
/// interrupts.
fn interrupted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let is_over = AtomicBool::new(false);
    interrupt_threads().expect("permitted");
    thread::scope(|scope| {
        let interrupter = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                interrupt_threads().expect("permitted");
                count += 1;
                thread::sleep(Duration::from_micros(200));
            }
            count
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        (done, interrupter.join().expect("it does not panic"))
    })
}

/// Writes and reads keys in turn.
struct Turns {
    target: Target,
    expected: [Expected; 1],
    bytes: Vec<u8>,
    count: u64,
}

impl RequestSource for Turns {
    fn next(&mut self, _target: usize) -> kvant_base::Result<Batch<'_>> {
        self.count += 1;
        let path = format!("/v0/entity?id=key-{}", self.count / 2 % 10_000);
        let headers = HeaderBlock::new(&self.target, &[])?;
        let value = [b'v'; 500];
        let (method, body) = match self.count % 2 {
            0 => ("PUT", Some(&value[..])),
            _ => ("GET", None),
        };
        self.bytes.clear();
        append_request(&mut self.bytes, method, &path, &headers, body);
        Ok(Batch { bytes: &self.bytes, requests: &self.expected })
    }
}

/// The client of the load.
#[derive(Clone, Copy, Debug)]
enum Maker {
    Rust,
    Lua,
}

/// As [`Turns`].
const SCRIPT: &str = r#"
local count = 0
local body = string.rep("v", 500)
request = function()
    count = count + 1
    local path = "/v0/entity?id=key-" .. math.floor(count / 2) % 10000
    if count % 2 == 0 then
        return wrk.format("PUT", path, nil, body)
    end
    return wrk.format("GET", path)
end
"#;

/// Loads a new database over HTTP.
fn serve_and_load(maker: Maker, duration: Duration) -> Outcome {
    let dir = TempDir::new(&std::env::temp_dir());
    let env = Env::posix();
    let memory = MemoryBudget::new(256 << 20);
    let events = Events::new(64);
    let config = ServerConfig {
        listen: "127.0.0.1:0".parse().expect("an address"),
        selectors: 2,
        ..ServerConfig::default()
    };
    let log = Arc::new(NoLog);
    let server = Server::start(config, env.clone(), memory.clone(), log.clone(), events.clone())
        .expect("a free port");
    let resources = Resources { memory, log, events, progress: Arc::default() };
    // Small, so that there are flushes and compactions.
    let options = Options { memtable_bytes: 1 << 20, ..Options::for_memory(256 << 20) };
    let db = Db::open(env.clone(), &dir.0, options, resources).expect("a new database");
    server.set_ready(Backend::Local(Arc::new(LsmStore::new(db))));

    let url = format!("http://{}/", server.local_addr());
    let target = Target::parse(&url).expect("a URL").resolve().expect("an address");
    let ops = OpNames::default();
    let source: Box<dyn RequestSource> = match maker {
        Maker::Rust => Box::new(Turns {
            target: target.clone(),
            expected: [Expected { op: ops.intern("turn"), is_head: false }],
            bytes: Vec::new(),
            count: 0,
        }),
        Maker::Lua => {
            let options = ScriptOptions {
                targets: vec![target.clone()],
                args: Vec::new(),
                headers: Vec::new(),
                thread_count: 1,
                seed: Some(1),
                is_wrk2_exact: false,
                ops: ops.clone(),
            };
            let mut script = Script::from_source("turns.lua", SCRIPT.as_bytes(), &options, &env)
                .expect("a script");
            script.sources().pop().expect("of the one thread")
        }
    };
    let config = LoadConfig {
        targets: vec![target],
        thread_count: 1,
        connection_count: 8,
        timeout: Duration::from_secs(30),
        arrival: Arrival::Uniform,
        seed: 1,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::ZERO,
        interval: Duration::from_secs(1),
        ca_pem: None,
    };
    let mut load = Load::start(config, vec![source], ops, env).expect("threads");
    let phase =
        Phase { rate: Rate::Closed, warmup: Duration::ZERO, duration, request_count_max: None };
    let outcome = load.run(&phase, &mut |_| true).expect("it runs to its end");
    load.stop();
    server.stop(Duration::from_secs(60)).expect("an orderly end");
    outcome
}

#[test]
fn no_request_fails_while_all_threads_are_interrupted() {
    let _turn = turn();
    let (outcome, interrupt_count) =
        interrupted(|| serve_and_load(Maker::Rust, Duration::from_secs(1)));
    assert!(interrupt_count > 0);
    let total = &outcome.total;
    assert!(total.completed > 0);
    let errors = &total.errors;
    assert_eq!(errors.connect + errors.read + errors.write + errors.timeout, 0, "{errors:?}");
    let is_served = |&(status, _): &(u16, u64)| matches!(status, 200 | 201 | 404);
    let statuses: Vec<_> = total.ops.iter().flat_map(|op| op.statuses.clone()).collect();
    assert!(statuses.iter().all(is_served), "{statuses:?}");
}

#[test]
fn space_is_reserved_while_the_thread_is_interrupted() {
    let _turn = turn();
    // tmpfs releases all that an interrupted call had reserved.
    let parents = [Path::new("/dev/shm").to_owned(), std::env::temp_dir()];
    for parent in parents.iter().filter(|parent| parent.is_dir()) {
        let dir = TempDir::new(parent);
        let file = Env::posix().fs.create(&dir.0.join("file")).expect("a new file");
        let bytes = 32 << 20;
        interrupted(|| file.allocate(bytes)).0.expect("enough space");
        assert_eq!(file.len_bytes().expect("it exists"), bytes);
    }
}

#[test]
fn a_handshake_completes_while_the_thread_is_interrupted() {
    let _turn = turn();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("it is bound"));
    let target = Target::parse(&url).expect("a URL").resolve().expect("an address");
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        // Long enough for some interrupts.
        thread::sleep(Duration::from_millis(200));
        drop(stream);
    });
    let (shaken, _) = interrupted(|| target.shake_hands(None, Duration::from_secs(60)));
    server.join().expect("it only waits");
    let error = shaken.expect_err("the server is silent").to_string();
    assert!(!error.to_lowercase().contains("interrupted"), "{error}");
}

/// The share of CPU time whose stacks start at the entry of a thread, and the functions of the
/// other stacks.
fn depth_per_cent(recording: &Recording) -> (f64, BTreeSet<String>) {
    let executable = &recording.facts.modules[0];
    let loader = Loader::new(&executable.path).expect("the test has symbols");
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux");
    let first = maps.lines().find(|line| line.ends_with(&executable.path));
    let (base, _) = first.and_then(|line| line.split_once('-')).expect("it is mapped");
    let base = u64::from_str_radix(base, 16).expect("hexadecimal");
    let name_of = |address: u64| {
        // A call precedes its return address.
        let symbol = address.checked_sub(base).and_then(|at| loader.find_symbol(at - 1));
        symbol.map_or_else(|| format!("{address:#x}"), str::to_owned)
    };
    // Entries of threads of the standard library and of the main thread.
    let is_entry = |name: &String| name.contains("thread_start") || name.contains("lang_start");

    let (mut total, mut deep, mut broken) = (0, 0, BTreeSet::new());
    for sample in recording.samples.iter().filter(|sample| sample.kind == Kind::Cpu) {
        let mut names = Vec::new();
        let mut node = sample.stack;
        while node != 0 {
            let stack = recording.stacks[node as usize];
            let frame = recording.frames[stack.frame as usize];
            names.push(name_of(frame.address));
            node = stack.parent;
        }
        total += sample.weight;
        if names.iter().any(is_entry) {
            deep += sample.weight;
        } else {
            broken.insert(names.join(" < "));
        }
    }
    (deep as f64 / total as f64 * 100.0, broken)
}

#[test]
fn stacks_reach_the_entry_of_their_threads_under_load() {
    let _turn = turn();
    for (engine, maker) in
        [(Engine::Timer, Maker::Rust), (Engine::Timer, Maker::Lua), (Engine::Perf, Maker::Rust)]
    {
        let options = ProfileOptions {
            cpu: Some(CpuOptions { rate_hz: 1000, engine }),
            alloc_mean_bytes: None,
            wait_mean_ns: None,
            ..ProfileOptions::default()
        };
        let profiler = match Profiler::start(options, &Env::posix(), None) {
            Ok(profiler) => profiler,
            // Perf events are not permitted everywhere.
            Err(_refused) if engine == Engine::Perf => continue,
            Err(error) => panic!("{error}"),
        };
        let outcome = serve_and_load(maker, Duration::from_secs(1));
        let recording = profiler.stop();
        assert!(outcome.total.completed > 0);
        let (depth, broken) = depth_per_cent(&recording);
        assert!(
            depth >= 95.0,
            "{engine:?}, {maker:?}: only {depth} % of the time reaches a thread's entry: {broken:#?}"
        );
    }
}
