//! The source of a native workload. Makes requests by copying, without allocation or formatting.

use super::config::{Kind, WorkloadConfig};
use super::head::{self, Head};
use super::key::Keys;
use super::pick::Picker;
use super::value::Values;
use crate::op::{OpId, OpNames};
use crate::source::{Batch, Expected, RequestSource};
use crate::target::Target;
use kvant_base::Result;
use kvant_env::rng::Rng;
use std::sync::Arc;

/// Immutable tables that all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    /// By target and [`Kind::index`].
    heads: Vec<Vec<Head>>,
    /// By [`Kind::index`]; `None` for kinds that are not in the mix.
    ops: [Option<OpId>; Kind::ALL.len()],
    keys: Keys,
    values: Values,
}

impl Shared {
    /// The tables of a workload that has no problems.
    pub(super) fn new(
        config: &WorkloadConfig,
        targets: &[Target],
        headers: &[(String, String)],
        ops: &OpNames,
    ) -> Result<Shared> {
        let head = |kind, target| Head::new(kind, config, target, headers);
        let heads = targets
            .iter()
            .map(|target| Kind::ALL.into_iter().map(|kind| head(kind, target)).collect())
            .collect::<Result<_>>()?;
        Ok(Shared {
            heads,
            ops: Kind::ALL.map(|kind| config.mix.has(kind).then(|| ops.intern(kind.name()))),
            keys: Keys::new(config.key_bytes),
            values: Values::new(config.value_bytes, config.seed),
        })
    }

    #[inline]
    pub(super) fn append_put(&self, target: usize, index: u64, value: &[u8], out: &mut Vec<u8>) {
        let head = &self.heads[target][Kind::Put.index()];
        out.extend_from_slice(&head.before_key);
        self.keys.append(index, out);
        out.extend_from_slice(&head.after_key);
        head::append_value(value, out);
    }

    pub(super) fn key_bytes(&self, index: u64) -> u64 {
        self.keys.length(index)
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }
}

pub(super) struct NativeSource {
    shared: Arc<Shared>,
    rng: Rng,
    picker: Picker,
    mix: Cumulative,
    /// How many of 2^32 requests have a key that exists.
    hits_of_2_32: u64,
    /// The last key but one: the absent key after it lies between stored ones.
    absent_index_max: u64,
    /// The last start of a range that has all its records.
    range_index_max: u64,
    /// The number of this thread's next put over all threads, and the step to the one after.
    put_number: u64,
    put_step: u64,
    bytes: Vec<u8>,
    expected: [Expected; 1],
}

impl NativeSource {
    pub(super) fn new(
        config: &WorkloadConfig,
        shared: Arc<Shared>,
        thread: usize,
        thread_count: usize,
    ) -> NativeSource {
        let mix = Cumulative::new(config.mix.parts());
        let op = shared.ops[mix.first().index()].expect("the first kind with a weight has an id");
        NativeSource {
            rng: thread_rng(config.seed, thread),
            picker: Picker::new(config.key_dist, config.key_count, thread, thread_count),
            mix,
            hits_of_2_32: (config.hit_ratio * (1u64 << 32) as f64) as u64,
            absent_index_max: config.key_count.saturating_sub(2),
            range_index_max: config.key_count.saturating_sub(config.range_records),
            put_number: thread as u64,
            put_step: thread_count as u64,
            bytes: Vec::with_capacity(config.value_bytes.max() as usize + 4096),
            expected: [Expected { op, is_head: false }],
            shared,
        }
    }
}

impl RequestSource for NativeSource {
    fn next(&mut self, target: usize) -> Result<Batch<'_>> {
        let kind = self.mix.next(&mut self.rng);
        let shared = &*self.shared;
        let head = &shared.heads[target][kind.index()];
        self.expected[0].op = shared.ops[kind.index()].expect("kinds of the mix have an id");
        self.bytes.clear();
        match kind {
            Kind::Status => self.bytes.extend_from_slice(&head.before_key),
            Kind::Put => {
                let index = self.picker.next(&mut self.rng);
                let value = shared.values.next(self.put_number, &mut self.rng);
                self.put_number += self.put_step;
                shared.append_put(target, index, value, &mut self.bytes);
            }
            Kind::Range => {
                let index = self.picker.next(&mut self.rng).min(self.range_index_max);
                self.bytes.extend_from_slice(&head.before_key);
                shared.keys.append(index, &mut self.bytes);
                self.bytes.extend_from_slice(&head.after_key);
            }
            Kind::Get | Kind::Delete => {
                let index = self.picker.next(&mut self.rng);
                let (hits, rng) = (self.hits_of_2_32, &mut self.rng);
                self.bytes.extend_from_slice(&head.before_key);
                if hits >> 32 != 0 || rng.next_u64() >> 32 < hits {
                    shared.keys.append(index, &mut self.bytes);
                } else {
                    shared.keys.append_absent(index.min(self.absent_index_max), &mut self.bytes);
                }
                self.bytes.extend_from_slice(&head.after_key);
            }
        }
        Ok(Batch { bytes: &self.bytes, requests: &self.expected })
    }
}

fn thread_rng(seed: u64, thread: usize) -> Rng {
    // With seed + thread, thread 1 of seed 1 would equal thread 0 of seed 2.
    Rng::new(Rng::new(seed).next_u64() ^ Rng::new(!(thread as u64)).next_u64())
}

/// Kinds with the ends of their parts of `0..total`.
#[derive(Clone, Debug)]
struct Cumulative {
    ends: Vec<(u64, Kind)>,
    total: u64,
}

impl Cumulative {
    fn new(parts: &[(Kind, u32)]) -> Cumulative {
        let mut total = 0;
        let mut ends = Vec::with_capacity(parts.len());
        for &(kind, weight) in parts.iter().filter(|(_, weight)| *weight > 0) {
            total += u64::from(weight);
            ends.push((total, kind));
        }
        Cumulative { ends, total }
    }

    /// The first kind: a mix without weights is a problem.
    fn first(&self) -> Kind {
        self.ends[0].1
    }

    #[inline]
    fn next(&self, rng: &mut Rng) -> Kind {
        if let [(_, only)] = self.ends[..] {
            return only;
        }
        let at = rng.below(self.total);
        let found = self.ends.iter().find(|(end, _)| at < *end);
        found.expect("the last end is the total").1
    }
}
