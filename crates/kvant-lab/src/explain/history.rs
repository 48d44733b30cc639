//! Reads the history that a server keeps: `GET /v0/history`, see docs/explain.md.
//!
//! Members that are unknown are ignored and missing ones have defaults, so that programs of
//! neighbouring versions understand each other.

use super::evidence::{
    CpuSecond, Evidence, MachineWindow, OperationWindow, Phase, Request, Window,
};
use crate::record::EventFacts;
use kvant_base::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The value of `format`.
const FORMAT: &str = "kvant-history";
/// The highest known value of `version`.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct History {
    format: String,
    version: u32,
    program_version: String,
    engine: String,
    cpus: u32,
    monotonic_ns: u64,
    wall_ms: u64,
    bucket_highest_ns: Vec<u64>,
    windows: Vec<HistoryWindow>,
    events: Vec<EventFacts>,
    slow: Vec<Slow>,
    profile: Option<Vec<HistoryCpu>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HistoryCpu {
    start_ns: u64,
    length_ns: u64,
    cpu: Vec<CpuUse>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CpuUse {
    activity: String,
    stage: String,
    cpu_ns: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HistoryWindow {
    start_ns: u64,
    length_ns: u64,
    operations: BTreeMap<String, HistoryOperation>,
    machine: HistoryMachine,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HistoryOperation {
    count: u64,
    failed: u64,
    phases_ns: Option<BTreeMap<String, u64>>,
    block_read_ns: u64,
    buckets: Vec<(usize, u64)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HistoryMachine {
    server_cpu_ns: Option<u64>,
    run_queue_wait_ns: Option<u64>,
    stolen_ns: Option<u64>,
    all_cpu_ns: Option<u64>,
    resent_segments: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slow {
    operation: String,
    status: u16,
    key: Option<String>,
    key_base64: Option<String>,
    start_ns: u64,
    end_ns: u64,
    phases_ns: BTreeMap<String, u64>,
    stall: Option<String>,
    block_reads: u64,
    block_read_ns: u64,
    received_bytes: u64,
    sent_bytes: u64,
}

/// The evidence in a response to `GET /v0/history`. `server` names it.
///
/// # Errors
/// `Invalid` if it is no history; `Unsupported` if it is of a later version.
pub fn evidence(json: &[u8], server: &str) -> Result<Evidence> {
    let history: History = serde_json::from_slice(json)
        .map_err(|error| Error::invalid(format!("{server} sent no history: {error}")))?;
    if history.format != FORMAT {
        return Err(Error::invalid(format!("{server} sent no history")));
    }
    if history.version > VERSION {
        let problem = format!(
            "{server} sent version {} of a history, and this program knows {VERSION}",
            history.version
        );
        return Err(Error::new(ErrorKind::Unsupported, problem));
    }
    let highest_ns = &history.bucket_highest_ns;
    let wall_origin_ns = i128::from(history.wall_ms) * 1_000_000 - i128::from(history.monotonic_ns);
    let mut source = server.to_owned();
    if !history.program_version.is_empty() {
        source += &format!(" (kvant {}, engine {})", history.program_version, history.engine);
    }
    let mut windows = Vec::with_capacity(history.windows.len());
    for window in history.windows {
        let mut operations = BTreeMap::new();
        for (name, of) in window.operations {
            operations.insert(name, operation(of, highest_ns, server)?);
        }
        windows.push(Window {
            start_ns: window.start_ns,
            length_ns: window.length_ns,
            operations,
            machine: MachineWindow {
                server_cpu_ns: window.machine.server_cpu_ns,
                all_cpu_ns: window.machine.all_cpu_ns,
                run_queue_wait_ns: window.machine.run_queue_wait_ns,
                stolen_ns: window.machine.stolen_ns,
                has_resent: window.machine.resent_segments.is_some_and(|count| count > 0),
                ..MachineWindow::default()
            },
        });
    }
    windows.sort_by_key(|window| window.start_ns);
    Ok(Evidence {
        source,
        wall_origin_ns: i64::try_from(wall_origin_ns).ok(),
        cpu_count: history.cpus,
        is_of_client: false,
        windows,
        events: history.events,
        requests: history.slow.into_iter().map(request).collect(),
        lock_waits: Vec::new(),
        cpu: history.profile.unwrap_or_default().into_iter().map(cpu_second).collect(),
    })
}

fn cpu_second(second: HistoryCpu) -> CpuSecond {
    let mut cpu_ns = BTreeMap::new();
    for used in second.cpu {
        *cpu_ns.entry(purpose(&used.activity, &used.stage)).or_default() += used.cpu_ns;
    }
    CpuSecond { start_ns: second.start_ns, length_ns: second.length_ns, cpu_ns }
}

/// What CPU time was used for, in words.
fn purpose(activity: &str, stage: &str) -> String {
    match (activity, stage) {
        ("none" | "", "none" | "") => "other work".to_owned(),
        (activity, "none" | "") => activity.to_owned(),
        ("none" | "", stage) => stage.to_owned(),
        (activity, stage) => format!("{activity} {stage}"),
    }
}

fn operation(of: HistoryOperation, highest_ns: &[u64], server: &str) -> Result<OperationWindow> {
    let mut values = Vec::with_capacity(of.buckets.len());
    for (index, count) in of.buckets {
        let Some(&value) = highest_ns.get(index) else {
            return Err(Error::invalid(format!("{server} sent a bucket without its bound")));
        };
        values.push((value, count));
    }
    Ok(OperationWindow {
        count: of.count,
        failed: of.failed,
        values,
        phases_ns: of.phases_ns.map(|phases| in_order(&phases)),
        block_read_ns: of.block_read_ns,
        ..OperationWindow::default()
    })
}

fn in_order(phases: &BTreeMap<String, u64>) -> [u64; Phase::ALL.len()] {
    Phase::ALL.map(|phase| phases.get(phase.name()).copied().unwrap_or(0))
}

fn request(slow: Slow) -> Request {
    Request {
        operation: slow.operation,
        status: slow.status,
        key: slow.key.or(slow.key_base64.map(|key| format!("base64 {key}"))).unwrap_or_default(),
        start_ns: slow.start_ns,
        end_ns: slow.end_ns,
        phases_ns: in_order(&slow.phases_ns),
        stall: slow.stall,
        block_reads: slow.block_reads,
        block_read_ns: slow.block_read_ns,
        received_bytes: slow.received_bytes,
        sent_bytes: slow.sent_bytes,
    }
}
