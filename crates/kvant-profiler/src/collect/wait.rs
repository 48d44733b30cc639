//! Samples what threads wait for.
//!
//! A wait of `w` is a sample with probability `1 - exp(-w/R)` and stands for `w / (1 - exp(-w/R))`: sums of weights are unbiased, long
//! waits are nearly always there, and short ones cost little. `R` is another one for each kind: idle threads do nothing but wait.
//!
//! Invariant: nothing here allocates or locks; who waited for a lock must not wait for one of ours.
//!
//! Threads: the listener is called on the thread that waited, or that is about to give up a lock.

use super::alloc::{is_sampled, unbiased};
use super::clock::monotonic_ns;
use super::ring::{self, Observation};
use crate::recording::Kind;
use kvant_base::wait::{self, WaitKind, WaitListener};
use std::sync::atomic::{AtomicU64, Ordering};

static LISTENER: Listener = Listener {
    mean_ns: [const { AtomicU64::new(0) }; WaitKind::ALL.len()],
};

struct Listener {
    /// By kind in the order of [`WaitKind::ALL`]; 0: none is sampled.
    mean_ns: [AtomicU64; WaitKind::ALL.len()],
}

/// Begins to sample waits, one in so many nanoseconds of each kind (0: none), or ends it.
pub(super) fn switch(mean_ns: Option<[u64; WaitKind::ALL.len()]>) {
    for (current, mean_ns) in LISTENER.mean_ns.iter().zip(mean_ns.unwrap_or_default()) {
        current.store(mean_ns, Ordering::Relaxed);
    }
    if mean_ns.is_some() {
        wait::install(&LISTENER);
    }
    wait::listen(mean_ns.is_some());
}

impl WaitListener for Listener {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn waited(&self, kind: WaitKind, name: &'static str, start_ns: u64, end_ns: u64) {
        self.sample(Kind::Wait(kind), kind, name, start_ns, end_ns);
    }

    fn held(&self, name: &'static str, since_ns: u64) {
        self.sample(Kind::Holder, WaitKind::Contention, name, since_ns, monotonic_ns());
    }
}

impl Listener {
    /// `mean_of`: the kind of wait whose mean decides.
    #[inline(never)]
    fn sample(&self, kind: Kind, mean_of: WaitKind, name: &'static str, start_ns: u64, end_ns: u64) {
        let mean_ns = self.mean_ns[mean_of as usize].load(Ordering::Relaxed);
        let duration_ns = end_ns.saturating_sub(start_ns);
        if mean_ns != 0 && is_sampled(duration_ns, mean_ns) {
            ring::record(&Observation {
                kind,
                time_mono_ns: start_ns,
                duration_ns,
                weight: unbiased(duration_ns, mean_ns),
                name: Some(name),
                address: 0,
                frames_to_skip: 1,
            });
        }
    }
}
