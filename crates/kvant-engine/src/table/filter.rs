//! A blocked Bloom filter: all bits of a key are in one cache line (`docs/formats/table.md`,
//! section 3).
//!
//! See Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (WEA 2007). A
//! lookup costs one cache miss; the same false-positive rate takes about a tenth more bits than a
//! standard Bloom filter, because lines are unequally full.

use super::stored::{Malformed, Parsed};
use crate::prefetch::prefetch;
use kvant_env::posix::Page;
use std::f64::consts::LN_2;

/// Most bits set per key.
const PROBES_MAX: u32 = 24;
const LINE_BITS: f64 = 512.0;
const LINE_BYTES: usize = 64;
const PAGE_LINES: usize = Page::BYTES / LINE_BYTES;
const PAGE_BYTES: u64 = Page::BYTES as u64;
/// An odd number derived from the golden ratio: multiplication spreads the low bits of a hash into
/// the high bits that a probe uses.
const PROBE_STEP: u32 = 0x9e37_79b9;
/// Safety factor of [`bits_per_key_for`]: the model assumes independent probes, and measured rates
/// are up to 7 % higher (the tests beside this file).
const MODEL_MARGIN: f64 = 1.1;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// One cache line of the filter: eight little-endian words.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

/// A filter over hashes of user keys.
pub(crate) struct Filter {
    lines: Lines,
    probe_count: u32,
}

/// Where the lines of a filter are. Those of a table that is read are in pages, which are parts of
/// huge pages: docs/decisions/0052. Short filters are in the heap, and those being built.
enum Lines {
    Pages { pages: Vec<Page>, line_count: usize },
    Heap(Vec<Line>),
}

impl Lines {
    fn copied(lines: &[[u8; LINE_BYTES]]) -> Lines {
        Lines::in_pages(lines)
            .unwrap_or_else(|| Lines::Heap(lines.iter().map(|line| Line(*line)).collect()))
    }

    /// `None` if they are few, or there are no pages.
    fn in_pages(lines: &[[u8; LINE_BYTES]]) -> Option<Lines> {
        if lines.len() < PAGE_LINES {
            return None;
        }
        let mut pages = Vec::with_capacity(lines.len().div_ceil(PAGE_LINES));
        for bytes in lines.as_flattened().chunks(Page::BYTES) {
            let mut page = Page::new()?;
            page[..bytes.len()].copy_from_slice(bytes);
            pages.push(page);
        }
        Some(Lines::Pages { pages, line_count: lines.len() })
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Lines::Pages { line_count, .. } => *line_count,
            Lines::Heap(lines) => lines.len(),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> &[u8; LINE_BYTES] {
        match self {
            Lines::Pages { pages, .. } => {
                let (lines, _) = pages[index / PAGE_LINES].as_chunks();
                &lines[index % PAGE_LINES]
            }
            Lines::Heap(lines) => &lines[index].0,
        }
    }
}

impl Filter {
    /// A filter for `hashes` with at least `bits_per_key`, which must be positive.
    pub(super) fn build(hashes: &[u64], bits_per_key: f64) -> Filter {
        let bits_per_key = bits_per_key.clamp(1.0, BITS_PER_KEY_MAX);
        let line_count = (hashes.len() as f64 * bits_per_key / LINE_BITS).ceil().max(1.0) as usize;
        let mut lines = vec![Line([0; LINE_BYTES]); line_count];
        let probe_count = best_probe_count(bits_per_key).0;
        for &hash in hashes {
            let line = &mut lines[line_index(hash, line_count)].0;
            let mut h = hash as u32;
            for _ in 0..probe_count {
                h = h.wrapping_mul(PROBE_STEP);
                line[(h >> 26) as usize] |= 1 << ((h >> 23) & 7);
            }
        }
        Filter { lines: Lines::Heap(lines), probe_count }
    }

    /// Fetches what [`Filter::may_contain`] reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.line_of(hash));
    }

    /// False if no key with this hash is in the table.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let line = self.line_of(hash);
        let mut h = hash as u32;
        for _ in 0..self.probe_count {
            h = h.wrapping_mul(PROBE_STEP);
            if line[(h >> 26) as usize] >> ((h >> 23) & 7) & 1 == 0 {
                return false;
            }
        }
        true
    }

    #[inline]
    fn line_of(&self, hash: u64) -> &[u8; LINE_BYTES] {
        self.lines.get(line_index(hash, self.lines.len()))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * LINE_BYTES + 1);
        for index in 0..self.lines.len() {
            out.extend_from_slice(self.lines.get(index));
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
        let lines = Lines::copied(lines);
        Ok(Filter { lines, probe_count: u32::from(probe_count) })
    }

    /// At least [`Filter::memory_bytes`] of a filter that has `stored_bytes` in its file.
    pub(super) fn memory_bytes_max(stored_bytes: u32) -> u64 {
        u64::from(stored_bytes).div_ceil(PAGE_BYTES) * (PAGE_BYTES + size_of::<Page>() as u64)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match &self.lines {
            Lines::Pages { pages, .. } => {
                pages.len() * Page::BYTES + pages.capacity() * size_of::<Page>()
            }
            Lines::Heap(lines) => lines.capacity() * LINE_BYTES,
        }
    }
}

/// Which of `line_count` lines has the bits of `hash`.
#[inline]
fn line_index(hash: u64, line_count: usize) -> usize {
    (((hash >> 32) * line_count as u64) >> 32) as usize
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
