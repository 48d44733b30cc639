//! What workers record. Each worker fills its own [`Interval`] and hands it over at the end of a
//! second; nothing is shared while it records.

use crate::histogram::Histogram;
use crate::lateness::Lateness;
use crate::op::OpId;
use serde::{Deserialize, Serialize};

/// An interval of the measured time (`LoadConfig::interval`) of one thread or of all, or a phase.
///
/// A request belongs to the interval in which it was completed. Only requests planned in the
/// measured time count; those of the warm-up are not recorded, except for those in flight at its
/// end in a closed loop without a limit of requests. Written as JSON under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, in nanoseconds since the measured time began.
    #[serde(skip)]
    pub start_ns: u64,
    /// End, in nanoseconds since the measured time began.
    #[serde(skip)]
    pub end_ns: u64,
    /// By [`OpId::index`]; may be shorter than the table of names, except in an
    /// [`Outcome`](crate::Outcome).
    pub ops: Vec<OpRecord>,
    /// From the time at which a request was due and a connection was free for it, to its write:
    /// the generator's lateness.
    pub send_lag: Histogram,
    /// The generator's part of the response times. Result files have it in the shares of the
    /// verdict only.
    #[serde(skip)]
    pub lateness: Lateness,
    /// From the connect call until the socket is writable or the TLS handshake is complete.
    pub connect: Histogram,
    /// Requests whose planned time lies in this interval. In a closed loop: requests sent, or
    /// failed to be sent, or in flight when the measured time began. A pipelined batch counts with
    /// the planned time of its first request.
    pub planned: u64,
    /// Requests written.
    pub sent: u64,
    /// Responses. The counts of all histograms of response time add up to this and
    /// `errors.timeout`.
    pub completed: u64,
    /// Bytes received, including framing.
    pub read_bytes: u64,
    /// Failures.
    pub errors: Errors,
    /// CPU time of the thread, or of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// The part of it spent in the source, estimated from a sample of its calls.
    pub source_ns: u64,
}

/// The record of one kind of requests; written as JSON under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpRecord {
    /// Its name in an [`Outcome`](crate::Outcome), else empty: see [`crate::OpNames`].
    pub name: String,
    /// Responses by status, in ascending order.
    #[serde(with = "statuses")]
    pub statuses: Vec<(u16, u64)>,
    /// From the planned time to the last byte of the response. A request that missed its deadline
    /// counts with the time it had waited, a lower bound.
    pub response: Histogram,
    /// From the write to the last byte of the response.
    pub service: Histogram,
    /// The same of the responses that count as `errors.status` only, such as refusals; they are in
    /// `service` too.
    #[serde(default, skip_serializing_if = "has_none")]
    pub service_failed: Option<Histogram>,
}

fn has_none(histogram: &Option<Histogram>) -> bool {
    histogram.as_ref().is_none_or(Histogram::is_empty)
}

/// Counts of failures, as wrk2 has them; written as JSON under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Failed attempts to open a connection.
    pub connect: u64,
    /// Requests whose response was truncated or malformed.
    pub read: u64,
    /// Requests that could not be written.
    pub write: u64,
    /// Responses with a status above 399 that `--ok` does not accept.
    pub status: u64,
    /// Requests that missed their deadline.
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

    /// The number of all failures.
    pub fn total(&self) -> u64 {
        self.connect + self.read + self.write + self.status + self.timeout
    }
}

impl Interval {
    /// The record of a kind of requests, created on first use.
    #[inline]
    pub fn op_mut(&mut self, op: OpId) -> &mut OpRecord {
        if self.ops.len() <= op.index() {
            self.ops.resize_with(op.index() + 1, OpRecord::default);
        }
        &mut self.ops[op.index()]
    }

    /// Names the kinds by [`OpId::index`], also those without requests.
    pub fn name_ops(&mut self, names: Vec<String>) {
        self.ops.resize_with(names.len().max(self.ops.len()), OpRecord::default);
        self.ops.iter_mut().zip(names).for_each(|(op, name)| op.name = name);
    }

    /// The record of the kind with this name.
    pub fn op(&self, name: &str) -> Option<&OpRecord> {
        self.ops.iter().find(|op| op.name == name)
    }

    /// Adds the record of another thread or interval, except for its times.
    pub fn add(&mut self, other: &Interval) {
        let known = self.ops.len();
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.response.add(&theirs.response);
            mine.service.add(&theirs.service);
            if let Some(failed) = theirs.service_failed.as_ref().filter(|all| !all.is_empty()) {
                mine.service_failed.get_or_insert_default().add(failed);
            }
            theirs.statuses.iter().for_each(|&(status, count)| mine.add_status(status, count));
        }
        self.ops.extend_from_slice(other.ops.get(known..).unwrap_or_default());
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

    /// Resets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.clear_latencies();
        self.ops.iter_mut().for_each(|op| op.statuses.clear());
        self.send_lag.clear();
        self.connect.clear();
        (self.start_ns, self.end_ns, self.planned, self.sent, self.completed) = Default::default();
        (self.read_bytes, self.errors, self.cpu_ns, self.source_ns) = Default::default();
    }

    /// Resets response and service times.
    pub fn clear_latencies(&mut self) {
        for op in &mut self.ops {
            op.response.clear();
            op.service.clear();
            op.service_failed.iter_mut().for_each(Histogram::clear);
        }
        self.lateness.clear();
    }

    /// The response times of all kinds together.
    pub fn response(&self) -> Histogram {
        merged(self.ops.iter().map(|op| &op.response))
    }

    /// The service times of all kinds together.
    pub fn service(&self) -> Histogram {
        merged(self.ops.iter().map(|op| &op.service))
    }

    /// Those of the responses that count as `errors.status`.
    pub fn service_failed(&self) -> Histogram {
        merged(self.ops.iter().filter_map(|op| op.service_failed.as_ref()))
    }
}

impl OpRecord {
    /// Counts a response.
    #[inline]
    pub fn count_status(&mut self, status: u16) {
        self.add_status(status, 1);
    }

    #[inline]
    fn add_status(&mut self, status: u16, count: u64) {
        match self.statuses.binary_search_by_key(&status, |(known, _)| *known) {
            Ok(at) => self.statuses[at].1 += count,
            Err(at) => self.statuses.insert(at, (status, count)),
        }
    }
}

fn merged<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::new();
    parts.for_each(|part| sum.add(part));
    sum
}

/// A JSON object with the statuses as names: `{"200": 19998, "404": 2}`.
mod statuses {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(
        statuses: &[(u16, u64)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(statuses.iter().copied())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(u16, u64)>, D::Error> {
        // Within a flattened struct serde does not read names as numbers.
        let counts = BTreeMap::<String, u64>::deserialize(from)?;
        let number =
            |(status, count): (String, u64)| Ok((status.parse().map_err(Error::custom)?, count));
        let mut statuses = counts.into_iter().map(number).collect::<Result<Vec<_>, _>>()?;
        statuses.sort_unstable();
        Ok(statuses)
    }
}
