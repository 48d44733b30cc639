//! Events with their times: what the engine does that a request may have to wait for
//! (`docs/events.md`).
//!
//! Threads: any. Events are told by the thread that does the work, some of them under locks of the
//! engine.

use kvant_base::events::{EventKind, Field, Fields};
use kvant_base::{Error, Events};
use kvant_env::Clock;
use std::io;
use std::sync::Arc;

/// An fsync that takes longer is told: longer than any on a disk that is well, short enough to show
/// what a slow request waited for.
const FSYNC_SLOW_NS: u64 = 10_000_000;

/// Where events go, and the clock that they are timed by.
#[derive(Clone)]
pub(crate) struct EventSink {
    clock: Arc<dyn Clock>,
    events: Arc<Events>,
}

/// Something that has begun.
pub(crate) struct Span {
    kind: EventKind,
    number: u64,
    start_ns: u64,
    fields: Fields,
}

impl EventSink {
    pub(crate) fn new(clock: Arc<dyn Clock>, events: Arc<Events>) -> EventSink {
        EventSink { clock, events }
    }

    /// Something begins now.
    pub(crate) fn begin(&self, kind: EventKind, fields: Fields) -> Span {
        let start_ns = self.clock.monotonic_ns();
        let number = self.events.begin(kind, start_ns, fields.clone());
        Span { kind, number, start_ns, fields }
    }

    /// `span` is over; `more` is what its beginning could not say.
    pub(crate) fn end(&self, span: Span, more: Fields) {
        let mut fields = span.fields;
        fields.extend(more);
        let end_ns = self.clock.monotonic_ns();
        self.events.end(span.kind, span.number, span.start_ns, end_ns, fields);
    }

    /// Does an fsync, and tells if it was slow.
    pub(crate) fn sync(
        &self,
        file: &'static str,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let start_ns = self.clock.monotonic_ns();
        let outcome = sync();
        let end_ns = self.clock.monotonic_ns();
        let ns = end_ns.saturating_sub(start_ns);
        if ns >= FSYNC_SLOW_NS {
            let mut fields = vec![("file", text(file)), ("us", number(ns / 1000))];
            if let Err(error) = &outcome {
                fields.push(("error", Field::Text(error.to_string().into())));
            }
            self.events.whole(EventKind::Fsync, start_ns, end_ns, fields);
        }
        outcome
    }
}

/// What the end of a failed span says.
pub(crate) fn failure(error: &Error) -> Fields {
    vec![("error", Field::Text(error.to_string().into()))]
}

pub(crate) fn number(number: u64) -> Field {
    Field::Number(number)
}

pub(crate) fn text(text: &'static str) -> Field {
    Field::Text(text.into())
}
