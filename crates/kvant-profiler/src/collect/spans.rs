//! Activities of the engine and the server during a recording: their events become spans.
//!
//! Events are read at each drain: their ring may be too small for a whole recording.
//!
//! Threads: one, the drain.

use crate::recording::Span;
use kvant_base::Events;
use kvant_base::events::{Event, Field};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Events read at once; a few occur per second.
const EVENTS_PER_READ_MAX: usize = 256;
const SPANS_MAX: usize = 100_000;

pub(super) struct Spans {
    events: Option<Arc<Events>>,
    /// In the clock of events.
    started_ns: u64,
    last_number: u64,
    /// By the span id of events.
    spans: BTreeMap<u64, Span>,
}

impl Spans {
    /// Starts with the activities in progress at `now_ns` of the clock of events.
    pub(super) fn new(events: Option<Arc<Events>>, now_ns: u64) -> Spans {
        let mut spans = Spans {
            last_number: events.as_ref().map_or(0, |events| events.last_number()),
            events,
            started_ns: now_ns,
            spans: BTreeMap::new(),
        };
        let in_progress = spans.events.as_ref().map(|events| events.overlapping(now_ns, now_ns));
        in_progress.iter().flatten().for_each(|event| spans.add(event));
        spans
    }

    pub(super) fn read(&mut self) {
        let Some(events) = self.events.clone() else {
            return;
        };
        loop {
            let new = events.after(self.last_number, EVENTS_PER_READ_MAX);
            let Some(last) = new.last() else { return };
            self.last_number = last.number;
            new.iter().for_each(|event| self.add(event));
        }
    }

    pub(super) fn finish(self) -> Vec<Span> {
        let mut spans: Vec<Span> = self.spans.into_values().collect();
        spans.sort_by_key(|span| span.start_ns);
        spans
    }

    fn add(&mut self, event: &Event) {
        if !self.spans.contains_key(&event.span) && self.spans.len() >= SPANS_MAX {
            return;
        }
        let since_start = |ns: u64| ns.saturating_sub(self.started_ns);
        let text = |field: &Field| match field {
            Field::Number(number) => number.to_string(),
            Field::Text(text) => text.clone().into_owned(),
        };
        let mut fields: Vec<(String, String)> =
            event.fields.iter().map(|(name, field)| ((*name).to_owned(), text(field))).collect();
        let start_ns = since_start(event.start_ns);
        let end_ns = event.end_ns.map(since_start);
        // The end event has more fields than the start event, but may omit some of them.
        if let Some(started) = self.spans.get(&event.span) {
            let is_missing =
                |(name, _): &&(String, String)| !fields.iter().any(|(known, _)| known == name);
            let kept: Vec<_> = started.fields.iter().filter(is_missing).cloned().collect();
            fields.splice(0..0, kept);
        }
        let span = Span { kind: event.kind.name().to_owned(), start_ns, end_ns, fields };
        self.spans.insert(event.span, span);
    }
}
