//! A connection: its socket, the requests in flight, and the partial response.

use crate::http::{Collector, ResponseParser};
use crate::net::stream::Stream;
use crate::source::Expected;

/// Back-off after the first failure in a row, in nanoseconds; doubles with each.
const BACK_OFF_MIN_NS: u64 = 1_000_000;
const BACK_OFF_MAX_NS: u64 = 1_000_000_000;

/// The state of a connection, which determines the worker's list that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnState {
    /// No socket: waits to be opened, or for the end of its back-off.
    #[default]
    Closed,
    /// Connecting or in the TLS handshake.
    Opening,
    /// Open, and waits for its own time: a script's `delay()`, or a plan of its own.
    Waiting,
    Free,
    Busy,
}

#[derive(Default)]
pub(super) struct Connection {
    pub(super) state: ConnState,
    pub(super) stream: Option<Stream>,
    /// Distinguishes the sockets of this connection.
    pub(super) generation: u32,
    pub(super) target: usize,
    /// Index of the address in use, or to be tried next.
    pub(super) address: usize,
    /// Addresses that failed in this attempt.
    pub(super) addresses_failed: usize,
    /// Failed attempts, and sockets without a response, in a row.
    pub(super) failures: u32,
    pub(super) has_response: bool,
    /// The server sends nothing after what the socket holds now.
    pub(super) is_ending: bool,
    pub(super) opening_ns: u64,
    /// When it became free: the start of the turn in which the event loop noticed.
    pub(super) free_ns: u64,
    pub(super) flight: Flight,
    /// The part of the batch that the kernel has not taken.
    pub(super) unwritten: Unwritten,
    pub(super) parser: ResponseParser,
    /// Headers and body, if the source observes responses.
    pub(super) collector: Option<Box<Collector>>,
}

#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) planned_ns: u64,
    pub(super) written_ns: u64,
    /// How late the generator wrote it, if there is a plan.
    pub(super) lag_ns: u64,
    /// Whether it belongs to the current phase. Responses to an earlier one are awaited and
    /// discarded.
    pub(super) is_current: bool,
    /// Whether it belongs to the measured time.
    pub(super) is_recorded: bool,
    /// The source's identifier of the batch.
    pub(super) cookie: u64,
    pub(super) expected: Vec<Expected>,
    /// How many of `expected` have a response.
    pub(super) completed: usize,
}

impl Connection {
    pub(super) fn new(target: usize, collects: bool) -> Connection {
        Connection { target, collector: collects.then(Box::default), ..Connection::default() }
    }

    /// Drops the socket and its state. The caller updates the lists.
    pub(super) fn drop_socket(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.close();
        }
        self.generation = self.generation.wrapping_add(1);
        self.state = ConnState::Closed;
        self.is_ending = false;
        self.parser.reset();
        self.unwritten.clear();
        self.flight.expected.clear();
        self.flight.completed = 0;
    }

    /// Counts the last socket as a failure if it received no response, even if the server closed it
    /// in order: otherwise a server that accepts and closes would cause a busy loop of connects.
    pub(super) fn count_failure(&mut self) {
        self.failures = if self.has_response { 0 } else { self.failures.saturating_add(1) };
        self.has_response = false;
    }

    pub(super) fn back_off_ns(&self) -> u64 {
        match self.failures {
            0 => 0,
            failures => (BACK_OFF_MIN_NS << (failures - 1).min(30)).min(BACK_OFF_MAX_NS),
        }
    }

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
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.written_bytes..]
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn remove_written(&mut self, count: usize) {
        self.written_bytes += count;
        if self.written_bytes == self.bytes.len() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.written_bytes = 0;
    }
}

impl Flight {
    pub(super) fn unanswered(&self) -> &[Expected] {
        &self.expected[self.completed..]
    }

    /// The number of requests of the current phase without a response.
    pub(super) fn in_flight(&self) -> u64 {
        if self.is_current { self.unanswered().len() as u64 } else { 0 }
    }
}

pub(super) fn parse_token(token: u64) -> (usize, u32) {
    ((token & 0xffff_ffff) as usize, (token >> 32) as u32)
}

#[cfg(test)]
mod tests;
