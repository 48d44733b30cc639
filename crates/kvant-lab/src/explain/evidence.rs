//! What is known of a stretch of time, before anything is concluded from it.
//!
//! Evidence comes from a server's history ([`super::history`]) or from an attempt of a run. All
//! times are nanoseconds of one monotonic clock.

use crate::record::EventFacts;
use std::collections::BTreeMap;

/// Everything known of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// What was observed, in words: a server, or an attempt.
    pub source: String,
    /// Wall time minus monotonic time, in nanoseconds; `None` if unknown.
    pub wall_origin_ns: Option<i64>,
    /// CPUs of the machine, of which its times are sums; 0 if unknown.
    pub cpu_count: u32,
    /// Whether latencies are those that a client saw; otherwise they are the server's own.
    pub is_of_client: bool,
    /// Ascending, without overlaps.
    pub windows: Vec<Window>,
    /// What the server or a test marked.
    pub events: Vec<EventFacts>,
    /// Some of the slowest requests, with their phases.
    pub requests: Vec<Request>,
    /// Waits for locks; known from recordings.
    pub lock_waits: Vec<LockWait>,
    /// What the server used CPU time for, ascending; seconds may be missing.
    pub cpu: Vec<CpuSecond>,
}

/// CPU time of the server in a second, or in a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuSecond {
    /// Begin.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// By what it was used for, such as `range merge`.
    pub cpu_ns: BTreeMap<String, u64>,
}

impl CpuSecond {
    fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }
}

/// A stretch of time of constant length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Begin.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// Requests that ended within, by operation.
    pub operations: BTreeMap<String, OperationWindow>,
    /// The machine meanwhile.
    pub machine: MachineWindow,
}

impl Window {
    /// End.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }
}

/// Requests of one operation that ended within a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationWindow {
    /// Responses.
    pub count: u64,
    /// Responses that were failures.
    pub failed: u64,
    /// Latency in nanoseconds and responses with it, ascending.
    pub values: Vec<(u64, u64)>,
    /// Sum of each phase over the responses, in the order of [`Phase::ALL`]; `None` if the server
    /// does not tell phases.
    pub phases_ns: Option<[u64; Phase::ALL.len()]>,
    /// Sum of the time within [`Phase::Storage`] for which they read blocks from the disk.
    pub block_read_ns: u64,
    /// Sum of the generator's own lateness: it sent requests after they were due although a
    /// connection was free. 0 for a server's own view.
    pub late_ns: u64,
    /// Sum of the time that requests were due and all connections of the generator were busy with
    /// earlier ones. 0 for a server's own view.
    pub connection_wait_ns: u64,
}

impl OperationWindow {
    /// The longest latency; 0 without responses.
    pub(crate) fn max_ns(&self) -> u64 {
        self.values.last().map_or(0, |(ns, _)| *ns)
    }

    /// Sum of the latencies.
    pub(crate) fn sum_ns(&self) -> f64 {
        sum_ns(&self.values)
    }
}

/// The sum of values with their counts.
pub(crate) fn sum_ns(values: &[(u64, u64)]) -> f64 {
    values.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum()
}

/// The machine during a window; `None` where it was not observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineWindow {
    /// CPU time of the server.
    pub server_cpu_ns: Option<u64>,
    /// CPU time of the generator, if it runs on the same machine and was watched.
    pub generator_cpu_ns: Option<u64>,
    /// CPU time of all tasks, without nodes of the server's cluster where they were watched.
    pub all_cpu_ns: Option<u64>,
    /// Time that threads of the server were ready to run and had no CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// Time that the hypervisor took while a task was ready to run.
    pub stolen_ns: Option<u64>,
    /// Whether the server's machine sent TCP segments again: the network lost or delayed some.
    pub has_resent: bool,
    /// Whether the generator stood still.
    pub is_generator_paused: bool,
    /// Whether memory in use was slow, because the hypervisor had taken it back.
    pub is_memory_slow: bool,
}

