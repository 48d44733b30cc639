//! A program with known shares of CPU time: a thread serves requests that another thread makes at
//! random times, and measures each part of its work with its CPU clock.

use super::{Names, thread_cpu_ns};
use kvant_base::wait::{self, WaitKind};
use kvant_env::Env;
use kvant_profiler::collect::clock::monotonic_ns;
use kvant_profiler::collect::{Engine, Profiler};
use kvant_profiler::recording::Kind;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The functions that do the parts of the work.
pub(crate) const PARTS: [&str; 5] = [
    "work_outside_of_the_kernel",
    "make_short_calls",
    "make_a_long_call",
    "write_in_a_wait",
    "wait_for_requests",
];
pub(crate) const PART_COUNT: usize = PARTS.len();
const OUTSIDE: usize = 0;
const SHORT: usize = 1;
pub(crate) const LONG: usize = 2;
const WRITE: usize = 3;
const WAIT: usize = 4;

/// One request in this many is measured, since reading the CPU clock is a system call, too.
const MEASURED_ONE_IN: u64 = 8;
/// One request in this many makes a long system call.
const LONG_ONE_IN: u64 = 16;
const LONG_BYTES: usize = 1 << 20;
const WRITE_BYTES: usize = 16 << 10;
/// Approximate CPU time of a request.
const SERVICE_NS: u64 = 32_000;

/// A number in `0..below`, by the finalizer of splitmix64, so that draws are independent.
fn chance(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut number = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (number ^ number >> 31) % below
}

/// What to run, and how to sample it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) engine: Engine,
    pub(crate) rate_hz: u32,
    /// The share of time in which the thread works, in per cent.
    pub(crate) load: u64,
    pub(crate) duration: Duration,
    /// Number of worker threads.
    pub(crate) worker_count: u64,
    /// Whether the threads announce their waits for requests.
    pub(crate) is_wait_said: bool,
    pub(crate) seed: u64,
}

/// Shares of the thread's CPU time by part, in per cent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) truth: [f64; PART_COUNT],
    pub(crate) seen: [f64; PART_COUNT],
    /// Total weight of the samples, in per cent of the thread's CPU time.
    pub(crate) seen_of_all: f64,
    /// The thread's CPU time, in per cent of wall clock time.
    pub(crate) load: f64,
    pub(crate) sample_count: usize,
    pub(crate) wait_count: u64,
}

impl Outcome {
    /// The largest deviation of a part, in percentage points.
    pub(crate) fn error(&self) -> f64 {
        let errors = self.truth.iter().zip(self.seen).map(|(truth, seen)| (truth - seen).abs());
        errors.fold(0.0, f64::max)
    }
}

#[inline(never)]
fn work_outside_of_the_kernel(rounds: u64) {
    let mut number = rounds | 1;
    for _ in 0..rounds {
        number = black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7);
    }
    black_box(number);
}

#[inline(never)]
fn make_short_calls(files: &Files, count: u64) {
    for _ in 0..count {
        black_box(rustix::process::getppid());
        let written = (&files.null).write(&[0; 64]);
        assert_eq!(written.expect("it takes all"), 64);
        let written = (&files.own.0).write(&[0; 200]);
        assert_eq!(written.expect("enough space"), 200);
        let read = (&files.own.1).read(&mut [0; 200]);
        assert_eq!(read.expect("it exists"), 200);
    }
    black_box(count);
}

#[inline(never)]
fn make_a_long_call(files: &Files, bytes: &mut [u8]) {
    files.memory.write_all_at(bytes, 0).expect("enough space");
    black_box(bytes);
}

#[inline(never)]
fn write_in_a_wait(files: &Files, bytes: &[u8]) {
    let waiting = wait::begin(WaitKind::Io, "known_write");
    files.memory.write_all_at(bytes, 1 << 20).expect("enough space");
    drop(waiting);
    black_box(bytes);
}

