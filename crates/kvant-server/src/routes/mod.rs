//! The routes, one file each, and what they show of the whole server.

mod admin;
mod document;
mod entities;
mod entity;
mod event_stream;
mod events;
mod health;
mod metrics;
mod openapi;
#[cfg(feature = "profiler")]
mod profile;
mod range_body;
mod report;
mod slow;
mod stats;
mod status;

pub(crate) use event_stream::Bell;

use crate::admission::Refusals;
use crate::conn::{Call, Handler, Step};
use crate::counters::Counters;
use crate::http::{Exchange, Route};
use crate::memory::RequestMemory;
use crate::timing::Timings;
use crate::work::Lifecycle;
use crate::work::pool::Pool;
use kvant_base::{Events, Log};
use kvant_env::Env;
use std::path::PathBuf;
use std::sync::Arc;

/// The whole server, as the routes see it.
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
    pub(crate) started_ns: u64,
    pub(crate) connections_max: usize,
    /// Directory of the checkpoints.
    pub(crate) checkpoints: PathBuf,
}

/// All routes.
pub(crate) struct Routes(pub(crate) Arc<ServerState>);

impl Handler for Routes {
    fn start(&self, route: Route, call: &Call, exchange: Exchange) -> Step {
        let server = &self.0;
        match route {
            Route::Status => status::start(call, exchange),
            Route::Entity => entity::start(call, exchange),
            Route::Entities => entities::start(call, exchange),
            Route::Health => health::start(call, exchange),
            Route::Metrics => metrics::start(server, exchange),
            Route::Stats => stats::start(server, exchange),
            Route::Slow => slow::start(server, exchange),
            Route::Events => events::start(server, call, exchange),
            Route::Flush | Route::Compact | Route::Checkpoint => {
                admin::start(route, server, call, exchange)
            }
            #[cfg(feature = "profiler")]
            Route::Profile => profile::start(server, call, exchange),
            #[cfg(not(feature = "profiler"))]
            Route::Profile => Step::ready(no_profiler().respond(&mut { exchange }.reply)),
            Route::OpenApi => openapi::start(exchange),
        }
    }
}

#[cfg(not(feature = "profiler"))]
fn no_profiler() -> crate::http::Problem {
    crate::http::Problem::new(
        http::StatusCode::NOT_IMPLEMENTED,
        "no-profiler",
        "No profiler",
        "this Kvant was built without its profiler (cargo feature `profiler`)",
    )
}

#[cfg(test)]
mod tests;
