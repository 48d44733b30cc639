//! The JSON of the history, piece by piece.
//!
//! Windows, slow requests and CPU times are fetched from the history when they are encoded, a few
//! seconds at a time.

use crate::history::{CpuSecond, History, Second, WINDOW_NS, Window};
use crate::routes::ServerState;
use crate::routes::slow::key_texts;
use crate::timing::{EventFields, Phase, Recorded, Timings, Trace, pair_highest_ns, untaken_slow};
use kvant_base::tag::Tag;
use kvant_base::{Event, Events};
use kvant_env::host::procfs::ProcFs;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A piece ends after this many bytes, with the second that is being encoded.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Seconds and events that are held at once.
const FETCHED_COUNT: usize = 4;
const EVENTS_PER_PIECE: usize = 100;
const CPU_SECONDS_PER_PIECE: usize = 60;

pub(super) struct Document {
    head: Head,
    history: Arc<History>,
    timings: Vec<Arc<Timings>>,
    events: Arc<Events>,
    span_ns: Range<u64>,
    part: Part,
    /// The end of the last second that was encoded in this part.
    done_ns: u64,
    /// Whether the part has a row.
    has_row: bool,
    /// Start of the first window that was encoded.
    first_ns: Option<u64>,
    /// Events that are not encoded yet.
    events_left: VecDeque<Arc<Event>>,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Windows,
    Events,
    Slow,
    Profile,
    End,
    Ended,
}

#[derive(Serialize)]
struct Head {
    format: &'static str,
    version: u32,
    program_version: &'static str,
    engine: Option<&'static str>,
    pid: u32,
    cpus: u32,
    selectors: usize,
    monotonic_ns: u64,
    wall_ms: u64,
    window_ns: u64,
    bucket_highest_ns: Vec<u64>,
}

#[derive(Serialize)]
struct WindowRow<'a> {
    start_ns: u64,
    length_ns: u64,
    operations: Operations<'a>,
    machine: Machine,
}

struct Operations<'a>(&'a [Recorded]);

#[derive(Serialize)]
struct OperationRow<'a> {
    count: u64,
    failed: u64,
    phases_ns: Phases,
    block_read_ns: u64,
    max_ns: u64,
    buckets: &'a [(u16, u64)],
}

#[derive(Serialize)]
struct Machine {
    server_cpu_ns: u64,
    run_queue_wait_ns: Option<u64>,
    stolen_ns: Option<u64>,
    all_cpu_ns: Option<u64>,
    disk_read_bytes: Option<u64>,
    disk_written_bytes: Option<u64>,
    resent_segments: Option<u64>,
}

#[derive(Serialize)]
struct EventRow<'a> {
    kind: &'static str,
    start_ns: u64,
    end_ns: Option<u64>,
    fields: EventFields<'a>,
}

#[derive(Serialize)]
struct SlowRow<'a> {
    operation: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    key_bytes: u16,
    start_ns: u64,
    end_ns: u64,
    phases_ns: Phases,
    tables: u32,
    blocks: u32,
    block_reads: u32,
    block_read_bytes: u64,
    block_read_ns: u64,
    received_bytes: u64,
    sent_bytes: u64,
    stall: Option<&'static str>,
}

#[derive(Serialize)]
struct CpuRow {
    start_ns: u64,
    length_ns: u64,
    cpu: Vec<TagRow>,
}

#[derive(Serialize)]
struct TagRow {
    activity: &'static str,
    stage: &'static str,
    cpu_ns: u64,
}

/// In the order of [`Phase::ALL`], without the total.
struct Phases([u64; Phase::ALL.len() - 1]);

impl Document {
    pub(super) fn new(
        server: &Arc<ServerState>,
        history: Arc<History>,
        span_ns: Range<u64>,
    ) -> Document {
        let clock = &server.env.clock;
        let head = Head {
            format: "kvant-history",
            version: 1,
            program_version: env!("CARGO_PKG_VERSION"),
            engine: server.lifecycle.store().map(|store| store.name()),
            pid: std::process::id(),
            cpus: ProcFs::system().cpu_times().map_or(0, |times| times.cpu_count),
            selectors: server.timings.len(),
            monotonic_ns: clock.monotonic_ns(),
            wall_ms: clock.wall_ms(),
            window_ns: WINDOW_NS,
            bucket_highest_ns: pair_highest_ns().collect(),
        };
        let (timings, events) = (server.timings.clone(), Arc::clone(&server.events));
        Document::with(head, history, timings, events, span_ns)
    }

