//! Whether memory that is in use is slow. A hypervisor can take back what it gave to a machine: the
//! next access to each page then takes some 100 us, for all programs, and counts as their own CPU
//! time. The kernel counts neither steal nor a fault for it.
//!
//! A probe reads some pages of its own, which it has written once, and compares the CPU time. A
//! page takes a tenth of a microsecond, so that neither a cold cache nor an interrupt takes as long
//! as [`SLOW_NS`].
//!
//! Threads: one reads. Its memory and its CPU time, 0.2 % of a CPU, are the generator's.

use crate::record::Stretch;
use kvant_env::Clock;
use kvant_env::clock::thread_cpu_ns;
use kvant_env::rng::Rng;
use std::hint;
use std::sync::Arc;
use std::time::Duration;

/// Time between two readings.
pub(super) const PERIOD: Duration = Duration::from_millis(20);
const PAGE_BYTES: usize = 4096;
/// The hypervisor may use pages of 2 MiB: there are several of them.
const PAGES: usize = (32 << 20) / PAGE_BYTES;
const PAGES_A_READING: usize = 128;
/// CPU time of a reading of memory that was taken back.
const SLOW_NS: u64 = 1_000_000;
/// Slow readings this far apart are of one stretch.
const APART_MAX_NS: u64 = 100_000_000;
const SEED: u64 = 1;

pub(super) struct MemoryProbe {
    clock: Arc<dyn Clock>,
    memory: Vec<u8>,
    rng: Rng,
    slow: Vec<Stretch>,
}

impl MemoryProbe {
    pub(super) fn new(clock: Arc<dyn Clock>) -> MemoryProbe {
        // Not zero, for which the system would give no memory.
        let memory = vec![1; PAGES * PAGE_BYTES];
        MemoryProbe { clock, memory, rng: Rng::new(SEED), slow: Vec::new() }
    }

    /// Reads some pages.
    pub(super) fn read(&mut self) {
        let (start_ns, start_cpu_ns) = (self.clock.monotonic_ns(), thread_cpu_ns());
        for _ in 0..PAGES_A_READING {
            let page = self.rng.below(PAGES as u64) as usize;
            hint::black_box(self.memory[page * PAGE_BYTES]);
        }
        let used_ns = thread_cpu_ns().saturating_sub(start_cpu_ns);
        self.note(Stretch { start_ns, end_ns: self.clock.monotonic_ns() }, used_ns);
    }

    fn note(&mut self, reading: Stretch, used_ns: u64) {
        if used_ns < SLOW_NS {
            return;
        }
        match self.slow.last_mut() {
            Some(last) if reading.start_ns.saturating_sub(last.end_ns) <= APART_MAX_NS => {
                last.end_ns = reading.end_ns;
            }
            _ => self.slow.push(reading),
        }
    }

    /// When memory was slow.
    pub(super) fn finish(self) -> Vec<Stretch> {
        self.slow
    }
}

/// What slow memory did to the time between `from_ns` and `to_ns`, in words, if there was any.
pub(super) fn note(slow: &[Stretch], from_ns: u64, to_ns: u64) -> Option<String> {
    let within =
        slow.iter().map(|one| one.end_ns.min(to_ns).saturating_sub(one.start_ns.max(from_ns)));
    let ms = within.sum::<u64>() / 1_000_000;
    (ms > 0).then(|| format!("memory was slow for {ms} ms, as if the hypervisor had taken it back"))
}

#[cfg(test)]
mod tests;
