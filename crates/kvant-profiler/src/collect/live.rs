//! Which sampled allocations were not freed yet.
//!
//! An allocation is in the ring of the thread that made it, and its end in that of the thread that
//! freed it, so they may be found in the wrong order; and an address may be given out again.
//! Changes are therefore put in the order of their times, and wait for one drain, by which all
//! earlier ones were found.
//!
//! Threads: one, the drain.

use crate::recording::Sample;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Live {
    /// Not in order yet.
    pending: Vec<Change>,
    /// Until when changes may be put in order.
    found_until_mono_ns: u64,
    /// The sample of what is at an address.
    samples: HashMap<usize, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    time_mono_ns: u64,
    address: usize,
    /// The sample of an allocation; `None` when it is freed.
    sample: Option<usize>,
}

impl Live {
    pub(super) fn allocated(&mut self, time_mono_ns: u64, address: usize, sample: usize) {
        self.pending.push(Change { time_mono_ns, address, sample: Some(sample) });
    }

    pub(super) fn freed(&mut self, time_mono_ns: u64, address: usize) {
        self.pending.push(Change { time_mono_ns, address, sample: None });
    }

    /// Samples have other places now, or none.
    pub(super) fn move_samples(&mut self, places: &[Option<usize>]) {
        for change in &mut self.pending {
            // Whatever was at the address before is not there any more.
            change.sample = change.sample.and_then(|sample| places[sample]);
        }
        self.samples.retain(|_, sample| {
            let place = places[*sample];
            *sample = place.unwrap_or_default();
            place.is_some()
        });
    }

    /// All rings were emptied after `mono_ns`. What happened before the time given the last time is
    /// now marked in `samples`.
    pub(super) fn settle(&mut self, mono_ns: u64, samples: &mut [Sample]) {
        let until = match mono_ns {
            u64::MAX => u64::MAX,
            _ => std::mem::replace(&mut self.found_until_mono_ns, mono_ns),
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