    fn with(
        head: Head,
        history: Arc<History>,
        timings: Vec<Arc<Timings>>,
        events: Arc<Events>,
        span_ns: Range<u64>,
    ) -> Document {
        Document {
            head,
            history,
            timings,
            events,
            done_ns: span_ns.start,
            span_ns,
            part: Part::Head,
            has_row: false,
            first_ns: None,
            events_left: VecDeque::new(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.part == Part::Ended
    }

    /// The next bytes of the document, at least one until [`Document::has_ended`].
    pub(super) fn next_piece(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PIECE_BYTES);
        while out.len() < PIECE_BYTES && self.part != Part::Ended {
            let is_done = match self.part {
                Part::Head => self.write_head(&mut out),
                Part::Windows => self.write_windows(&mut out),
                Part::Events => self.write_events(&mut out),
                Part::Slow => self.write_slow(&mut out),
                Part::Profile => self.write_profile(&mut out),
                Part::End | Part::Ended => {
                    out.extend_from_slice(b"]}");
                    true
                }
            };
            if is_done {
                self.begin_next(&mut out);
            }
        }
        out
    }

    fn begin_next(&mut self, out: &mut Vec<u8>) {
        let (next, opening) = match self.part {
            Part::Head => (Part::Windows, ",\"windows\":["),
            Part::Windows => (Part::Events, "],\"events\":["),
            Part::Events => (Part::Slow, "],\"slow\":["),
            Part::Slow => (Part::Profile, "],\"profile\":["),
            Part::Profile => (Part::End, ""),
            Part::End | Part::Ended => (Part::Ended, ""),
        };
        out.extend_from_slice(opening.as_bytes());
        self.part = next;
        self.has_row = false;
        self.done_ns = self.span_ns.start;
        if next == Part::Events {
            let from_ns = self.first_ns.unwrap_or(self.span_ns.end);
            self.events_left = self.events.overlapping(from_ns, self.span_ns.end).into();
        }
    }

    fn write_head(&mut self, out: &mut Vec<u8>) -> bool {
        write(out, &self.head);
        // The object goes on.
        out.pop();
        true
    }

    /// Encodes some seconds. Returns whether they were the last.
    fn write_windows(&mut self, out: &mut Vec<u8>) -> bool {
        // A second that was in progress at the last call may have more windows now.
        let (done_ns, end_ns) = (self.done_ns, self.span_ns.end);
        self.for_seconds(|document, second| {
            let is_due = |window: &Window| {
                window.start_ns < end_ns && window.start_ns + window.length_ns > done_ns
            };
            for window in second.windows().filter(is_due) {
                document.first_ns.get_or_insert(window.start_ns);
                document.write_row(out, &WindowRow::from(&window));
            }
        })
    }

    fn write_events(&mut self, out: &mut Vec<u8>) -> bool {
        for _ in 0..EVENTS_PER_PIECE {
            let Some(event) = self.events_left.pop_front() else { return true };
            let row = EventRow {
                kind: event.kind.name(),
                start_ns: event.start_ns,
                end_ns: event.end_ns,
                fields: EventFields(&event.fields),
            };
            self.write_row(out, &row);
        }
        false
    }

    fn write_slow(&mut self, out: &mut Vec<u8>) -> bool {
        let is_done = self.for_seconds(|document, second| {
            second.slowest().for_each(|trace| document.write_trace(out, &trace));
        });
        if is_done {
            // Of the second in progress.
            let untaken = untaken_slow(&self.timings);
            untaken.iter().for_each(|trace| self.write_trace(out, trace));
        }
        is_done
    }

    fn write_profile(&mut self, out: &mut Vec<u8>) -> bool {
        let seconds = self.history.cpu_after(self.done_ns, CPU_SECONDS_PER_PIECE);
        let end_ns = self.span_ns.end;
        for second in seconds.iter().filter(|second| second.start_ns < end_ns) {
            self.done_ns = second.end_ns();
            self.write_row(out, &CpuRow::from(&**second));
        }
        let is_beyond = |last: &Arc<CpuSecond>| last.end_ns() >= end_ns;
        seconds.len() < CPU_SECONDS_PER_PIECE || seconds.last().is_some_and(is_beyond)
    }

    fn write_trace(&mut self, out: &mut Vec<u8>, trace: &Trace) {
        let stamps = &trace.stamps;
        if stamps.arrival_ns >= self.span_ns.end || stamps.written_ns < self.span_ns.start {
            return;
        }
        let (key, key_base64) = key_texts(&trace.key);
        let row = SlowRow {
            operation: trace.operation.name(),
            status: trace.status.as_u16(),
            key,
            key_base64,
            key_bytes: trace.key.key_bytes,
            start_ns: stamps.arrival_ns,
            end_ns: stamps.written_ns,
            phases_ns: Phases(std::array::from_fn(|phase| stamps.phase_ns(Phase::ALL[phase]))),
            tables: trace.read.table_count,
            blocks: trace.read.block_count,
            block_reads: trace.read.block_read_count,
            block_read_bytes: trace.read.block_read_bytes,
            block_read_ns: trace.read.block_read_ns,
            received_bytes: trace.received_bytes,
            sent_bytes: trace.sent_bytes,
            stall: trace.stall,
        };
        self.write_row(out, &row);
    }

    /// Calls `write` with the next few seconds of the span. Returns whether they were the last.
    fn for_seconds(&mut self, mut write: impl FnMut(&mut Document, &Second)) -> bool {
        let seconds = self.history.seconds_after(self.done_ns, FETCHED_COUNT);
        let Some(last) = seconds.last() else { return true };
        self.done_ns = last.end_ns();
        seconds.iter().for_each(|second| write(self, second));
        seconds.len() < FETCHED_COUNT || self.done_ns >= self.span_ns.end
    }

    fn write_row(&mut self, out: &mut Vec<u8>, row: &impl Serialize) {
        if std::mem::replace(&mut self.has_row, true) {
            out.push(b',');
        }
        write(out, row);
    }
}

fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(out, value)
        .expect("numbers and texts can be encoded, and memory takes them");
}

