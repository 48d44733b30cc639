//! One thread's part of a fill: chooses the next keys and tracks those in flight.

use super::config::{FillConfig, WAITING_MAX};
use super::progress::FillProgress;
use crate::op::OpId;
use crate::source::{Batch, Expected, Fate, RequestSource};
use crate::workload::native::Shared;
use kvant_base::Result;
use kvant_env::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Wait before the first retry of a key, in nanoseconds; doubled with each try.
const WAIT_FIRST_NS: u64 = 1_000_000;
/// Longest wait without a `Retry-After`, in nanoseconds.
const WAIT_MAX_NS: u64 = 1_000_000_000;
/// A longer `Retry-After`, in seconds, counts as this.
const RETRY_AFTER_MAX_S: u32 = 30;
/// Longest pause of the thread after refusals, in nanoseconds.
const PAUSE_MAX_NS: u64 = 100_000_000;

/// Sends the keys `thread`, `thread + thread_count`, ...
pub(super) struct FillSource {
    shared: Arc<Shared>,
    progress: Arc<FillProgress>,
    seed: u64,
    key_count: u64,
    step: u64,
    pipeline: usize,
    tries_max: u32,
    unsent: u64,
    /// Keys that wait for a retry, in order of their due times.
    waiting: BinaryHeap<Reverse<Waiting>>,
    batches: Vec<SentBatch>,
    /// Cookies without a batch in flight.
    free: Vec<usize>,
    cookie: usize,
    now_ns: u64,
    /// Refusals since the last success. They pause the thread until `pause_until_ns`.
    refusals: u32,
    pause_until_ns: u64,
    bytes: Vec<u8>,
    expected: Vec<Expected>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    index: u64,
    tries: u32,
    /// Bytes of key and value.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: u64,
    attempt: Attempt,
}

/// The keys of a batch in flight; `None` once settled.
#[derive(Debug, Default)]
struct SentBatch {
    keys: Vec<Option<Attempt>>,
    open: usize,
}

impl FillSource {
    pub(super) fn new(
        config: &FillConfig,
        shared: Arc<Shared>,
        progress: Arc<FillProgress>,
        op: OpId,
        thread: usize,
        thread_count: usize,
    ) -> FillSource {
        FillSource {
            shared,
            progress,
            seed: config.workload.seed,
            key_count: config.workload.key_count,
            step: thread_count as u64,
            pipeline: config.pipeline,
            tries_max: config.tries_max,
            unsent: thread as u64,
            waiting: BinaryHeap::new(),
            batches: Vec::new(),
            free: Vec::new(),
            cookie: 0,
            now_ns: 0,
            refusals: 0,
            pause_until_ns: 0,
            bytes: Vec::new(),
            expected: vec![Expected { op, is_head: false }; config.pipeline],
        }
    }

    fn has_unsent(&self) -> bool {
        self.unsent < self.key_count && self.waiting.len() < WAITING_MAX
    }

    /// Takes the next key that is due, if there is one.
    fn take(&mut self) -> Option<Attempt> {
        if self.waiting.peek().is_some_and(|Reverse(first)| first.due_ns <= self.now_ns) {
            self.progress.resent.fetch_add(1, Ordering::Relaxed);
            return self.waiting.pop().map(|Reverse(waiting)| waiting.attempt);
        }
        if !self.has_unsent() {
            return None;
        }
        let index = self.unsent;
        self.unsent += self.step;
        Some(Attempt { index, tries: 0, bytes: 0 })
    }

    /// Appends the request. The value depends on seed and key only, so that retries repeat it.
    fn append(&mut self, target: usize, attempt: &mut Attempt) {
        let mut rng = Rng::new(self.seed ^ Rng::new(attempt.index).next_u64());
        let value = self.shared.values().next(attempt.index, &mut rng);
        self.shared.append_put(target, attempt.index, value, &mut self.bytes);
        attempt.tries += 1;
        attempt.bytes = self.shared.key_bytes(attempt.index) + value.len() as u64;
    }

