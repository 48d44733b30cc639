//! Counts refusals, and reports each overload as an event.
//!
//! Overload begins with a refusal and ends with the last one before a second without any. No timer
//! ends it: the next caller of [`Refusals::end_if_calm`] does (`/metrics`, `/v0/stats`, a request
//! that reaches a queue), with the time of the last refusal.
//!
//! Threads: any. Counting is an addition and a comparison; the lock is taken only when overload
//! begins or ends.

use super::{Class, Refusal};
use kvant_base::events::Field;
use kvant_base::lock::NamedMutex;
use kvant_base::{EventKind, Events};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Overload is over after this long without a refusal.
const CALM_NS: u64 = 1_000_000_000;
/// Refusals closer together than this do not update the time that all selectors read.
const STAMP_STEP_NS: u64 = 1_000_000;

pub(crate) struct Refusals {
    // Own synchronisation.
    events: Arc<Events>,
    counts: [[AtomicU64; Refusal::COUNT]; Class::COUNT],
    last_ns: AtomicU64,
    overloaded: AtomicBool,
    span: NamedMutex<Option<Span>>,
}

struct Span {
    id: u64,
    start_ns: u64,
    reason: Refusal,
    /// Refusals before it.
    before_count: u64,
}

impl Refusals {
    /// Overload is reported to `events`.
    pub(crate) fn new(events: Arc<Events>) -> Arc<Refusals> {
        Arc::new(Refusals {
            events,
            counts: Default::default(),
            last_ns: AtomicU64::new(0),
            overloaded: AtomicBool::new(false),
            span: NamedMutex::new("overload", None),
        })
    }

    pub(crate) fn add(&self, class: Class, reason: Refusal, request_count: usize, now_ns: u64) {
        self.end_if_calm(now_ns);
        self.counts[class as usize][reason as usize]
            .fetch_add(request_count as u64, Ordering::Relaxed);
        // A server that stops is not overloaded.
        if reason == Refusal::Stopping {
            return;
        }
        if now_ns >= self.last_ns.load(Ordering::Relaxed) + STAMP_STEP_NS {
            self.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        }
        if !self.overloaded.load(Ordering::Acquire) {
            self.begin(reason, request_count, now_ns);
        }
    }

    #[cold]
    fn begin(&self, reason: Refusal, request_count: usize, now_ns: u64) {
        let mut span = self.span.lock();
        if span.is_some() {
            return;
        }
        self.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        let fields = vec![("reason", Field::Text(reason.name().into()))];
        *span = Some(Span {
            id: self.events.begin(EventKind::Overload, now_ns, fields),
            start_ns: now_ns,
            reason,
            before_count: self.total().saturating_sub(request_count as u64),
        });
        self.overloaded.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn end_if_calm(&self, now_ns: u64) {
        if self.overloaded.load(Ordering::Acquire) && self.is_calm(now_ns) {
            self.end(now_ns);
        }
    }

    fn is_calm(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns.load(Ordering::Relaxed)) >= CALM_NS
    }

    #[cold]
    fn end(&self, now_ns: u64) {
        let mut span = self.span.lock();
        if !self.is_calm(now_ns) {
            return;
        }
        let Some(ended) = span.take() else {
            return;
        };
        let fields = vec![
            ("reason", Field::Text(ended.reason.name().into())),
            ("refused_count", Field::Number(self.total() - ended.before_count)),
        ];
        let end_ns = self.last_ns.load(Ordering::Relaxed);
        self.events.end(EventKind::Overload, ended.id, ended.start_ns, end_ns, fields);
        self.overloaded.store(false, Ordering::Release);
    }

    /// Whether requests were refused in the last second, as of the last [`Refusals::end_if_calm`].
    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded.load(Ordering::Acquire)
    }

    pub(crate) fn count(&self, class: Class, reason: Refusal) -> u64 {
        self.counts[class as usize][reason as usize].load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        let counts = self.counts.iter().flatten();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests;