kvant_base::named_enum! {
    /// A part of a request's time in the server: see docs/latency.md.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Phase {
        /// Waiting for the event loop.
        Selector = "selector",
        /// The body arrives.
        Body = "body",
        /// Waiting for storage.
        Queue = "queue",
        /// Storage at work.
        Storage = "storage",
        /// The response leaves.
        Answer = "answer",
    }
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Such as `get`.
    pub operation: String,
    /// Status of the response.
    pub status: u16,
    /// The beginning of its key, for people; empty if unknown.
    pub key: String,
    /// Arrival.
    pub start_ns: u64,
    /// The last byte left.
    pub end_ns: u64,
    /// In the order of [`Phase::ALL`]; they follow each other.
    pub phases_ns: [u64; Phase::ALL.len()],
    /// The stall that it waited for.
    pub stall: Option<String>,
    /// Blocks that were read from the disk for it.
    pub block_reads: u64,
    /// How long these reads took.
    pub block_read_ns: u64,
    /// Bytes received for it.
    pub received_bytes: u64,
    /// Bytes sent for it.
    pub sent_bytes: u64,
}

impl Request {
    /// Its latency.
    pub fn total_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Begin and end of a phase.
    pub fn phase_span_ns(&self, phase: Phase) -> (u64, u64) {
        let before: u64 = self.phases_ns[..phase as usize].iter().sum();
        (self.start_ns + before, self.start_ns + before + self.phases_ns[phase as usize])
    }
}

/// A wait for a lock, or a sample that stands for several of this length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockWait {
    /// Name of the lock.
    pub name: String,
    /// Index into [`Evidence::windows`] of the window in which it ended.
    pub window: usize,
    /// Activity of the waiting thread, such as `get`.
    pub operation: String,
    /// How long the thread waited.
    pub length_ns: u64,
    /// Time of all waits that it stands for.
    pub waited_ns: u64,
}

/// The longest window.
pub(super) fn window_ns(windows: &[Window]) -> u64 {
    windows.iter().map(|window| window.length_ns).max().unwrap_or(0).max(1)
}

impl Evidence {
    /// The usual length of a window: the first and the last may be shorter.
    pub(super) fn window_ns(&self) -> u64 {
        window_ns(&self.windows)
    }

    /// Names of the operations that have requests.
    pub fn operations(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for window in &self.windows {
            for (name, of) in &window.operations {
                if of.count > 0 && !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names.sort();
        names
    }

    /// The evidence between two times.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Evidence {
        let is_within = |window: &Window| window.end_ns() > from_ns && window.start_ns < to_ns;
        let first = self.windows.iter().position(is_within).unwrap_or(self.windows.len());
        let windows: Vec<Window> =
            self.windows.iter().filter(|window| is_within(window)).cloned().collect();
        let count = windows.len();
        Evidence {
            windows,
            events: self
                .events
                .iter()
                .filter(|event| {
                    event.start_ns < to_ns && event.end_ns.is_none_or(|end_ns| end_ns >= from_ns)
                })
                .cloned()
                .collect(),
            requests: self
                .requests
                .iter()
                .filter(|request| request.end_ns >= from_ns && request.end_ns < to_ns)
                .cloned()
                .collect(),
            lock_waits: self
                .lock_waits
                .iter()
                .filter(|wait| (first..first + count).contains(&wait.window))
                .map(|wait| LockWait { window: wait.window - first, ..wait.clone() })
                .collect(),
            cpu: self
                .cpu
                .iter()
                .filter(|second| second.end_ns() > from_ns && second.start_ns < to_ns)
                .cloned()
                .collect(),
            ..self.clone_facts()
        }
    }

    fn clone_facts(&self) -> Evidence {
        Evidence {
            source: self.source.clone(),
            wall_origin_ns: self.wall_origin_ns,
            cpu_count: self.cpu_count,
            is_of_client: self.is_of_client,
            ..Evidence::default()
        }
    }
}
