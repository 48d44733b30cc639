//! Timed events for engine work that may delay requests (`docs/events.md`).
//!
//! Threads: any. The thread that does the work reports the event, sometimes under a lock of the
//! engine.

use kvant_base::Events;
use kvant_base::events::{EventKind, Field, Fields};
use kvant_env::Clock;
use std::fmt::Display;
use std::io;
use std::sync::Arc;

/// Threshold for reporting an fsync: above the usual latency of a healthy disk, and low enough to
/// explain a slow request.
const FSYNC_SLOW_NS: u64 = 10_000_000;

/// Stamps events with the clock and adds them to the ring.
#[derive(Clone)]
pub(crate) struct EventSink {
    clock: Arc<dyn Clock>,
    events: Arc<Events>,
}

/// An event that has begun and not ended.
pub(crate) struct Span {
    kind: EventKind,
    number: u64,
    start_ns: u64,
    fields: Fields,
}

impl Span {
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }
}

impl EventSink {
    pub(crate) fn new(clock: Arc<dyn Clock>, events: Arc<Events>) -> EventSink {
        EventSink { clock, events }
    }

    pub(crate) fn begin(&self, kind: EventKind, fields: Fields) -> Span {
        let start_ns = self.clock.monotonic_ns();
        let number = self.events.begin(kind, start_ns, fields.clone());
        Span { kind, number, start_ns, fields }
    }

    /// Ends `span`, with `more` fields than it began with.
    pub(crate) fn end(&self, span: Span, more: Fields) {
        self.end_at(span, self.clock.monotonic_ns(), more);
    }

    /// Ends `span` as of `end_ns`.
    pub(crate) fn end_at(&self, span: Span, end_ns: u64, more: Fields) {
        let mut fields = span.fields;
        fields.extend(more);
        self.events.end(span.kind, span.number, span.start_ns, end_ns, fields);
    }

    /// Runs an fsync and reports it if it was slow.
    pub(crate) fn sync(
        &self,
        file: &'static str,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let start_ns = self.clock.monotonic_ns();
        let result = sync();
        let end_ns = self.clock.monotonic_ns();
        let ns = end_ns.saturating_sub(start_ns);
        if ns >= FSYNC_SLOW_NS {
            let mut fields = vec![("file", text(file)), ("us", number(ns / 1000))];
            if let Err(error) = &result {
                fields.extend(failure(error));
            }
            self.events.add_complete(EventKind::Fsync, start_ns, end_ns, fields);
        }
        result
    }
}

/// The fields that end a failed span.
pub(crate) fn failure(error: &dyn Display) -> Fields {
    vec![("error", Field::Text(error.to_string().into()))]
}

pub(crate) fn number(number: u64) -> Field {
    Field::Number(number)
}

pub(crate) fn text(text: &'static str) -> Field {
    Field::Text(text.into())
}
