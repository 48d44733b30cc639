//! A blocked Bloom filter: all bits of a key are in one cache line (`docs/formats/table.md`,
//! section 3).
//!
//! See Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (WEA 2007). A
//! lookup costs one cache miss; the same false-positive rate takes about a tenth more bits than a
//! standard Bloom filter, because lines are unequally full.

use super::stored::{Malformed, Parsed};
use crate::prefetch::prefetch;
use std::f64::consts::LN_2;

/// Most bits set per key.
const PROBES_MAX: u32 = 24;
const LINE_BITS: f64 = 512.0;
const LINE_BYTES: usize = 64;
/// An odd number derived from the golden ratio: multiplication spreads the low bits of a hash into
/// the high bits that a probe uses.
const PROBE_STEP: u32 = 0x9e37_79b9;
/// Safety factor of [`bits_per_key_for`]: the model assumes independent probes, and measured rates
/// are up to 7 % higher (the tests beside this file).
const MODEL_MARGIN: f64 = 1.1;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// One cache line of the filter.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A filter over hashes of user keys.
pub(crate) struct Filter {
    lines: Vec<Line>,
    probe_count: u32,
}

impl Filter {
    /// A filter for `hashes` with at least `bits_per_key`, which must be positive.
    pub(super) fn build(hashes: &[u64], bits_per_key: f64) -> Filter {
        let bits_per_key = bits_per_key.clamp(1.0, BITS_PER_KEY_MAX);
        let line_count = (hashes.len() as f64 * bits_per_key / LINE_BITS).ceil().max(1.0) as usize;
        let mut filter = Filter {
            lines: vec![Line([0; 8]); line_count],
            probe_count: best_probe_count(bits_per_key).0,
        };
        for &hash in hashes {
            let line = filter.line_index(hash);
            let words = &mut filter.lines[line].0;
            let mut h = hash as u32;
            for _ in 0..filter.probe_count {
                h = h.wrapping_mul(PROBE_STEP);
                words[(h >> 29) as usize] |= 1 << ((h >> 23) & 63);
            }
        }
        filter
    }

    /// Fetches what [`Filter::may_contain`] reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&raw const self.lines[self.line_index(hash)]);
    }

    /// False if no key with this hash is in the table.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let words = &self.lines[self.line_index(hash)].0;
        let mut h = hash as u32;
        for _ in 0..self.probe_count {
            h = h.wrapping_mul(PROBE_STEP);
            if words[(h >> 29) as usize] >> ((h >> 23) & 63) & 1 == 0 {
                return false;
            }
        }
        true
    }

    #[inline]
    fn line_index(&self, hash: u64) -> usize {
        (((hash >> 32) * self.lines.len() as u64) >> 32) as usize
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * LINE_BYTES + 1);
        for line in &self.lines {
            for word in line.0 {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out.push(self.probe_count as u8);
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Parsed<Filter> {
        let (&probe_count, lines) = payload.split_last().ok_or(Malformed("filter is empty"))?;
        let (lines, rest) = lines.as_chunks::<LINE_BYTES>();
        if lines.is_empty() || !rest.is_empty() {
            return Err(Malformed("filter is not a whole number of lines"));
        }
        if !(1..=PROBES_MAX).contains(&u32::from(probe_count)) {
            return Err(Malformed("filter has an impossible number of probes"));
        }
        let lines = lines
            .iter()
            .map(|line| {
                let (words, _) = line.as_chunks::<8>();
                Line(std::array::from_fn(|i| u64::from_le_bytes(words[i])))
            })
            .collect();
        Ok(Filter { lines, probe_count: u32::from(probe_count) })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.lines.capacity() * LINE_BYTES
    }
}

/// Bits per key for a false-positive rate of at most `false_positive_rate`; 0 (no filter) for rates
/// of 1 and more.
pub(crate) fn bits_per_key_for(false_positive_rate: f64) -> f64 {
    if false_positive_rate >= 1.0 {
        return 0.0;
    }
    let (mut low, mut high) = (1.0, BITS_PER_KEY_MAX);
    while high - low > 0.001 {
        let middle = (low + high) / 2.0;
        if best_probe_count(middle).1 * MODEL_MARGIN <= false_positive_rate {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The number of probes with the lowest false-positive rate at `bits_per_key`, and that rate.
fn best_probe_count(bits_per_key: f64) -> (u32, f64) {
    // The optimum of a standard filter is an upper bound: full lines suffer more from many probes.
    let ordinary = (bits_per_key * LN_2).ceil().clamp(1.0, f64::from(PROBES_MAX)) as u32;
    (1..=ordinary)
        .map(|probes| (probes, modelled_rate(bits_per_key, probes)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("at least one probe is tried")
}

/// The false-positive rate in a model: the keys per line are Poisson distributed, and in a line of
/// `n` keys a probe hits one of `n * probes` bits set at random.
fn modelled_rate(bits_per_key: f64, probes: u32) -> f64 {
    let mean = LINE_BITS / bits_per_key;
    let mut log_probability = -mean;
    let mut rate = 0.0;
    for keys in 0..(mean * 4.0 + 64.0) as u32 {
        if keys > 0 {
            log_probability += (mean / f64::from(keys)).ln();
        }
        let clear = (1.0 - 1.0 / LINE_BITS).powf(f64::from(keys * probes));
        rate += log_probability.exp() * (1.0 - clear).powi(probes as i32);
    }
    rate
}

#[cfg(test)]
mod tests;
