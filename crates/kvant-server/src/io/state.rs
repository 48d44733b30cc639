//! What a socket, the answers that are sent through it and the connection's task tell each other.
//!
//! Invariant: `blocked` is true exactly while the kernel refuses bytes that hyper or the backlog
//! want to send.
//!
//! Threads: all of it belongs to one selector.

use crate::activity::Activity;
use crate::timing::{Operation, Stamps, Trace};
use crate::turnstile::Pass;
use kvant_base::tag;
use std::cell::Cell;
use std::time::Duration;

/// What a socket and the answers sent through it tell each other.
#[derive(Default)]
pub(crate) struct SocketState {
    pub(super) corked: Cell<bool>,
    pub(super) blocked: Cell<bool>,
    pub(super) reset: Cell<bool>,
    /// When the first bytes that belong to no request yet arrived.
    arrived_ns: Cell<Option<u64>>,
    /// When bytes arrived last.
    received_ns: Cell<u64>,
    /// When the last answer left.
    answered_ns: Cell<u64>,
    /// Received and sent since the last request was recorded.
    received_bytes: Cell<u64>,
    pub(super) sent_bytes: Cell<u64>,
    /// The request that hyper is busy with.
    exchange: Cell<Option<Trace>>,
    /// What it, or the last one, is for, as profiles show it.
    works_for: Cell<tag::Activity>,
    /// Hyper has the whole answer to it.
    pub(super) is_answered: Cell<bool>,
    /// Whether it may read in this turn of the event loop.
    pub(crate) pass: Cell<Pass>,
    /// It asked for the status last.
    pub(crate) has_priority: Cell<bool>,
    /// How long to rest before the next read.
    rest: Cell<Option<Duration>>,
    /// Whether somebody wants to know that the peer has left, and whether it has.
    pub(super) watches_peer: Cell<bool>,
    pub(super) peer_left: Cell<bool>,
    pub(crate) activity: Activity,
}

impl SocketState {
    /// Holds writes back, or lets them go at the next flush.
    pub(crate) fn cork(&self, corked: bool) {
        self.corked.set(corked);
    }

    /// When the request that has just been understood arrived. One that came in one piece with the
    /// last arrived with it.
    pub(crate) fn take_arrived_ns(&self) -> u64 {
        self.arrived_ns.take().unwrap_or(self.received_ns.get())
    }

    pub(super) fn received(&self, bytes: u64, arrived_ns: u64) {
        self.received_ns.set(arrived_ns);
        self.received_bytes.set(self.received_bytes.get() + bytes);
        if self.arrived_ns.get().is_none() {
            self.arrived_ns.set(Some(arrived_ns));
        }
    }

    /// How long the server has let a request wait that was understood at `parsed_ns`: since its
    /// last bytes came, and since the connection's last answer left. What the client took is not in
    /// it.
    #[inline]
    pub(crate) fn lag_ns(&self, parsed_ns: u64) -> u64 {
        parsed_ns.saturating_sub(self.received_ns.get().max(self.answered_ns.get()))
    }

    /// Hyper has understood a request.
    pub(crate) fn begin(&self, trace: Trace) {
        self.works_for.set(trace.operation.activity());
        self.exchange.set(Some(trace));
    }

    /// What hyper's work is for.
    pub(crate) fn works_for(&self) -> tag::Activity {
        self.works_for.get()
    }

    /// The last request, when its whole answer is with hyper.
    pub(crate) fn take_answered(&self) -> Option<Trace> {
        self.exchange.take().filter(|_| self.is_answered.replace(false))
    }

    /// Adds to what is known of the request that hyper is busy with.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Trace)) {
        let mut exchange = self.exchange.take();
        if let Some(trace) = &mut exchange {
            note(trace);
        }
        self.exchange.set(exchange);
    }

    /// Nothing is read for this long: the client was refused.
    pub(crate) fn rest(&self, time: Duration) {
        self.rest.set(Some(time));
    }

    /// The rest that is due; not while a request is being answered, whose body may still have to be
    /// read.
    pub(super) fn take_rest(&self) -> Option<Duration> {
        // Hardly anybody is refused: the trace is looked at last.
        let is_due = self.rest.get().is_some() && self.exchange.get().is_none();
        is_due.then(|| self.rest.take()).flatten()
    }

    /// Hyper has all of the answer; it leaves with the next flush.
    pub(crate) fn is_whole(&self) {
        self.is_answered.set(true);
    }

    /// The times of the request that hyper is busy with.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let exchange = self.exchange.get();
        exchange.map(|trace| trace.stamps)
    }

    /// Completes the trace of a request whose answer has left.
    pub(crate) fn complete(&self, trace: &mut Trace, now_ns: u64) {
        trace.stamps.written_ns = now_ns;
        self.answered_ns.set(now_ns);
        self.has_priority.set(trace.operation == Operation::Status);
        // What of the body was received is not the beginning of the next request.
        self.arrived_ns.set(None);
        trace.received_bytes = self.received_bytes.take();
        trace.sent_bytes = self.sent_bytes.take();
    }

    /// From now on, or no longer, the socket looks whether the peer has left, whenever the
    /// connection's task runs. Hyper does not: it reads nothing while it waits for an answer.
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

    /// Makes the close visible as a reset: for answers whose end is the end of the connection, and
    /// that break off.
    pub(crate) fn reset_on_close(&self) {
        self.reset.set(true);
    }
}
