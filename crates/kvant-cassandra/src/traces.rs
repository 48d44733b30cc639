//! The cluster's own traces of requests whose clients asked for them.
//!
//! A trace is read after the answer, once the cluster has written it. At most
//! [`FETCHES_MAX`] are read at a time; requests beyond that are done without a trace, so that
//! clients cannot make the cluster write nothing but traces. The last [`KEPT_COUNT`] are kept.
//!
//! Threads: any.

use kvant_base::lock::NamedMutex;
use scylla::observability::tracing::TracingInfo;
use serde::Serialize;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const FETCHES_MAX: usize = 4;
const KEPT_COUNT: usize = 100;

pub(crate) struct Traces {
    kept: NamedMutex<VecDeque<(u128, Trace)>>,
    slots: Arc<Semaphore>,
}

/// The cluster's trace of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The node that coordinated it.
    pub coordinator: Option<String>,
    /// Its time there.
    pub duration_us: Option<i32>,
    /// What happened, in order.
    pub events: Vec<TraceEvent>,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceEvent {
    /// The node where it happened.
    pub node: Option<String>,
    /// Microseconds since the node knows of the request.
    pub at_us: Option<i32>,
    /// What happened, in the cluster's words.
    pub what: Option<String>,
}

impl Traces {
    pub(crate) fn new() -> Traces {
        Traces {
            kept: NamedMutex::new("cluster_traces", VecDeque::new()),
            slots: Arc::new(Semaphore::new(FETCHES_MAX)),
        }
    }

    /// The right to trace a request, until its trace was read; `None`: too many are being traced.
    pub(crate) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    pub(crate) fn keep(&self, id: u128, info: TracingInfo) {
        let mut events = info.events;
        events.sort_by_key(|event| event.source_elapsed);
        let text = |ip: IpAddr| ip.to_string();
        let trace = Trace {
            coordinator: info.coordinator.map(text),
            duration_us: info.duration,
            events: events
                .into_iter()
                .map(|event| TraceEvent {
                    node: event.source.map(text),
                    at_us: event.source_elapsed,
                    what: event.activity,
                })
                .collect(),
        };
        let mut kept = self.kept.lock();
        if kept.len() == KEPT_COUNT {
            kept.pop_front();
        }
        kept.push_back((id, trace));
    }

    pub(crate) fn get(&self, id: u128) -> Option<Trace> {
        let kept = self.kept.lock();
        kept.iter().find(|(kept, _)| *kept == id).map(|(_, trace)| trace.clone())
    }
}

#[cfg(test)]
mod tests;
