//! The routes, and what they show of the whole server.

mod admin;
mod bell;
mod document;
mod entities;
mod entity;
mod event_stream;
mod events;
mod health;
mod history;
mod pause;
#[cfg(feature = "profiler")]
mod profile;
mod range_body;
mod report;
mod server_state;
mod slow;
#[cfg(feature = "profiler")]
mod what_if;

pub(crate) use server_state::ServerState;

use crate::conn::{Call, Handler, RequestStep};
use crate::http::{Exchange, Route};
use std::sync::Arc;

pub(crate) struct Routes(pub(crate) Arc<ServerState>);

impl Handler for Routes {
    fn start(&self, route: Route, call: &Call, exchange: Exchange) -> RequestStep {
        let server = &self.0;
        match route {
            Route::Status => document::status(call, exchange),
            Route::Entity => entity::start(call, exchange),
            Route::Entities => entities::start(call, exchange),
            Route::Health => health::start(call, exchange),
            Route::Metrics => document::metrics(server, exchange),
            Route::Stats => document::stats(server, exchange),
            Route::Slow => slow::start(server, exchange),
            Route::History => history::start(server, call, exchange),
            Route::Events => events::start(server, call, exchange),
            Route::Flush | Route::Compact | Route::Checkpoint => {
                admin::start(route, call, exchange)
            }
            Route::Pause => pause::start(call, exchange),
            #[cfg(feature = "profiler")]
            Route::Profile => profile::start(server, call, exchange),
            #[cfg(feature = "profiler")]
            Route::WhatIf => what_if::start(server, exchange),
            #[cfg(not(feature = "profiler"))]
            Route::Profile | Route::WhatIf => {
                RequestStep::ready(no_profiler().respond(&mut { exchange }.reply))
            }
            Route::OpenApi => document::openapi(exchange),
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
