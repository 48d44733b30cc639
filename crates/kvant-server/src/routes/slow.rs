//! `GET /v0/slow[?limit=N][&operation=NAME]`: the slowest requests of the last minute, where their
//! time went, and what happened in the store meanwhile.

use super::document;
use super::server_state::ServerState;
use crate::conn::RequestStep;
use crate::http::response::JSON;
use crate::http::{Exchange, query};
use crate::store::{Backend, RemoteCourse, RemoteStore};
use crate::timing::{
    self, EventFields, KeyStart, Phase, SLOW_COUNT_MAX, SLOW_SPAN_NS, Stamps, Trace, WallTime,
    as_us,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kvant_base::Event;
use serde::Serialize;
use std::cmp::Reverse;
use std::net::SocketAddr;
use std::sync::Arc;

/// Events shown with one request: those with the longest overlap.
const EVENT_COUNT_MAX: usize = 32;

pub(super) fn start(server: &Arc<ServerState>, mut exchange: Exchange) -> RequestStep {
    let (limit, operation) = match query::slow(exchange.uri.query()) {
        Ok(query) => query,
        Err(problem) => return RequestStep::ready(problem.respond(&mut exchange.reply)),
    };
    let count_max = limit.map_or(SLOW_COUNT_MAX, |limit| limit.min(SLOW_COUNT_MAX as u64) as usize);
    document::start(server, exchange, &JSON, move |server| {
        let wall = WallTime::now(&*server.env.clock);
        let since_ns = wall.now_ns().saturating_sub(SLOW_SPAN_NS);
        let slowest = timing::slowest(&server.timings, since_ns, operation, count_max);
        // Once for all requests: reading locks the ring, which is long.
        let first_ns = slowest.iter().map(|trace| trace.stamps.arrival_ns).min();
        let events = first_ns
            .map_or_else(Vec::new, |first_ns| server.events.overlapping(first_ns, wall.now_ns()));
        let remote = match server.lifecycle.store() {
            Some(Backend::Remote(store)) => Some(&**store),
            _ => None,
        };
        rows(&slowest, &events, &wall, remote)
    })
}

fn rows(
    slowest: &[Trace],
    events: &[Arc<Event>],
    wall: &WallTime,
    remote: Option<&dyn RemoteStore>,
) -> serde_json::Result<Vec<u8>> {
    let row = |trace| row(trace, events, wall, remote);
    let rows: Vec<SlowRequest<'_>> = slowest.iter().map(row).collect();
    serde_json::to_vec(&rows)
}

#[derive(Serialize)]
struct SlowRequest<'a> {
    operation: &'static str,
    status: u16,
    /// The beginning of the key, as text or Base64; neither without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    key_bytes: u16,
    started_at: String,
    total_us: f64,
    phases: PhaseTimes,
    tables: u32,
    blocks: u32,
    block_reads: u32,
    block_read_bytes: u64,
    block_read_us: f64,
    received_bytes: u64,
    sent_bytes: u64,
    stall: Option<&'static str>,
    /// Of a request to other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterCourse>,
    events: Vec<Overlap<'a>>,
    /// Further events that overlap it.
    events_omitted: usize,
}

#[derive(Serialize)]
struct PhaseTimes {
    selector_us: f64,
    body_us: f64,
    queue_us: f64,
    storage_us: f64,
    answer_us: f64,
}

/// What a request did at other machines.
#[derive(Serialize)]
struct ClusterCourse {
    /// Its coordinator.
    node: SocketAddr,
    attempts: u32,
    second_read_won: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// `None`: the cluster has not given it, or it is too long ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<serde_json::Value>,
}

/// An event that overlaps a request.
#[derive(Serialize)]
struct Overlap<'a> {
    kind: &'static str,
    /// From the request's arrival; negative if the event began earlier.
    start_us: f64,
    /// `None` while it goes on.
    duration_us: Option<f64>,
    fields: EventFields<'a>,
}

