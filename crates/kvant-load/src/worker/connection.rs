//! One connection: its socket, what is in flight on it, and what has arrived of an answer.

use crate::http::{Collector, ResponseParser};
use crate::net::stream::Stream;
use crate::source::Expected;

/// Back-off after the first failure in a row, in nanoseconds; doubles with each.
const BACK_OFF_MIN_NS: u64 = 1_000_000;
/// Longest back-off, in nanoseconds.
const BACK_OFF_MAX_NS: u64 = 1_000_000_000;

/// What a connection is doing; says in which of the worker's lists it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No socket. Waits for its turn to be opened, or for the end of its back-off.
    Closed,
    /// Connecting, or shaking hands: in the list of those being opened.
    Opening,
    /// Open, but has to wait for its own moment: a script's `delay()`, or a plan of its own.
    Waiting,
    /// Open with nothing to do: in the list of free ones.
    Free,
    /// Requests are in flight: in the list of busy ones.
    Busy,
}

/// A connection.
pub(super) struct Connection {
    pub(super) state: State,
    pub(super) stream: Option<Stream>,
    /// Differs from socket to socket.
    pub(super) generation: u32,
    /// Index of its target.
    pub(super) target: usize,
    /// Index of the address in use, or to be tried next.
    pub(super) address: usize,
    /// Addresses that this attempt has failed with.
    pub(super) addresses_failed: usize,
    /// Attempts, or sockets that never brought an answer, in a row.
    pub(super) failures: u32,
    /// Whether this socket has brought an answer.
    pub(super) has_answered: bool,
    /// The server sends no more after what is in the socket now.
    pub(super) is_ending: bool,
    /// When connect was called.
    pub(super) opening_ns: u64,
    /// Since when it has been free, as far as the event loop knows: the start of the turn in which
    /// it became so.
    pub(super) free_ns: u64,
    pub(super) flight: Flight,
    /// What the kernel has not taken of the batch.
    pub(super) unwritten: Unwritten,
    pub(super) parser: ResponseParser,
    /// Headers and body, where the source wants to see them.
    pub(super) collector: Option<Box<Collector>>,
}

/// A batch of requests on its way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) planned_ns: u64,
    pub(super) written_ns: u64,
    /// How much later than it could the generator wrote it, where a plan says when.
    pub(super) lag_ns: u64,
    /// Whether it belongs to the phase that runs. What an earlier one left is waited for and told
    /// to nobody.
    pub(super) is_current: bool,
    /// Whether it belongs to the measured time.
    pub(super) is_recorded: bool,
    /// What the source calls it.
    pub(super) cookie: u64,
    /// What is to come back.
    pub(super) expected: Vec<Expected>,
    /// How many of them have come.
    pub(super) answered: usize,
}

impl Connection {
    /// A connection to `target`, not opened yet.
    pub(super) fn new(target: usize, collects: bool) -> Connection {
        Connection {
            state: State::Closed,
            stream: None,
            generation: 0,
            target,
            address: 0,
            addresses_failed: 0,
            failures: 0,
            has_answered: false,
            is_ending: false,
            opening_ns: 0,
            free_ns: 0,
            flight: Flight::default(),
            unwritten: Unwritten::default(),
            parser: ResponseParser::default(),
            collector: collects.then(Box::default),
        }
    }

    /// Drops the socket and what belongs to it. The lists are the worker's business.
    pub(super) fn drop_socket(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.close();
        }
        self.generation = self.generation.wrapping_add(1);
        self.state = State::Closed;
        self.is_ending = false;
        self.parser.reset();
        self.unwritten.clear();
        self.flight.expected.clear();
        self.flight.answered = 0;
    }

    /// Takes down how the last socket did.
    pub(super) fn count_failure(&mut self) {
        // A socket that brought nothing is a failure, however politely it was closed: otherwise a
        // server that accepts and closes would be connected to as fast as it can.
        self.failures = if self.has_answered { 0 } else { self.failures.saturating_add(1) };
        self.has_answered = false;
    }

    /// How long to wait before the next attempt, in nanoseconds.
    pub(super) fn back_off_ns(&self) -> u64 {
        match self.failures {
            0 => 0,
            failures => (BACK_OFF_MIN_NS << (failures - 1).min(30)).min(BACK_OFF_MAX_NS),
        }
    }

    /// The token under which the poller knows this socket.
    pub(super) fn token(&self, index: usize) -> u64 {
        u64::from(self.generation) << 32 | index as u64
    }
}

/// Bytes that wait for the socket to become writable.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    bytes: Vec<u8>,
    written_bytes: usize,
}

impl Unwritten {
    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.written_bytes..]
    }

    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The first `count` were written.
    pub(super) fn written(&mut self, count: usize) {
        self.written_bytes += count;
        if self.written_bytes == self.bytes.len() {
            self.clear();
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.written_bytes = 0;
    }
}

impl Flight {
    /// Requests without an answer.
    pub(super) fn unanswered(&self) -> &[Expected] {
        &self.expected[self.answered..]
    }

    /// How many requests of the phase that runs have no answer.
    pub(super) fn in_flight(&self) -> u64 {
        if self.is_current { self.unanswered().len() as u64 } else { 0 }
    }
}

/// Index and generation of a token.
pub(super) fn of_token(token: u64) -> (usize, u32) {
    ((token & 0xffff_ffff) as usize, (token >> 32) as u32)
}

#[cfg(test)]
mod tests;
