//! State shared by a socket, the responses sent through it and the connection's task.
//!
//! Invariant: `blocked` is true exactly while the kernel refuses bytes that hyper or the backlog
//! want to send.
//!
//! Threads: all of it belongs to one selector.

use crate::conn::phase::Progress;
use crate::http::Operation;
use crate::timing::{Stamps, Trace};
use kvant_base::tag;
use std::cell::Cell;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct SocketState {
    pub(in crate::conn) corked: Cell<bool>,
    pub(in crate::conn) blocked: Cell<bool>,
    pub(in crate::conn) reset: Cell<bool>,
    /// When the first bytes that belong to no request yet arrived.
    arrived_ns: Cell<Option<u64>>,
    /// When bytes arrived last.
    received_ns: Cell<u64>,
    /// When the kernel took the last response.
    responded_ns: Cell<u64>,
    /// Received and sent since the last request was recorded.
    received_bytes: Cell<u64>,
    pub(in crate::conn) sent_bytes: Cell<u64>,
    /// The request that hyper serves.
    exchange: Cell<Option<Trace>>,
    /// The activity of that request or the last one.
    pub(in crate::conn) activity: Cell<tag::Activity>,
    /// The body of that request may not have ended: what comes may be the rest of it. Today each
    /// response before that end closes the connection.
    pub(in crate::conn) has_body: Cell<bool>,
    /// Hyper has all of its response.
    pub(in crate::conn) is_complete: Cell<bool>,
    /// Its last request was for the status.
    pub(in crate::conn) has_priority: Cell<bool>,
    /// How long to rest before the next read: the client was refused.
    pub(in crate::conn) rest: Cell<Option<Duration>>,
    /// Whether to check that the peer is there, and whether it has left.
    pub(in crate::conn) watches_peer: Cell<bool>,
    pub(in crate::conn) peer_left: Cell<bool>,
    pub(in crate::conn) progress: Progress,
}

impl SocketState {
    /// Holds writes back, or lets them go at the next flush.
    pub(crate) fn cork(&self, corked: bool) {
        self.corked.set(corked);
    }

    /// When the request that was just parsed arrived. A request that came in one piece with the
    /// previous one arrived with it.
    pub(crate) fn take_arrived_ns(&self) -> u64 {
        self.arrived_ns.take().unwrap_or(self.received_ns.get())
    }

    pub(in crate::conn) fn add_received(&self, bytes: u64, arrived_ns: u64) {
        self.received_ns.set(arrived_ns);
        self.received_bytes.set(self.received_bytes.get() + bytes);
        if self.arrived_ns.get().is_none() {
            self.arrived_ns.set(Some(arrived_ns));
        }
    }

    /// How long the server has kept a request waiting that was parsed at `parsed_ns`: since its
    /// last bytes came, and since the connection's last response was sent. The client's own time
    /// does not count.
    #[inline]
    pub(crate) fn lag_ns(&self, parsed_ns: u64) -> u64 {
        parsed_ns.saturating_sub(self.received_ns.get().max(self.responded_ns.get()))
    }

    /// Notes a request that hyper has parsed.
    pub(in crate::conn) fn begin_exchange(&self, trace: Trace) {
        self.activity.set(trace.operation.activity());
        self.exchange.set(Some(trace));
    }

    /// Whether hyper serves a request, or holds bytes of its response.
    pub(in crate::conn) fn has_exchange(&self) -> bool {
        self.exchange.get().is_some()
    }

    /// Takes the last request, if hyper has all of its response.
    pub(in crate::conn) fn take_complete(&self) -> Option<Trace> {
        self.exchange.take().filter(|_| self.is_complete.replace(false))
    }

    /// Changes the trace of the request that hyper serves.
    pub(crate) fn update_trace(&self, update: impl FnOnce(&mut Trace)) {
        let mut exchange = self.exchange.take();
        if let Some(trace) = &mut exchange {
            update(trace);
        }
        self.exchange.set(exchange);
    }

    /// Takes the rest that is due, except while a request is served: its body may have to be read.
    pub(in crate::conn) fn take_rest(&self) -> Option<Duration> {
        // Refusals are rare: the trace is checked last.
        let is_due = self.rest.get().is_some() && !self.has_exchange();
        is_due.then(|| self.rest.take()).flatten()
    }

    /// Notes that hyper has all of the response; the next flush sends it.
    pub(in crate::conn) fn mark_complete(&self) {
        self.is_complete.set(true);
    }

    /// The times of the request that hyper serves.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let exchange = self.exchange.get();
        exchange.map(|trace| trace.stamps)
    }

    /// Completes the trace of a request whose response was sent.
    pub(in crate::conn) fn finish_trace(&self, trace: &mut Trace, now_ns: u64) {
        trace.stamps.written_ns = now_ns;
        self.responded_ns.set(now_ns);
        self.has_priority.set(trace.operation == Operation::Status);
        // Bytes of the body do not begin the next request.
        self.arrived_ns.set(None);
        trace.received_bytes = self.received_bytes.take();
        trace.sent_bytes = self.sent_bytes.take();
    }

    /// Starts or stops checking whether the peer has left, each time the connection's task runs.
    /// Hyper does not notice: it reads nothing while it waits for a response.
    #[cfg(feature = "profiler")]
    pub(crate) fn watch_peer(&self, watches: bool) {
        self.watches_peer.set(watches);
    }

    /// Whether the peer was seen to have closed its sending side, or all of the connection.
    #[cfg(feature = "profiler")]
    pub(crate) fn has_peer_left(&self) -> bool {
        self.peer_left.get()
    }

    /// Whether the kernel takes no more bytes for now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get()
    }

    /// Makes the close visible as a reset: for responses that end with the connection and break
    /// off.
    pub(crate) fn reset_on_close(&self) {
        self.reset.set(true);
    }
}