/// Number of requests made.
#[inline(never)]
fn wait_for_requests(files: &Files, is_wait_said: bool) -> usize {
    let mut bytes = [0; 64];
    loop {
        match (&files.requests).read(&mut bytes) {
            Ok(count) => return black_box(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        let waiting = is_wait_said.then(|| wait::begin(WaitKind::Idle, "known_wait"));
        match poll(&mut [PollFd::new(&files.requests, PollFlags::IN)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
        drop(waiting);
    }
}

struct Files {
    null: File,
    memory: File,
    own: (UnixStream, UnixStream),
    requests: UnixStream,
}

/// The thread's own measurements.
#[derive(Debug)]
struct Measured {
    by_part_ns: [u64; PART_COUNT],
    total_ns: u64,
    wall_ns: u64,
    wait_count: u64,
}

/// CPU time that a reading of the CPU clock adds to a measurement.
fn clock_cost_ns() -> u64 {
    let cost = |_| {
        let start_ns = thread_cpu_ns();
        thread_cpu_ns() - start_ns
    };
    let mut costs: Vec<u64> = (0..101).map(cost).collect();
    costs.sort_unstable();
    costs[50]
}

/// Serves requests of about 30 us until there are no more.
fn serve(files: &Files, plan: &Plan, mut seed: u64) -> Measured {
    let mut bytes = vec![1; LONG_BYTES];
    let clock_ns = clock_cost_ns();
    let (mut by_part_ns, mut clocks_ns, mut wait_count) = ([0; PART_COUNT], 0, 0);
    let (start_cpu_ns, start_ns) = (thread_cpu_ns(), monotonic_ns());
    loop {
        let count = wait_for_requests(files, plan.is_wait_said);
        if count == 0 {
            break;
        }
        wait_count += 1;
        for _ in 0..count {
            let mut timed =
                |part: usize, one_in: u64, is_measured: bool, work: &mut dyn FnMut()| {
                    if !is_measured {
                        return work();
                    }
                    // Twice, as the first time may take longer.
                    thread_cpu_ns();
                    let before_ns = thread_cpu_ns();
                    work();
                    let spent_ns = (thread_cpu_ns() - before_ns).saturating_sub(clock_ns);
                    clocks_ns += 3 * clock_ns;
                    by_part_ns[part] += spent_ns * one_in;
                };
            let is_measured = chance(&mut seed, MEASURED_ONE_IN) == 0;
            let rounds = 3_000 + chance(&mut seed, 14_000);
            timed(OUTSIDE, MEASURED_ONE_IN, is_measured, &mut || {
                work_outside_of_the_kernel(rounds)
            });
            let calls = 1 + chance(&mut seed, 8);
            timed(SHORT, MEASURED_ONE_IN, is_measured, &mut || make_short_calls(files, calls));
            timed(WRITE, MEASURED_ONE_IN, is_measured, &mut || {
                write_in_a_wait(files, &bytes[..WRITE_BYTES])
            });
            if chance(&mut seed, LONG_ONE_IN) == 0 {
                timed(LONG, 1, true, &mut || make_a_long_call(files, &mut bytes));
            }
        }
    }
    let wall_ns = monotonic_ns() - start_ns;
    let total_ns = (thread_cpu_ns() - start_cpu_ns).saturating_sub(clocks_ns);
    // The rest is waiting.
    by_part_ns[WAIT] = total_ns.saturating_sub(by_part_ns.iter().sum());
    Measured { by_part_ns, total_ns, wall_ns, wait_count }
}

/// Makes requests at random times, so that the serving thread is busy for `load` per cent.
fn make_requests(mut to: UnixStream, plan: &Plan, mut seed: u64) {
    let gap_ns = SERVICE_NS * 100 / plan.load;
    let mut due_ns = monotonic_ns();
    let end_ns = due_ns + plan.duration.as_nanos() as u64;
    while due_ns < end_ns {
        let fraction = (chance(&mut seed, 1 << 30) + 1) as f64 / (1_u64 << 30) as f64;
        due_ns += (-fraction.ln() * gap_ns as f64) as u64;
        let now_ns = monotonic_ns();
        if due_ns > now_ns {
            thread::sleep(Duration::from_nanos(due_ns - now_ns));
        }
        to.write_all(&[1]).expect("a reader");
    }
}

/// Runs the program and samples it.
pub(crate) fn run(plan: Plan) -> Outcome {
    let options = super::only_cpu(plan.engine, plan.rate_hz);
    let profiler = Profiler::start(options, &Env::posix(), None).expect("permitted");
    let mut workers = Vec::new();
    let mut makers = Vec::new();
    for number in 0..plan.worker_count {
        let seed = plan.seed + 2 * number;
        let memory =
            rustix::fs::memfd_create("known", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        let (requests, to) = UnixStream::pair().expect("two sockets");
        requests.set_nonblocking(true).expect("a socket");
        let files = Files {
            null: File::create("/dev/null").expect("it exists"),
            memory: memory.into(),
            own: UnixStream::pair().expect("two sockets"),
            requests,
        };
        let worker = thread::Builder::new().name("worker".to_owned());
        let work = move || {
            thread::sleep(super::FOUND_WITHIN);
            serve(&files, &plan, seed)
        };
        workers.push(worker.spawn(work).expect("a thread"));
        makers.push(thread::spawn(move || {
            thread::sleep(super::FOUND_WITHIN);
            make_requests(to, &plan, seed + 1);
        }));
    }
    makers.into_iter().for_each(|maker| maker.join().expect("makes requests"));
    let measured: Vec<Measured> =
        workers.into_iter().map(|worker| worker.join().expect("works")).collect();
    let recording = profiler.stop();
    assert_eq!(recording.facts.dropped_count, 0);
    let mut names = Names::of_this_binary();
    let (mut seen_ns, mut seen_by_part_ns, mut sample_count) = (0, [0; PART_COUNT], 0);
    for sample in &recording.samples {
        if sample.kind != Kind::Cpu || recording.threads[sample.thread as usize].name != "worker" {
            continue;
        }
        sample_count += 1;
        seen_ns += sample.weight;
        let stack = names.of(&recording, sample);
        for (sum_ns, part) in seen_by_part_ns.iter_mut().zip(PARTS) {
            if stack.iter().any(|name| name.contains(part)) {
                *sum_ns += sample.weight;
            }
        }
    }
    let sum = |number: &dyn Fn(&Measured) -> u64| measured.iter().map(number).sum::<u64>();
    let per_cent = |part: u64, whole: u64| part as f64 / whole as f64 * 100.0;
    let total_ns = sum(&|one| one.total_ns);
    Outcome {
        truth: std::array::from_fn(|part| per_cent(sum(&|one| one.by_part_ns[part]), total_ns)),
        seen: seen_by_part_ns.map(|ns| per_cent(ns, seen_ns)),
        seen_of_all: per_cent(seen_ns, total_ns),
        load: per_cent(total_ns, sum(&|one| one.wall_ns)),
        sample_count,
        wait_count: sum(&|one| one.wait_count),
    }
}

/// Busy processes, one per processor.
pub(crate) struct Neighbours(Vec<Child>);

impl Neighbours {
    pub(crate) fn begin() -> Neighbours {
        let count = thread::available_parallelism().expect("Linux").get();
        let begin = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            shell.spawn().expect("a shell")
        };
        Neighbours((0..count).map(begin).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("it is ours");
            child.wait().expect("it was killed");
        }
    }
}
