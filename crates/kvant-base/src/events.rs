//! What happens beside the requests: flushes, compactions, stalls, slow fsyncs, overload.
//!
//! A ring of the latest events that operators read live (`/v0/events`) and that explains slow
//! requests (`/v0/slow`): an event that lasted is there twice, as its beginning and as its end, so
//! that one that still goes on is seen too.
//!
//! Threads: any. Events are rare (some a second), so one lock is enough. Whoever listens is woken
//! without the lock.

use crate::lock::NamedMutex;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A memtable is written to a table.
    Flush,
    /// Tables are merged.
    Compaction,
    /// Writes are held back.
    Stall,
    /// An fsync that took longer than its threshold.
    Fsync,
    /// The server refuses requests.
    Overload,
}

impl EventKind {
    /// Its name in streams, reports and logs; the same as serialised.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Flush => "flush",
            EventKind::Compaction => "compaction",
            EventKind::Stall => "stall",
            EventKind::Fsync => "fsync",
            EventKind::Overload => "overload",
        }
    }
}

/// Where in the life of what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It has begun.
    Begin,
    /// It is over.
    End,
}

/// A figure or a word about an event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field {
    /// A count, or an amount in the unit that the field's name ends with.
    Number(u64),
    /// A name or a text.
    Text(Cow<'static, str>),
}

/// Names and values; names carry units.
pub type Fields = Vec<(&'static str, Field)>;

/// One entry of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Counts all entries from 1.
    pub number: u64,
    /// What happened.
    pub kind: EventKind,
    /// Beginning or end.
    pub edge: Edge,
    /// The same in the beginning and the end of one thing.
    pub span: u64,
    /// When it began, in nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// What more there is to say.
    pub fields: Fields,
}

/// Called once when there is a new event.
pub type Listener = Box<dyn FnOnce() + Send>;

/// The latest events.
pub struct Events {
    inner: NamedMutex<Ring>,
}

struct Ring {
    capacity_count: usize,
    latest: VecDeque<Arc<Event>>,
    last_number: u64,
    last_span: u64,
    listeners: Vec<Listener>,
}

impl Events {
    /// Remembers the last `capacity_count` entries.
    pub fn new(capacity_count: usize) -> Arc<Events> {
        Arc::new(Events {
            inner: NamedMutex::new(
                "events",
                Ring {
                    capacity_count,
                    latest: VecDeque::with_capacity(capacity_count),
                    last_number: 0,
                    last_span: 0,
                    listeners: Vec::new(),
                },
            ),
        })
    }

    /// Something has begun: the span that [`Events::end`] wants.
    pub fn begin(&self, kind: EventKind, start_ns: u64, fields: Fields) -> u64 {
        self.add(kind, None, start_ns, None, fields)
    }

    /// What began at `start_ns` as `span` is over.
    pub fn end(&self, kind: EventKind, span: u64, start_ns: u64, end_ns: u64, fields: Fields) {
        self.add(kind, Some(span), start_ns, Some(end_ns), fields);
    }

    /// Something that is told when it is over.
    pub fn whole(&self, kind: EventKind, start_ns: u64, end_ns: u64, fields: Fields) {
        self.add(kind, None, start_ns, Some(end_ns), fields);
    }

    fn add(
        &self,
        kind: EventKind,
        span: Option<u64>,
        start_ns: u64,
        end_ns: Option<u64>,
        fields: Fields,
    ) -> u64 {
        let (span, listeners) = {
            let mut ring = self.inner.lock();
            ring.last_number += 1;
            let span = span.unwrap_or(ring.last_span + 1);
            ring.last_span = ring.last_span.max(span);
            let event = Event {
                number: ring.last_number,
                kind,
                edge: if end_ns.is_some() { Edge::End } else { Edge::Begin },
                span,
                start_ns,
                end_ns,
                fields,
            };
            if ring.latest.len() == ring.capacity_count {
                ring.latest.pop_front();
            }
            ring.latest.push_back(Arc::new(event));
            (span, std::mem::take(&mut ring.listeners))
        };
        listeners.into_iter().for_each(|listener| listener());
        span
    }

    /// The first `count_max` entries after `number` that are still there, oldest first.
    pub fn after(&self, number: u64, count_max: usize) -> Vec<Arc<Event>> {
        let ring = self.inner.lock();
        let later = ring.latest.iter().filter(|event| event.number > number);
        later.take(count_max).cloned().collect()
    }

    /// The number of the last entry; 0 before the first.
    pub fn last_number(&self) -> u64 {
        self.inner.lock().last_number
    }

    /// Calls `listener` once when there is an entry after `number`: at once when there is one
    /// already.
    pub fn on_after(&self, number: u64, listener: Listener) {
        {
            let mut ring = self.inner.lock();
            if ring.last_number <= number {
                ring.listeners.push(listener);
                return;
            }
        }
        listener();
    }

    /// What went on at some time between `start_ns` and `end_ns`, each thing once: by its end where
    /// that is known, else by its beginning.
    pub fn overlapping(&self, start_ns: u64, end_ns: u64) -> Vec<Arc<Event>> {
        let ring = self.inner.lock();
        let ends = ring.latest.iter().filter(|event| event.edge == Edge::End);
        let ended: BTreeSet<u64> = ends.map(|event| event.span).collect();
        let overlapping = ring.latest.iter().filter(|event| {
            let is_last_word = event.edge == Edge::End || !ended.contains(&event.span);
            is_last_word
                && event.start_ns <= end_ns
                && event.end_ns.is_none_or(|end| end >= start_ns)
        });
        overlapping.cloned().collect()
    }
}

#[cfg(test)]
mod tests;
