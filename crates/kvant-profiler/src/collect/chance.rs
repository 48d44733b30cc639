//! Random numbers for samplers, usable inside of the allocator and of signal handlers.
//!
//! They need not be unpredictable, only independent of what is measured. They are not
//! `kvant_env::Rng`: replaying them from a seed is useless, as the times at which threads allocate
//! and wait are not replayed.
//!
//! Threads: each has its own state.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// 0 before the first use.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

static THREAD_COUNT: AtomicU64 = AtomicU64::new(0);

/// A random number (xorshift64*).
fn next() -> u64 {
    STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            x = seed(state as *const Cell<u64> as u64);
        }
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

/// A seed from the address of the thread's memory, which the system randomizes, and from a counter.
/// Never 0.
fn seed(address: u64) -> u64 {
    let number = THREAD_COUNT.fetch_add(1, Ordering::Relaxed);
    // The finalizer of splitmix64.
    let mut x = address ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) | 1
}

/// A number between 0 and 1, both excluded.
pub(super) fn fraction() -> f64 {
    ((next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// An exponentially distributed number of mean 1.
fn exponential() -> f64 {
    -fraction().ln()
}

/// True once in `count` times, a power of two.
pub(super) fn is_one_in(count: u64) -> bool {
    debug_assert!(count.is_power_of_two());
    // The upper bits are of better quality.
    next() >> 32 & (count - 1) == 0
}

/// Sample points on a thread's line of bytes or nanoseconds, with exponential gaps: an item of size
/// `s` contains a point with probability `1 - exp(-s / mean)`, independent of earlier items.
pub(super) struct SamplePoints {
    /// The mean of the current gap; 0 before the first use.
    mean: Cell<u64>,
    left: Cell<i64>,
}

impl SamplePoints {
    pub(super) const fn new() -> SamplePoints {
        SamplePoints { mean: Cell::new(0), left: Cell::new(0) }
    }

    /// Advances by `size`. Returns whether a point was passed.
    #[inline]
    pub(super) fn pass(&self, size: u64, mean: u64) -> bool {
        // No size reaches `i64::MAX`.
        let left = self.left.get().saturating_sub(size as i64);
        if left >= 0 && self.mean.get() == mean {
            self.left.set(left);
            return false;
        }
        self.draw(size, mean)
    }

    #[cold]
    #[inline(never)]
    fn draw(&self, size: u64, mean: u64) -> bool {
        if self.mean.replace(mean) != mean {
            // The first with this mean: gaps have no memory, so the first one may begin anywhere.
            let left = gap(mean).saturating_sub(size as i64);
            if left >= 0 {
                self.left.set(left);
                return false;
            }
        }
        self.left.set(gap(mean));
        true
    }
}

/// A distance to the next point. The cast saturates.
fn gap(mean: u64) -> i64 {
    (exponential() * mean as f64) as i64
}

/// The weight of a sample of this size.
pub(super) fn unbiased(size: u64, mean: u64) -> u64 {
    if size == 0 {
        // Sampled with probability 0.
        return 0;
    }
    (size as f64 / probability(size, mean)).round() as u64
}

fn probability(size: u64, mean: u64) -> f64 {
    -(-(size as f64) / mean as f64).exp_m1()
}

#[cfg(test)]
mod tests;
