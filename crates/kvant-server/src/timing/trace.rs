//! The stages of one request, and its storage work.

use crate::http::Operation;
use crate::store::{ReadTrace, RemoteCourse};
use http::StatusCode;
use kvant_base::named_enum;

named_enum! {
    /// A part of a request's time. All but the last add up to the last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Phase {
        /// From the start of the event loop's turn in which the head was seen until the head was
        /// parsed: other connections went first.
        Selector = "selector",
        Body = "body",
        /// Waiting for storage: in the queue, for the batch, for a stall to end, for memory.
        Queue = "queue",
        /// Storage at work, including the wait for an fsync.
        Storage = "storage",
        /// From the end of storage work until the kernel took the last byte of the response. For a
        /// range this has all pieces but the first.
        Answer = "answer",
        Total = "total",
    }
}

/// When a request reached each stage, in nanoseconds of the monotonic clock. A skipped stage has
/// the time of the one before.
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

/// The storage work of a request: its times, and what it touched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StorageWork {
    pub(crate) queued_ns: u64,
    pub(crate) started_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) read: ReadTrace,
    /// The stall that a write waited for.
    pub(crate) stall: Option<&'static str>,
    pub(crate) remote: RemoteCourse,
}

impl StorageWork {
    /// Work that was requested and begun at `now_ns`.
    #[inline]
    pub(crate) fn at(now_ns: u64) -> StorageWork {
        StorageWork {
            queued_ns: now_ns,
            started_ns: now_ns,
            done_ns: now_ns,
            ..StorageWork::default()
        }
    }

    /// Work of other machines, that was requested at `queued_ns` and ended at `done_ns`.
    pub(crate) fn of_remote(queued_ns: u64, remote: RemoteCourse, done_ns: u64) -> StorageWork {
        // Until the right node was asked, nothing was done.
        let started_ns = (queued_ns + remote.before_ns).min(done_ns);
        StorageWork { queued_ns, started_ns, done_ns, remote, ..StorageWork::default() }
    }

    /// Work that was requested at `queued_ns` and given up at `now_ns`.
    pub(crate) fn never_begun(queued_ns: u64, now_ns: u64) -> StorageWork {
        StorageWork { queued_ns, ..StorageWork::at(now_ns) }
    }
}

/// The first bytes of a key, enough to recognise it.
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

    /// A key of this length that begins with `start`: what [`KeyStart::bytes`] returned.
    pub(crate) fn again(key_bytes: u16, start: &[u8]) -> KeyStart {
        KeyStart { key_bytes, ..KeyStart::of(start) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.start[..usize::from(self.key_bytes).min(self.start.len())]
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) operation: Operation,
    pub(crate) status: StatusCode,
    pub(crate) stamps: Stamps,
    pub(crate) key: KeyStart,
    pub(crate) read: ReadTrace,
    pub(crate) stall: Option<&'static str>,
    pub(crate) remote: RemoteCourse,
    /// Bytes on the connection, with heads and framing.
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Trace {
    /// A request whose head was parsed at `parsed_ns`. Later stages are set as they are reached.
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

    /// The operation whose histograms count it.
    #[inline]
    pub(crate) fn counted_as(&self) -> Operation {
        match self.operation {
            Operation::Status | Operation::Other => self.operation,
            _ if self.status == StatusCode::SERVICE_UNAVAILABLE => Operation::Refused,
            operation => operation,
        }
    }

    /// Sets its storage work; of several attempts, the last.
    #[inline]
    pub(crate) fn set_storage(&mut self, work: &StorageWork) {
        self.stamps.queued_ns = work.queued_ns;
        self.stamps.started_ns = work.started_ns;
        self.stamps.done_ns = work.done_ns;
        self.read = work.read;
        self.stall = work.stall;
        self.remote = work.remote;
    }
}
