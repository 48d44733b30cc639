//! Background events: flushes, compactions, stalls, slow fsyncs, overload and others.
//!
//! A ring holds the latest events. `/v0/events` streams them and `/v0/slow` uses them to explain
//! slow requests. An event with a duration has a begin and an end entry, so that events in progress
//! are visible.
//!
//! Threads: any. One lock is enough for a few events per second. Listeners are called without it.

use crate::lock::NamedMutex;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

crate::named_enum! {
    /// The kind of an event. Names are those of event streams, reports and logs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EventKind {
        /// A memtable is written to a table.
        Flush = "flush",
        /// Tables are merged.
        Compaction = "compaction",
        /// Writes are delayed or blocked.
        Stall = "stall",
        /// An fsync took longer than its threshold.
        Fsync = "fsync",
        /// The server rejects requests.
        Overload = "overload",
        /// Freed memory returns to the system.
        Release = "release",
        /// Flushes and compactions rest, as an operator wanted.
        Pause = "pause",
        /// Stages of the server's work are slowed down, as an operator wanted.
        WhatIf = "what_if",
    }
}

/// Whether an entry is the begin or the end of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The event has begun.
    Begin,
    /// The event has ended.
    End,
}

/// A value in an event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field {
    /// A count, or an amount in the unit at the end of the field's name.
    Number(u64),
    /// A name or text.
    Text(Cow<'static, str>),
}

/// Names and values. Names end with the unit.
pub type Fields = Vec<(&'static str, Field)>;

/// One entry of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Sequence number of the entry, from 1.
    pub number: u64,
    /// The kind of event.
    pub kind: EventKind,
    /// Begin or end.
    pub edge: Edge,
    /// Identifies the event: the same in its begin and end entries.
    pub span: u64,
    /// Start, in nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// End, in the same clock; `None` in a begin entry.
    pub end_ns: Option<u64>,
    /// Details.
    pub fields: Fields,
}

/// Called once, at the next event.
pub type Listener = Box<dyn FnOnce() + Send>;

/// A ring of the latest events.
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
    /// A ring of `capacity_count` entries.
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

    /// Adds a begin entry and returns its span for [`Events::end`].
    pub fn begin(&self, kind: EventKind, start_ns: u64, fields: Fields) -> u64 {
        self.add(kind, None, start_ns, None, fields)
    }

    /// Adds the end entry of `span`, which began at `start_ns`.
    pub fn end(&self, kind: EventKind, span: u64, start_ns: u64, end_ns: u64, fields: Fields) {
        self.add(kind, Some(span), start_ns, Some(end_ns), fields);
    }

    /// Adds an event as one entry, at its end.
    pub fn add_complete(&self, kind: EventKind, start_ns: u64, end_ns: u64, fields: Fields) {
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

    /// Up to `count_max` entries after `number` that are still in the ring, oldest first.
    pub fn after(&self, number: u64, count_max: usize) -> Vec<Arc<Event>> {
        let ring = self.inner.lock();
        let later = ring.latest.iter().filter(|event| event.number > number);
        later.take(count_max).cloned().collect()
    }

    /// The number of the last entry, or 0.
    pub fn last_number(&self) -> u64 {
        self.inner.lock().last_number
    }

    /// Calls `listener` once there is an entry after `number`, which may be immediately.
    pub fn notify_after(&self, number: u64, listener: Listener) {
        {
            let mut ring = self.inner.lock();
            if ring.last_number <= number {
                ring.listeners.push(listener);
                return;
            }
        }
        listener();
    }

    /// Events that overlap `start_ns..=end_ns`, each once: its end entry if there is one, otherwise
    /// its begin entry.
    pub fn overlapping(&self, start_ns: u64, end_ns: u64) -> Vec<Arc<Event>> {
        let ring = self.inner.lock();
        let ends = ring.latest.iter().filter(|event| event.edge == Edge::End);
        let ended: BTreeSet<u64> = ends.map(|event| event.span).collect();
        let overlapping = ring.latest.iter().filter(|event| {
            let is_latest_entry = event.edge == Edge::End || !ended.contains(&event.span);
            is_latest_entry
                && event.start_ns <= end_ns
                && event.end_ns.is_none_or(|end| end >= start_ns)
        });
        overlapping.cloned().collect()
    }
}

#[cfg(test)]
mod tests;