impl From<&CpuSecond> for CpuRow {
    fn from(second: &CpuSecond) -> CpuRow {
        let row = |&(code, cpu_ns): &(u16, u64)| {
            let tag = Tag::of_code(code);
            TagRow { activity: tag.activity.name(), stage: tag.stage.name(), cpu_ns }
        };
        CpuRow {
            start_ns: second.start_ns,
            length_ns: second.length_ns,
            cpu: second.cpu_ns.iter().map(row).collect(),
        }
    }
}

impl<'a> From<&'a Window> for WindowRow<'a> {
    fn from(window: &'a Window) -> WindowRow<'a> {
        let machine = &window.machine;
        WindowRow {
            start_ns: window.start_ns,
            length_ns: window.length_ns,
            operations: Operations(&window.operations),
            machine: Machine {
                server_cpu_ns: machine.cpu_ns,
                run_queue_wait_ns: machine.run_queue_wait_ns,
                stolen_ns: machine.stolen_ns,
                all_cpu_ns: machine.all_cpu_ns,
                disk_read_bytes: machine.read_bytes,
                disk_written_bytes: machine.written_bytes,
                resent_segments: machine.resent_segments,
            },
        }
    }
}

impl Serialize for Operations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|recorded| {
            let row = OperationRow {
                count: recorded.count(),
                failed: recorded.failed_count,
                phases_ns: Phases(recorded.phases_ns),
                block_read_ns: recorded.block_read_ns,
                max_ns: recorded.max_ns,
                buckets: &recorded.buckets,
            };
            (recorded.operation.name(), row)
        }))
    }
}

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Phase::ALL.iter().map(|phase| phase.name()).zip(self.0))
    }
}

#[cfg(test)]
mod tests;
