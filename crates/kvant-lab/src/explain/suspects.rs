//! Everything in the evidence that may have delayed requests: events, and windows in which the
//! machine was disturbed.
//!
//! `overload` is none: the server refuses requests because they are slow already.

use super::evidence::{self, Evidence, Window};
use super::model::Cause;
use crate::record::EventFacts;

/// Part of the CPU time of a window that the hypervisor may take.
const STOLEN_PART_MAX: f64 = 0.02;
/// Part of it that other processes may take.
const OTHERS_PART_MAX: f64 = 0.15;
/// Time that threads may be ready without a CPU, as a part of a window ...
const RUN_QUEUE_PART_MAX: f64 = 0.1;
/// ... and as a multiple of the median window.
const RUN_QUEUE_FACTOR: u64 = 3;

/// Part of the time from which on a suspect is always there.
const ALWAYS_PART: f64 = 0.9;

/// A suspect, and when it was there.
pub(super) struct Suspect {
    pub(super) cause: Cause,
    /// Begin and end, in the order of begins.
    pub(super) spans_ns: Vec<(u64, u64)>,
}

impl Suspect {
    /// Whether it was there during each window, or in the `reach_ns` before: requests that end
    /// later began meanwhile.
    pub(super) fn presence(&self, windows: &[Window], reach_ns: u64) -> Vec<bool> {
        let mut is_present = vec![false; windows.len()];
        for &(from_ns, to_ns) in &self.spans_ns {
            let first = windows.partition_point(|window| window.end_ns() <= from_ns);
            let end = windows.partition_point(|window| window.start_ns < to_ns + reach_ns);
            is_present[first.min(end)..end].fill(true);
        }
        is_present
    }
}

/// The cause that an event stands for; `None` if it is none.
pub(super) fn cause_of(event: &EventFacts) -> Option<Cause> {
    let field = |name: &str| event.fields.get(name).and_then(|value| value.as_str());
    Some(match event.kind.as_str() {
        "overload" => return None,
        "stall" => Cause::Stall(field("reason").unwrap_or("unnamed").to_owned()),
        "fsync" if field("file") == Some("wal") => Cause::Fsync,
        "fsync" => Cause::Event(format!("fsync of a {}", field("file").unwrap_or("file"))),
        "release" => Cause::Allocator,
        kind => Cause::Event(kind.to_owned()),
    })
}

/// Begin and end of an event; one in progress ends with the evidence.
pub(super) fn span_ns(event: &EventFacts, evidence: &Evidence) -> (u64, u64) {
    let last_ns = evidence.windows.last().map_or(0, Window::end_ns);
    (event.start_ns, event.end_ns.unwrap_or(last_ns).max(event.start_ns))
}

impl Suspect {
    /// Whether it was there for nearly all the time, so that it says nothing of a moment.
    pub(super) fn is_always_there(&self, evidence: &Evidence) -> bool {
        let ends = evidence.windows.first().zip(evidence.windows.last());
        let length_ns = ends.map_or(0, |(first, last)| last.end_ns() - first.start_ns);
        let mut until_ns = 0;
        let mut present_ns = 0;
        for &(from_ns, to_ns) in &self.spans_ns {
            present_ns += to_ns.saturating_sub(from_ns.max(until_ns));
            until_ns = until_ns.max(to_ns);
        }
        present_ns as f64 > length_ns as f64 * ALWAYS_PART
    }
}

/// All suspects, each with at least one occurrence.
pub(super) fn suspects(evidence: &Evidence) -> Vec<Suspect> {
    let mut found: Vec<Suspect> = Vec::new();
    let mut add = |cause: Cause, span: (u64, u64)| match found
        .iter_mut()
        .find(|suspect| suspect.cause == cause)
    {
        Some(suspect) => suspect.spans_ns.push(span),
        None => found.push(Suspect { cause, spans_ns: vec![span] }),
    };
    for event in &evidence.events {
        if let Some(cause) = cause_of(event) {
            add(cause, span_ns(event, evidence));
        }
    }
    let run_queue_bound = run_queue_bound(&evidence.windows);
    for window in &evidence.windows {
        let machine = &window.machine;
        let span = (window.start_ns, window.end_ns());
        let cpu_ns = (window.length_ns * u64::from(evidence.cpu_count.max(1))) as f64;
        let part = |ns: Option<u64>| ns.unwrap_or(0) as f64 / cpu_ns;
        if part(machine.stolen_ns) > STOLEN_PART_MAX {
            add(Cause::Stolen, span);
        }
        let others = machine.all_cpu_ns.zip(machine.server_cpu_ns).map(|(all, server)| {
            all.saturating_sub(server + machine.generator_cpu_ns.unwrap_or(0))
        });
        if part(others) > OTHERS_PART_MAX {
            add(Cause::Neighbours, span);
        }
        if machine.run_queue_wait_ns.is_some_and(|ns| ns > run_queue_bound) {
            add(Cause::Scheduler, span);
        }
        if machine.has_resent {
            add(Cause::Network, span);
        }
        if machine.is_generator_paused {
            add(Cause::Generator, span);
        }
        if machine.is_memory_slow {
            add(Cause::SlowMemory, span);
        }
    }
    for suspect in &mut found {
        suspect.spans_ns.sort_unstable();
    }
    found
}

fn run_queue_bound(windows: &[Window]) -> u64 {
    let mut waits: Vec<u64> =
        windows.iter().filter_map(|window| window.machine.run_queue_wait_ns).collect();
    waits.sort_unstable();
    let least = (evidence::window_ns(windows) as f64 * RUN_QUEUE_PART_MAX) as u64;
    least.max(waits.get(waits.len() / 2).map_or(0, |median| median * RUN_QUEUE_FACTOR))
}
