//! Counters of disk reads, filter probes and shortcuts to cached blocks.
//!
//! Threads: any. Every point read probes filters and takes shortcuts, so each thread counts these
//! in its own stripe.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Stripes of the counters of probes and shortcuts. More threads share stripes.
const STRIPES: usize = 16;

#[derive(Default)]
pub(crate) struct TableStats {
    disk_read_count: AtomicU64,
    disk_read_bytes: AtomicU64,
    stripes: [Stripe; STRIPES],
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    positive_count: AtomicU64,
    negative_count: AtomicU64,
    shortcut_count: AtomicU64,
}

impl TableStats {
    /// File reads, each of one block or several adjacent ones.
    pub(crate) fn disk_read_count(&self) -> u64 {
        self.disk_read_count.load(Ordering::Relaxed)
    }

    pub(crate) fn disk_read_bytes(&self) -> u64 {
        self.disk_read_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn filter_probe_count(&self) -> u64 {
        self.filter_negative_count() + self.sum(|stripe| &stripe.positive_count)
    }

    pub(crate) fn filter_negative_count(&self) -> u64 {
        self.sum(|stripe| &stripe.negative_count)
    }

    /// Data blocks that were found in the cache by their shortcut.
    pub(crate) fn shortcut_count(&self) -> u64 {
        self.sum(|stripe| &stripe.shortcut_count)
    }

    fn sum(&self, counter: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| counter(stripe).load(Ordering::Relaxed)).sum()
    }

    pub(super) fn count_disk_read(&self, bytes: usize) {
        self.disk_read_count.fetch_add(1, Ordering::Relaxed);
        self.disk_read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn count_probe(&self, positive: bool) {
        let stripe = &self.stripes[stripe_of_thread()];
        let counter = if positive { &stripe.positive_count } else { &stripe.negative_count };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn count_shortcut(&self) {
        self.stripes[stripe_of_thread()].shortcut_count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The stripe of the calling thread, assigned when it first counts.
#[inline]
fn stripe_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    STRIPE.with(|&stripe| stripe)
}
