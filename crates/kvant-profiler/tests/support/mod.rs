//! What the tests of known programs share: names of the functions in a stack, and CPU time as the program itself measures it.
#![allow(dead_code, reason = "each test binary uses a part")]

use addr2line::Loader;
use kvant_profiler::recording::{Kind, Recording, Sample};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One session at a time in a process: tests of one binary take turns.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A number in `0..below`, from a seed that the caller prints.
pub(crate) fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % below
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

    /// The functions of a sample's stack, the innermost first; empty names for code of libraries and of the kernel.
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
                let symbol = address
                    .checked_sub(base)
                    .and_then(|address| loader.find_symbol(address));
                symbol.unwrap_or_default().to_owned()
            });
            names.push(name.clone());
            node = stack.parent;
        }
        names
    }
}

/// The weight of all samples of a kind for which `is_meant` is true.
pub(crate) fn weight(recording: &Recording, kind: Kind, mut is_meant: impl FnMut(&Sample) -> bool) -> f64 {
    let of_kind = recording.samples.iter().filter(|sample| sample.kind == kind);
    of_kind
        .filter(|sample| is_meant(sample))
        .map(|sample| sample.weight as f64)
        .sum()
}

/// Whether the stack of a sample has a function whose name contains `function`.
pub(crate) fn is_in(names: &mut Names, recording: &Recording, sample: &Sample, function: &str) -> bool {
    names
        .of(recording, sample)
        .iter()
        .any(|name| name.contains(function))
}

/// Fails unless `seen` is within `per_cent` of `truth`.
pub(crate) fn assert_within(per_cent: f64, seen: f64, truth: f64, what: &str) {
    let off = (seen - truth).abs() / truth * 100.0;
    assert!(
        off <= per_cent,
        "{what}: {seen} where {truth} is true: {off:.1} % off"
    );
}