fn row<'a>(
    trace: &'a Trace,
    events: &'a [Arc<Event>],
    wall: &WallTime,
    remote: Option<&dyn RemoteStore>,
) -> SlowRequest<'a> {
    let stamps = &trace.stamps;
    let phase_us = |phase| as_us(stamps.phase_ns(phase));
    let (key, key_base64) = key_texts(&trace.key);
    let mut overlapping: Vec<&Event> = events
        .iter()
        .map(|event| &**event)
        .filter(|event| {
            event.start_ns <= stamps.written_ns
                && event.end_ns.is_none_or(|end| end >= stamps.arrival_ns)
        })
        .collect();
    let events_omitted = overlapping.len().saturating_sub(EVENT_COUNT_MAX);
    if events_omitted > 0 {
        overlapping.sort_by_key(|event| Reverse(overlap_ns(event, stamps)));
        overlapping.truncate(EVENT_COUNT_MAX);
    }
    overlapping.sort_by_key(|event| event.start_ns);
    SlowRequest {
        operation: trace.operation.name(),
        status: trace.status.as_u16(),
        key,
        key_base64,
        key_bytes: trace.key.key_bytes,
        started_at: wall.at(stamps.arrival_ns),
        total_us: phase_us(Phase::Total),
        phases: PhaseTimes {
            selector_us: phase_us(Phase::Selector),
            body_us: phase_us(Phase::Body),
            queue_us: phase_us(Phase::Queue),
            storage_us: phase_us(Phase::Storage),
            answer_us: phase_us(Phase::Answer),
        },
        tables: trace.read.table_count,
        blocks: trace.read.block_count,
        block_reads: trace.read.block_read_count,
        block_read_bytes: trace.read.block_read_bytes,
        block_read_us: as_us(trace.read.block_read_ns),
        received_bytes: trace.received_bytes,
        sent_bytes: trace.sent_bytes,
        stall: trace.stall,
        cluster: trace.remote.node.map(|node| cluster(node, &trace.remote, remote)),
        events: overlapping.into_iter().map(|event| overlap(event, stamps)).collect(),
        events_omitted,
    }
}

fn cluster(
    node: SocketAddr,
    course: &RemoteCourse,
    store: Option<&dyn RemoteStore>,
) -> ClusterCourse {
    let trace_of = |id| store.and_then(|store| store.trace_json(id));
    ClusterCourse {
        node,
        attempts: course.attempt_count,
        second_read_won: course.second_read_won,
        trace_id: course.trace_id.map(|id| format!("{id:032x}")),
        trace: course.trace_id.and_then(trace_of),
    }
}

fn overlap_ns(event: &Event, stamps: &Stamps) -> u64 {
    let end_ns = event.end_ns.unwrap_or(u64::MAX).min(stamps.written_ns);
    end_ns.saturating_sub(event.start_ns.max(stamps.arrival_ns))
}

fn overlap<'a>(event: &'a Event, stamps: &Stamps) -> Overlap<'a> {
    let start_us = match event.start_ns.checked_sub(stamps.arrival_ns) {
        Some(later_ns) => as_us(later_ns),
        None => -as_us(stamps.arrival_ns - event.start_ns),
    };
    Overlap {
        kind: event.kind.name(),
        start_us,
        duration_us: event.end_ns.map(|end_ns| as_us(end_ns.saturating_sub(event.start_ns))),
        fields: EventFields(&event.fields),
    }
}

/// The beginning of a key as text or, if it is none, in Base64; neither without a key.
pub(super) fn key_texts(key: &KeyStart) -> (Option<&str>, Option<String>) {
    match key.bytes() {
        [] => (None, None),
        start => match text_of(start, start.len() < usize::from(key.key_bytes)) {
            Some(text) => (Some(text), None),
            None => (None, Some(BASE64.encode(start))),
        },
    }
}

/// `bytes` as text, if they are valid UTF-8. If they `are_cut`, without an incomplete last
/// character.
fn text_of(bytes: &[u8], are_cut: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if are_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
