//! The body of `/v0/events`: the events of the ring, as server-sent events, as they happen.
//!
//! Invariants:
//! 1. Every event after the client's last is sent once, in order; for events that the ring has
//!    dropped by then their number is sent.
//! 2. At most [`FRAME_EVENTS_MAX`] events are held: the next are fetched when the kernel has taken
//!    the last.
//! 3. All streams of the server share one listener in the ring ([`Bell`]).
//! 4. A stream ends when its selector stops.
//!
//! Threads: a stream belongs to its selector; any thread that adds an event rings the bell.

use super::bell::Bell;
use super::server_state::ServerState;
use crate::conn::Call;
use crate::http::response::BodyStream;
use crate::timing::{EventFields, WallTime, as_us};
use bytes::Bytes;
use hyper::body::Frame;
use kvant_base::events::Edge;
use kvant_base::{Event, Events};
use kvant_env::Clock;
use serde::Serialize;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep};

const FRAME_EVENTS_MAX: usize = 64;
/// After this long without an event a comment shows each side that the connection is alive.
const SILENCE_MAX: Duration = Duration::from_secs(15);
const STILL_HERE: &str = ": still here\n\n";

/// A stream that ends with its selector.
pub(crate) struct EventBody {
    call: Call,
    /// Other connections have had their turn since the last frame.
    has_yielded: bool,
    stream: EventStream,
}

impl EventBody {
    /// Begins after the event with number `after`; with `None`, with the open events and new ones.
    pub(super) fn new(server: &ServerState, call: &Call, after: Option<u64>) -> EventBody {
        let ServerState { events, event_bell, env, .. } = server;
        EventBody {
            call: call.clone(),
            has_yielded: true,
            stream: EventStream::new(
                Arc::clone(events),
                Arc::clone(event_bell),
                Arc::clone(&env.clock),
                after,
            ),
        }
    }
}

impl BodyStream for EventBody {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<kvant_base::Result<Frame<Bytes>>>> {
        // The connection's task is woken when the selector stops.
        if self.call.cx.stopping.get() {
            return Poll::Ready(None);
        }
        // One frame at a time, and none while the kernel takes nothing: hyper polls again when it
        // does.
        if self.call.socket.is_blocked() {
            return Poll::Pending;
        }
        if !std::mem::replace(&mut self.has_yielded, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let text = ready!(self.stream.poll_text(cx));
        self.has_yielded = false;
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }

    fn is_finished(&self) -> bool {
        false
    }
}

/// Endless text of server-sent events.
struct EventStream {
    events: Arc<Events>,
    bell: Arc<Bell>,
    clock: Arc<dyn Clock>,
    /// Text before the first new event.
    opening: String,
    last_number: u64,
    next_ring: Pin<Box<OwnedNotified>>,
    silence: Pin<Box<Sleep>>,
}

impl EventStream {
    fn new(
        events: Arc<Events>,
        bell: Arc<Bell>,
        clock: Arc<dyn Clock>,
        after: Option<u64>,
    ) -> EventStream {
        let newest_number = events.last_number();
        let mut opening = String::new();
        let last_number = match after {
            Some(after) if after <= newest_number => after,
            Some(_) => {
                opening.push_str(": the server has started anew, and its numbers with it\n\n");
                0
            }
            None => {
                let wall = WallTime::now(&*clock);
                for event in events.overlapping(wall.now_ns(), u64::MAX) {
                    if event.end_ns.is_none() && event.number <= newest_number {
                        write_event(&mut opening, &event, &wall);
                    }
                }
                // Without data it is no event, only the position for a reconnection.
                writeln!(opening, "id: {newest_number}\n").expect("a string takes all text");
                newest_number
            }
        };
        EventStream {
            next_ring: Box::pin(bell.next_ring()),
            events,
            bell,
            clock,
            opening,
            last_number,
            silence: Box::pin(tokio::time::sleep(SILENCE_MAX)),
        }
    }

    fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        let text = loop {
            if !self.opening.is_empty() {
                break std::mem::take(&mut self.opening);
            }
            let latest = self.events.after(self.last_number, FRAME_EVENTS_MAX);
            if !latest.is_empty() {
                break self.entries(&latest);
            }
            self.bell.listen(&self.events, self.last_number);
            if self.next_ring.as_mut().poll(cx).is_ready() {
                self.next_ring.set(self.bell.next_ring());
                continue;
            }
            ready!(self.silence.as_mut().poll(cx));
            break STILL_HERE.to_string();
        };
        self.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
        Poll::Ready(text)
    }

    /// The text of the events that follow the last one.
    fn entries(&mut self, latest: &[Arc<Event>]) -> String {
        let wall = WallTime::now(&*self.clock);
        let mut text = String::new();
        for event in latest {
            let missed_count = event.number - self.last_number - 1;
            if missed_count > 0 {
                writeln!(text, ": missed events: {missed_count}\n")
                    .expect("a string takes all text");
            }
            write_event(&mut text, event, &wall);
            self.last_number = event.number;
        }
        text
    }
}

#[derive(Serialize)]
struct Data<'a> {
    edge: Edge,
    span: u64,
    start: String,
    start_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<f64>,
    fields: EventFields<'a>,
}

fn write_event(out: &mut String, event: &Event, wall: &WallTime) {
    let data = Data {
        edge: event.edge,
        span: event.span,
        start: wall.at(event.start_ns),
        start_ns: event.start_ns,
        duration_us: event.end_ns.map(|end_ns| as_us(end_ns.saturating_sub(event.start_ns))),
        fields: EventFields(&event.fields),
    };
    let data = serde_json::to_string(&data).expect("fields are texts and numbers");
    let (number, kind) = (event.number, event.kind.name());
    writeln!(out, "id: {number}\nevent: {kind}\ndata: {data}\n").expect("a string takes all text");
}

#[cfg(test)]
mod tests;
