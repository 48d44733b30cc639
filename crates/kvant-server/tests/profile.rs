//! A profiled server: samples show which kind of request a thread served, and what it waited for.
//! In a process of its own, since a process has one profiler.

use kvant_base::tag::Activity;
use kvant_base::wait::WaitKind;
use kvant_base::{MemoryBudget, NoLog};
use kvant_engine::{Db, Options, Resources};
use kvant_env::Env;
use kvant_env::testing::FaultyFs;
use kvant_profiler::collect::{self, Profiler};
use kvant_profiler::recording::{Kind, Recording, Sample};
use kvant_server::{Backend, DispatchMode, LsmStore, Server, ServerConfig};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const MEMORY_BYTES: u64 = 64 << 20;
/// Longer than any test may wait.
const NEVER: Duration = Duration::from_secs(600);

/// A process has one profiler.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A server with one selector, on the engine with a disk in memory.
fn start(dispatch: DispatchMode, env: &Env) -> Server {
    let config = ServerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        selectors: 1,
        workers: 1,
        dispatch,
        ..ServerConfig::default()
    };
    let (memory, events) = (MemoryBudget::new(MEMORY_BYTES), kvant_base::Events::new(64));
    let server =
        Server::start(config, env.clone(), memory.clone(), Arc::new(NoLog), events.clone())
            .unwrap();
    let resources = Resources { memory, log: Arc::new(NoLog), events, progress: Arc::default() };
    let db =
        Db::open(env.clone(), Path::new("/data"), Options::for_memory(MEMORY_BYTES), resources)
            .unwrap();
    server.set_ready(Backend::Local(Arc::new(LsmStore::new(db))));
    server
}

/// Sends requests and waits for the heads of as many responses.
fn exchange(stream: &mut TcpStream, requests: &str, response_count: usize) {
    stream.write_all(requests.as_bytes()).unwrap();
    let (mut received, mut buffer) = (Vec::new(), [0; 64 << 10]);
    let head_ends =
        |received: &[u8]| received.windows(4).filter(|four| four == b"\r\n\r\n").count();
    while head_ends(&received) < response_count {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&buffer[..count]);
    }
}

/// Profiles a server that reads and writes until `is_enough` holds.
fn profile(dispatch: DispatchMode, is_enough: impl Fn(&Recording) -> bool) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let env = Env { fs: Arc::new(FaultyFs::in_memory()), ..Env::posix() };
    let server = start(dispatch, &env);
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    let begun = Instant::now();
    loop {
        let profiler = Profiler::start(collect::Options::default(), &env, None).unwrap();
        let turn = Instant::now();
        while turn.elapsed() < Duration::from_millis(300) {
            let put =
                "PUT /v0/entity?id=key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
            exchange(&mut stream, put, 1);
            let get = "GET /v0/entity?id=key HTTP/1.1\r\nHost: localhost\r\n\r\n";
            exchange(&mut stream, get, 1);
        }
        if is_enough(&profiler.stop()) {
            break;
        }
        assert!(begun.elapsed() < NEVER, "nothing was seen");
    }
    drop(stream);
    server.stop(NEVER).unwrap();
}

fn is_of(recording: &Recording, sample: &Sample, thread: &str, activity: Activity) -> bool {
    recording.threads[sample.thread as usize].name == thread && sample.tag.activity == activity
}

/// Whether CPU time of `thread` was seen to go to each of the activities.
fn works_for(recording: &Recording, thread: &str, activities: &[Activity]) -> bool {
    let mut cpu = activities.iter().map(|activity| {
        let is_meant = |s: &&Sample| s.kind == Kind::Cpu && is_of(recording, s, thread, *activity);
        recording.samples.iter().any(|sample| is_meant(&sample))
    });
    cpu.all(|is_seen| is_seen)
}

/// Whether waits of this kind and name were seen; none of them may be contention. Their cost is CPU
/// time.
fn waits_for(recording: &Recording, kind: WaitKind, name: &str) -> bool {
    let is_named = |s: &&Sample| recording.names[s.name as usize] == name;
    let kinds: Vec<Kind> = recording
        .samples
        .iter()
        .filter(is_named)
        .map(|sample| sample.kind)
        .filter(|kind| *kind != Kind::Cpu)
        .collect();
    assert!(kinds.iter().all(|seen| *seen == Kind::Wait(kind)), "{kinds:?}");
    !kinds.is_empty()
}

#[test]
fn a_selector_is_tagged_with_the_requests_it_serves() {
    profile(DispatchMode::Inline, |recording| {
        works_for(recording, "selector-0", &[Activity::Get, Activity::Put])
            && waits_for(recording, WaitKind::Idle, "selector")
            && waits_for(recording, WaitKind::Idle, "task")
    });
}

#[test]
fn a_worker_is_tagged_with_the_requests_it_works_for() {
    profile(DispatchMode::Pool, |recording| {
        works_for(recording, "worker-0", &[Activity::Get, Activity::Put])
            && waits_for(recording, WaitKind::Idle, "worker_queue")
    });
}
