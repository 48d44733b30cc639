//! What one request went through, and when.

use crate::routes::Route;
use http::{Method, StatusCode};
use kvant_base::tag::Activity;
use kvant_engine::ReadTrace;

/// What a request asks for, as far as its cost goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    Status,
    Get,
    Put,
    Delete,
    Range,
    /// The operator's requests, and those that are refused before a route.
    #[default]
    Other,
    /// Of entities, whatever it is, and answered `503` instead of being done: so that quick
    /// refusals do not flatter the others' times.
    Refused,
}

impl Operation {
    pub(crate) const ALL: [Operation; 7] = [
        Operation::Status,
        Operation::Get,
        Operation::Put,
        Operation::Delete,
        Operation::Range,
        Operation::Other,
        Operation::Refused,
    ];

    #[inline]
    pub(crate) fn of(route: Route, method: &Method) -> Operation {
        match (route, method) {
            (Route::Status, _) => Operation::Status,
            (Route::Entity, &Method::PUT) => Operation::Put,
            (Route::Entity, &Method::DELETE) => Operation::Delete,
            (Route::Entity, _) => Operation::Get,
            (Route::Entities, _) => Operation::Range,
            _ => Operation::Other,
        }
    }

    /// For whom profiles show the work on it.
    #[inline]
    pub(crate) fn activity(self) -> Activity {
        match self {
            Operation::Status => Activity::Status,
            Operation::Get => Activity::Get,
            Operation::Put => Activity::Put,
            Operation::Delete => Activity::Delete,
            Operation::Range => Activity::Range,
            Operation::Other => Activity::Operator,
            Operation::Refused => Activity::None,
        }
    }

    /// Its name in metrics and statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Status => "status",
            Operation::Get => "get",
            Operation::Put => "put",
            Operation::Delete => "delete",
            Operation::Range => "range",
            Operation::Other => "other",
            Operation::Refused => "refused",
        }
    }
}

/// A part of a request's time. Together, all but the last are the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// From the turn of the event loop in which the head was seen to the head being understood:
    /// other connections went first.
    Selector,
    /// Reading the body.
    Body,
    /// Waiting for storage: in the queue, for the batch, for a stall to end, for memory.
    Queue,
    /// Storage at work, waiting for an fsync included.
    Storage,
    /// From storage being done to the kernel having taken the last byte of the answer. For a range,
    /// that is all of it but the first piece.
    Answer,
    Total,
}

impl Phase {
    pub(crate) const ALL: [Phase; 6] =
        [Phase::Selector, Phase::Body, Phase::Queue, Phase::Storage, Phase::Answer, Phase::Total];

    /// Its name in metrics and statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Selector => "selector",
            Phase::Body => "body",
            Phase::Queue => "queue",
            Phase::Storage => "storage",
            Phase::Answer => "answer",
            Phase::Total => "total",
        }
    }
}

/// When a request reached each stage, in nanoseconds of the monotonic clock. A stage that it has
/// not, or skipped, has the time of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) arrival_ns: u64,
    pub(crate) parsed_ns: u64,
    pub(crate) queued_ns: u64,
    pub(crate) started_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) written_ns: u64,
}

impl Stamps {
    /// How long a phase took.
    #[inline]
    pub(crate) fn phase_ns(&self, phase: Phase) -> u64 {
        let (from, to) = match phase {
            Phase::Selector => (self.arrival_ns, self.parsed_ns),
            Phase::Body => (self.parsed_ns, self.queued_ns),
            Phase::Queue => (self.queued_ns, self.started_ns),
            Phase::Storage => (self.started_ns, self.done_ns),
            Phase::Answer => (self.done_ns, self.written_ns),
            Phase::Total => (self.arrival_ns, self.written_ns),
        };
        to.saturating_sub(from)
    }
}

/// What storage did for a request, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StorageWork {
    pub(crate) queued_ns: u64,
    pub(crate) started_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) read: ReadTrace,
    /// Why a write waited.
    pub(crate) stall: Option<&'static str>,
}

impl StorageWork {
    /// Work that was asked for and begun at once.
    #[inline]
    pub(crate) fn at(now_ns: u64) -> StorageWork {
        StorageWork {
            queued_ns: now_ns,
            started_ns: now_ns,
            done_ns: now_ns,
            ..StorageWork::default()
        }
    }
}

/// The beginning of a key, enough to recognise it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyStart {
    pub(crate) key_bytes: u16,
    start: [u8; KeyStart::BYTES_MAX],
}

impl KeyStart {
    const BYTES_MAX: usize = 30;

    #[inline]
    pub(crate) fn of(key: &[u8]) -> KeyStart {
        let mut start = [0; KeyStart::BYTES_MAX];
        let bytes = key.len().min(start.len());
        start[..bytes].copy_from_slice(&key[..bytes]);
        KeyStart {
            // Keys have at most 16 KiB.
            key_bytes: key.len() as u16,
            start,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.start[..usize::from(self.key_bytes).min(self.start.len())]
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) operation: Operation,
    pub(crate) status: StatusCode,
    pub(crate) stamps: Stamps,
    pub(crate) key: KeyStart,
    pub(crate) read: ReadTrace,
    pub(crate) stall: Option<&'static str>,
    /// Of values, keys and framing: what was received and sent for it.
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Trace {
    /// A request that was understood at `parsed_ns`, and that has no more to wait for unless it is
    /// said.
    #[inline]
    pub(crate) fn begin(operation: Operation, parsed_ns: u64) -> Trace {
        Trace {
            operation,
            stamps: Stamps {
                arrival_ns: parsed_ns,
                parsed_ns,
                queued_ns: parsed_ns,
                started_ns: parsed_ns,
                done_ns: parsed_ns,
                written_ns: parsed_ns,
            },
            ..Trace::default()
        }
    }

    /// Among which requests its times are counted.
    #[inline]
    pub(crate) fn counted_as(&self) -> Operation {
        match self.operation {
            Operation::Status | Operation::Other => self.operation,
            _ if self.status == StatusCode::SERVICE_UNAVAILABLE => Operation::Refused,
            operation => operation,
        }
    }

    /// Storage has done this for it. Where it was asked several times, the first waited and the
    /// last was done.
    #[inline]
    pub(crate) fn storage(&mut self, work: &StorageWork) {
        self.stamps.queued_ns = work.queued_ns;
        self.stamps.started_ns = work.started_ns;
        self.stamps.done_ns = work.done_ns;
        self.read = work.read;
        self.stall = work.stall;
    }
}
