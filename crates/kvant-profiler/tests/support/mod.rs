//! Shared by the tests of known programs: work, names of functions on stacks, measured CPU time.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod known;

use addr2line::Loader;
use kvant_env::Env;
use kvant_profiler::collect::{CpuOptions, Engine, Options, Profiler};
use kvant_profiler::recording::{Kind, Recording, Sample};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) const MS: u64 = 1_000_000;
/// The profiler finds a new thread within this time.
pub(crate) const FOUND_WITHIN: Duration = Duration::from_millis(600);

/// Serializes the tests of a binary, as a process runs one session at a time.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Uses CPU time; returns how much it was.
#[inline(always)]
pub(crate) fn burn(ns: u64) -> u64 {
    let start_ns = thread_cpu_ns();
    let mut number = start_ns | 1;
    loop {
        for _ in 0..20_000 {
            number = black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7);
        }
        let spent_ns = thread_cpu_ns() - start_ns;
        if spent_ns >= ns {
            return spent_ns;
        }
    }
}

/// A number in `0..below`, from a seed that the caller prints.
pub(crate) fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % below
}

pub(crate) fn only_cpu(engine: Engine, rate_hz: u32) -> Options {
    Options {
        cpu: Some(CpuOptions { rate_hz, engine }),
        alloc_mean_bytes: None,
        wait_mean_ns: None,
        ..Options::default()
    }
}

/// Runs `work` on its own thread while timers sample it. Returns the shares of its CPU time in
/// functions whose names contain each of `functions`, in per cent.
pub(crate) fn shares<const N: usize>(
    functions: [&str; N],
    work: impl FnOnce() + Send + 'static,
) -> [f64; N] {
    let profiler =
        Profiler::start(only_cpu(Engine::Timer, 2000), &Env::posix(), None).expect("permitted");
    let worker = thread::Builder::new().name("worker".to_owned());
    let worker = worker.spawn(|| {
        thread::sleep(FOUND_WITHIN);
        work();
    });
    worker.expect("a thread").join().expect("works");
    let recording = profiler.stop();
    assert_eq!(recording.facts.dropped_count, 0);
    let mut names = Names::of_this_binary();
    let (mut total_ns, mut by_function_ns) = (0, [0; N]);
    for sample in &recording.samples {
        if sample.kind != Kind::Cpu || recording.threads[sample.thread as usize].name != "worker" {
            continue;
        }
        total_ns += sample.weight;
        let stack = names.of(&recording, sample);
        for (sum_ns, function) in by_function_ns.iter_mut().zip(functions) {
            if stack.iter().any(|name| name.contains(function)) {
                *sum_ns += sample.weight;
            }
        }
    }
    by_function_ns.map(|ns| ns as f64 / total_ns as f64 * 100.0)
}

/// Finds the names of functions of this test binary.
pub(crate) struct Names {
    loader: Loader,
    base: u64,
    known: HashMap<u64, String>,
}

impl Names {
    pub(crate) fn of_this_binary() -> Names {
        let path = std::env::current_exe().expect("a test has a binary");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        let first = maps
            .lines()
            .find(|line| line.ends_with(path.to_str().expect("a plain path")))
            .expect("the binary is mapped");
        let (start, _) = first.split_once('-').expect("a range");
        Names {
            loader: Loader::new(&path).expect("a test binary has symbols"),
            base: u64::from_str_radix(start, 16).expect("hexadecimal"),
            known: HashMap::new(),
        }
    }

    /// The functions of a sample's stack, innermost first; empty names for library and kernel code.
    pub(crate) fn of(&mut self, recording: &Recording, sample: &Sample) -> Vec<String> {
        let mut names = Vec::new();
        let mut node = sample.stack;
        while node != 0 {
            let stack = recording.stacks[node as usize];
            let frame = recording.frames[stack.frame as usize];
            let (loader, base) = (&self.loader, self.base);
            let name = self.known.entry(frame.address).or_insert_with(|| {
                // A call may be the last instruction of its function.
                let address = frame.address - u64::from(frame.is_return);
                let symbol =
                    address.checked_sub(base).and_then(|address| loader.find_symbol(address));
                symbol.unwrap_or_default().to_owned()
            });
            names.push(name.clone());
            node = stack.parent;
        }
        names
    }
}

/// The weight of all samples of a kind that pass `is_meant`.
pub(crate) fn weight(
    recording: &Recording,
    kind: Kind,
    mut is_meant: impl FnMut(&Sample) -> bool,
) -> f64 {
    let of_kind = recording.samples.iter().filter(|sample| sample.kind == kind);
    of_kind.filter(|sample| is_meant(sample)).map(|sample| sample.weight as f64).sum()
}

/// Whether the stack of a sample has a function whose name contains `function`.
pub(crate) fn is_in(
    names: &mut Names,
    recording: &Recording,
    sample: &Sample,
    function: &str,
) -> bool {
    names.of(recording, sample).iter().any(|name| name.contains(function))
}

/// Panics unless `seen` is within `per_cent` of `truth`.
pub(crate) fn assert_within(per_cent: f64, seen: f64, truth: f64, what: &str) {
    let off = (seen - truth).abs() / truth * 100.0;
    assert!(off <= per_cent, "{what}: {seen} where {truth} is true: {off:.1} % off");
}