    fn count_stored(&mut self, attempt: Attempt) {
        self.progress.stored_keys.fetch_add(1, Ordering::Relaxed);
        self.progress.stored_bytes.fetch_add(attempt.bytes, Ordering::Relaxed);
        self.refusals = 0;
    }

    fn schedule_retry(&mut self, attempt: Attempt, fate: Fate) {
        if attempt.tries >= self.tries_max {
            let last = match fate {
                Fate::Answered { status, .. } => format!("status {status}"),
                Fate::Lost => "no answer".into(),
            };
            let Attempt { index, tries, .. } = attempt;
            self.progress.fail(format!("key {index} was sent {tries} times, at last with {last}"));
            return;
        }
        let doubled_ns = WAIT_FIRST_NS << attempt.tries.saturating_sub(1).min(20);
        let retry_after_s = match fate {
            Fate::Answered { retry_after_s, .. } => {
                retry_after_s.unwrap_or(0).min(RETRY_AFTER_MAX_S)
            }
            Fate::Lost => 0,
        };
        let wait_ns = doubled_ns.min(WAIT_MAX_NS).max(u64::from(retry_after_s) * 1_000_000_000);
        self.waiting.push(Reverse(Waiting { due_ns: self.now_ns + wait_ns, attempt }));
        // Without a pause of the thread the server would refuse the next keys as well.
        let pause_ns = (WAIT_FIRST_NS << self.refusals.min(20)).min(PAUSE_MAX_NS);
        if self.pause_until_ns <= self.now_ns {
            self.pause_until_ns = self.now_ns + pause_ns;
            self.refusals += 1;
        }
    }
}

impl RequestSource for FillSource {
    fn next(&mut self, target: usize) -> Result<Batch<'_>> {
        self.cookie = self.free.pop().unwrap_or_else(|| {
            self.batches.push(SentBatch::default());
            self.batches.len() - 1
        });
        self.bytes.clear();
        let mut sent = std::mem::take(&mut self.batches[self.cookie]);
        sent.keys.clear();
        while sent.keys.len() < self.pipeline {
            let Some(mut attempt) = self.take() else { break };
            self.append(target, &mut attempt);
            sent.keys.push(Some(attempt));
        }
        sent.open = sent.keys.len();
        let count = sent.open;
        self.batches[self.cookie] = sent;
        Ok(Batch { bytes: &self.bytes, requests: &self.expected[..count] })
    }

    fn is_stopped(&self) -> bool {
        let is_done = self.unsent >= self.key_count
            && self.waiting.is_empty()
            && self.free.len() == self.batches.len();
        is_done || self.progress.failure.get().is_some()
    }

    fn follows(&self) -> bool {
        true
    }

    fn cookie(&self) -> u64 {
        self.cookie as u64
    }

    fn settled(&mut self, cookie: u64, index: usize, fate: Fate, now_ns: u64) {
        self.now_ns = now_ns;
        let cookie = cookie as usize;
        let sent = &mut self.batches[cookie];
        let attempt = sent.keys[index].take().expect("each request is settled once");
        sent.open -= 1;
        if sent.open == 0 {
            self.free.push(cookie);
        }
        match fate {
            Fate::Answered { status: 200..=299, .. } => self.count_stored(attempt),
            Fate::Answered { status: 408 | 425 | 429 | 500.., .. } | Fate::Lost => {
                self.schedule_retry(attempt, fate)
            }
            Fate::Answered { status, .. } => {
                let message = format!("key {} was refused with status {status}", attempt.index);
                self.progress.fail(message);
            }
        }
    }

    fn paused_until(&mut self, now_ns: u64) -> Option<u64> {
        self.now_ns = now_ns;
        if self.pause_until_ns > now_ns {
            return Some(self.pause_until_ns);
        }
        let due_ns = self.waiting.peek().map_or(u64::MAX, |Reverse(first)| first.due_ns);
        (!self.has_unsent() && due_ns > now_ns).then_some(due_ns)
    }
}

#[cfg(test)]
mod tests;
