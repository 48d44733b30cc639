//! Which sampled allocations are not freed yet.
//!
//! An allocation is in the ring of the thread that made it, its free in the ring of the thread that
//! freed it, so they may arrive out of order; and an address may be reused. Changes are therefore
//! sorted by time, and applied one drain later, when all earlier ones have arrived.
//!
//! Threads: one, the drain.

use crate::recording::Sample;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct LiveSamples {
    /// Unsorted.
    pending: Vec<Change>,
    /// All changes before this time have arrived.
    complete_until_mono_ns: u64,
    /// Address to index of the sample.
    samples: HashMap<usize, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    time_mono_ns: u64,
    address: usize,
    /// The sample of an allocation; `None` for a free.
    sample: Option<usize>,
}

impl LiveSamples {
    pub(super) fn add_allocation(&mut self, time_mono_ns: u64, address: usize, sample: usize) {
        self.pending.push(Change { time_mono_ns, address, sample: Some(sample) });
    }

    pub(super) fn add_free(&mut self, time_mono_ns: u64, address: usize) {
        self.pending.push(Change { time_mono_ns, address, sample: None });
    }

    /// Follows samples to their new indices; `None` for removed samples.
    pub(super) fn move_samples(&mut self, indices: &[Option<usize>]) {
        for change in &mut self.pending {
            // Without its sample it still ends the previous allocation at the address.
            change.sample = change.sample.and_then(|sample| indices[sample]);
        }
        self.samples.retain(|_, sample| {
            let index = indices[*sample];
            *sample = index.unwrap_or_default();
            index.is_some()
        });
    }

    /// All rings were emptied after `mono_ns`: updates `is_live` in `samples` for changes before
    /// the previous call's time.
    pub(super) fn settle(&mut self, mono_ns: u64, samples: &mut [Sample]) {
        let until = match mono_ns {
            u64::MAX => u64::MAX,
            _ => std::mem::replace(&mut self.complete_until_mono_ns, mono_ns),
        };
        self.pending.sort_by_key(|change| change.time_mono_ns);
        let settled_count = self.pending.partition_point(|change| change.time_mono_ns < until);
        for change in self.pending.drain(..settled_count) {
            let before = match change.sample {
                Some(sample) => {
                    samples[sample].is_live = true;
                    self.samples.insert(change.address, sample)
                }
                None => self.samples.remove(&change.address),
            };
            if let Some(sample) = before {
                samples[sample].is_live = false;
            }
        }
    }
}

#[cfg(test)]
mod tests;
