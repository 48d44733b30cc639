//! The source of a native workload. Makes a request by copying: no allocation, no formatting by the
//! standard library.

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

/// What all threads use and nobody changes.
#[derive(Debug)]
pub(super) struct Shared {
    /// By target and [`Kind::index`].
    heads: Vec<Vec<Head>>,
    /// By [`Kind::index`]; only kinds of the mix have an entry that means something.
    ops: [Option<OpId>; Kind::ALL.len()],
    keys: Keys,
    values: Values,
}

impl Shared {
    /// The tables of a workload without problems.
    pub(super) fn new(
        config: &WorkloadConfig,
        targets: &[Target],
        headers: &[(String, String)],
        ops: &OpNames,
    ) -> Result<Shared> {
        let head =
            |kind, target| Head::new(kind, &config.paths, config.range_records, target, headers);
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

    /// Appends a `PUT` of key number `index`.
    #[inline]
    pub(super) fn append_put(&self, target: usize, index: u64, value: &[u8], out: &mut Vec<u8>) {
        let head = &self.heads[target][Kind::Put.index()];
        out.extend_from_slice(&head.before_key);
        self.keys.append(index, out);
        out.extend_from_slice(&head.after_key);
        head::append_value(value, out);
    }

    /// The length of key number `index`.
    pub(super) fn key_bytes(&self, index: u64) -> u64 {
        self.keys.length(index)
    }

    /// The values.
    pub(super) fn values(&self) -> &Values {
        &self.values
    }
}

/// One thread's part of a workload.
pub(super) struct NativeSource {
    shared: Arc<Shared>,
    rng: Rng,
    picker: Picker,
    mix: Cumulative,
    /// Of 2^32 requests, so many ask for a key that exists.
    hits_of_2_32: u64,
    /// The last key that has another after it: the absent key after it lies between existing ones.
    absent_index_max: u64,
    /// The last key at which a range may begin and still find all its records.
    range_index_max: u64,
    /// The number of the next put over all threads, and the distance to the one after.
    put_number: u64,
    put_step: u64,
    bytes: Vec<u8>,
    expected: [Expected; 1],
}

impl NativeSource {
    /// The source of thread `thread` of `thread_count`.
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

    #[inline]
    fn is_hit(&mut self) -> bool {
        self.hits_of_2_32 >> 32 != 0 || self.rng.next_u64() >> 32 < self.hits_of_2_32
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
                let is_hit = self.is_hit();
                let shared = &*self.shared;
                let head = &shared.heads[target][kind.index()];
                self.bytes.extend_from_slice(&head.before_key);
                if is_hit {
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

/// The random numbers of a thread.
fn thread_rng(seed: u64, thread: usize) -> Rng {
    // Mixed, not added: the threads of seed 1 must not be those of seed 2, one further.
    Rng::new(Rng::new(seed).next_u64() ^ Rng::new(!(thread as u64)).next_u64())
}

/// Kinds with the upper ends of their parts of `0..total`.
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

    /// There is one: a mix without weights is a problem.
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
