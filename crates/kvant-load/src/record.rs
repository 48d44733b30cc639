//! What workers write down. Each worker fills an [`Interval`] of its own and hands it over when the
//! second is over; nothing is shared while it records.

use crate::histogram::Histogram;
use crate::lateness::Lateness;
use crate::op::OpId;
use serde::{Deserialize, Serialize};

/// What happened in one second (or what is left of one at the end), of one thread or of all.
///
/// A request belongs to the interval in which it was completed. Only requests planned within the
/// measured time are in histograms and counts; what the warm-up planned is nowhere.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Begin, in nanoseconds since the measured time began.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// By [`OpId::index`]; shorter than the table of names where the rest has nothing.
    pub ops: Vec<OpRecord>,
    /// From the moment at which a request was due and a connection was free for it, to its write:
    /// the generator's own lateness.
    pub send_lag: Histogram,
    /// The generator's part of the response times.
    pub lateness: Lateness,
    /// From the call of connect to the socket being writable, and the TLS handshake.
    pub connect: Histogram,
    /// Requests whose planned time lies in this interval. In a closed loop: those sent, or tried in
    /// vain. Pipelined requests lie where the first of their batch does.
    pub planned: u64,
    /// Requests written.
    pub sent: u64,
    /// Requests answered; the counts of all histograms of response time add up to this and
    /// `errors.timeout`.
    pub completed: u64,
    /// Bytes read, framing included.
    pub read_bytes: u64,
    /// What went wrong.
    pub errors: Errors,
    /// CPU time that this thread (these threads) used, in nanoseconds.
    pub cpu_ns: u64,
    /// Of it, time spent in the source making requests and looking at answers, measured on a sample
    /// and scaled; at most all of it.
    pub source_ns: u64,
}

/// The record of one kind of requests.
#[derive(Clone, Debug, Default)]
pub struct OpRecord {
    /// From the planned time to the last byte of the answer. A request that met its deadline is in
    /// here with the time it had waited: at least that.
    pub response: Histogram,
    /// From the write to the last byte of the answer.
    pub service: Histogram,
    /// Answers by status, in order of the status; few.
    pub statuses: Vec<(u16, u64)>,
}

/// Counted failures; the first five are wrk2's. Written as JSON under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Connections that could not be opened, each attempt once.
    pub connect: u64,
    /// Requests whose answer broke off, or was no HTTP.
    pub read: u64,
    /// Requests that could not be written.
    pub write: u64,
    /// Answers over 399 that are not accepted by `--ok`.
    pub status: u64,
    /// Requests that met their deadline, each once.
    pub timeout: u64,
}

impl Errors {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Errors) {
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
        self.status += other.status;
        self.timeout += other.timeout;
    }

    /// Whether wrk2 would print its line of socket errors.
    pub fn any_of_socket(&self) -> bool {
        self.connect + self.read + self.write + self.timeout != 0
    }
}

impl Interval {
    /// The record of a kind of requests, made when it is the first.
    pub fn op_mut(&mut self, op: OpId) -> &mut OpRecord {
        if self.ops.len() <= op.index() {
            self.ops.resize_with(op.index() + 1, OpRecord::default);
        }
        &mut self.ops[op.index()]
    }

    /// Adds what another thread, or another interval, recorded. Times are not changed.
    pub fn add(&mut self, other: &Interval) {
        if self.ops.len() < other.ops.len() {
            self.ops.resize_with(other.ops.len(), OpRecord::default);
        }
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.add(theirs);
        }
        self.send_lag.add(&other.send_lag);
        self.lateness.add(&other.lateness);
        self.connect.add(&other.connect);
        self.planned += other.planned;
        self.sent += other.sent;
        self.completed += other.completed;
        self.read_bytes += other.read_bytes;
        self.errors.add(&other.errors);
        self.cpu_ns += other.cpu_ns;
        self.source_ns += other.source_ns;
    }

    /// Forgets everything; keeps the memory, for the next interval.
    pub fn clear(&mut self) {
        for op in &mut self.ops {
            op.response.clear();
            op.service.clear();
            op.statuses.clear();
        }
        self.send_lag.clear();
        self.lateness.clear();
        self.connect.clear();
        *self = Interval {
            ops: std::mem::take(&mut self.ops),
            send_lag: std::mem::take(&mut self.send_lag),
            lateness: std::mem::take(&mut self.lateness),
            connect: std::mem::take(&mut self.connect),
            ..Interval::default()
        };
    }

    /// The response times of all kinds together.
    pub fn response(&self) -> Histogram {
        merged(self.ops.iter().map(|op| &op.response))
    }

    /// The service times of all kinds together.
    pub fn service(&self) -> Histogram {
        merged(self.ops.iter().map(|op| &op.service))
    }
}

impl OpRecord {
    /// Counts an answer.
    pub fn count_status(&mut self, status: u16) {
        match self.statuses.binary_search_by_key(&status, |(known, _)| *known) {
            Ok(at) => self.statuses[at].1 += 1,
            Err(at) => self.statuses.insert(at, (status, 1)),
        }
    }

    fn add(&mut self, other: &OpRecord) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        for &(status, count) in &other.statuses {
            match self.statuses.binary_search_by_key(&status, |(known, _)| *known) {
                Ok(at) => self.statuses[at].1 += count,
                Err(at) => self.statuses.insert(at, (status, count)),
            }
        }
    }
}

fn merged<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::new();
    parts.for_each(|part| sum.add(part));
    sum
}
