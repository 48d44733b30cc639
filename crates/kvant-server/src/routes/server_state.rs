//! What the routes show of the whole server.

use super::bell::Bell;
use crate::admission::Refusals;
use crate::counters::Counters;
use crate::history::History;
use crate::memory::RequestMemory;
use crate::timing::Timings;
use crate::work::Lifecycle;
use crate::work::pool::Pool;
use kvant_base::{Events, Log};
use kvant_env::Env;
use std::sync::Arc;

pub(crate) struct ServerState {
    pub(crate) env: Env,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) memory: Arc<RequestMemory>,
    pub(crate) refusals: Arc<Refusals>,
    /// `None` with `--dispatch inline`.
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) events: Arc<Events>,
    pub(crate) event_bell: Arc<Bell>,
    /// One for each selector.
    pub(crate) counters: Vec<Arc<Counters>>,
    pub(crate) timings: Vec<Arc<Timings>>,
    /// `None` with `--history 0`.
    pub(crate) history: Option<Arc<History>>,
    pub(crate) started_ns: u64,
    pub(crate) connections_max: usize,
}
