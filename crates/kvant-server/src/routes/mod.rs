//! The paths, what may be done with each, and on which listener.

use crate::answer::Exchange;
use crate::service::{Call, Step};
use http::Method;

mod admin;
mod document;
mod entities;
pub(crate) mod entity;
mod events;
mod health;
mod metrics;
mod openapi;
#[cfg(feature = "profiler")]
mod profile;
mod slow;
mod stats;
pub(crate) mod status;

/// A known path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Status,
    Entity,
    Entities,
    Health,
    Metrics,
    Stats,
    Slow,
    Events,
    Flush,
    Compact,
    Checkpoint,
    Profile,
    OpenApi,
}

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Entities and the operator API.
    Both,
    /// Entities.
    Data,
    /// The operator API.
    Operator,
}

impl Plane {
    #[inline]
    pub(crate) fn serves(self, route: Route) -> bool {
        match self {
            Plane::Both => true,
            Plane::Data => matches!(route, Route::Status | Route::Entity | Route::Entities),
            Plane::Operator => !matches!(route, Route::Entity | Route::Entities),
        }
    }
}

impl Route {
    pub(crate) const ALL: [Route; 13] = [
        Route::Status,
        Route::Entity,
        Route::Entities,
        Route::Health,
        Route::Metrics,
        Route::Stats,
        Route::Slow,
        Route::Events,
        Route::Flush,
        Route::Compact,
        Route::Checkpoint,
        Route::Profile,
        Route::OpenApi,
    ];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Route::Status => "/v0/status",
            Route::Entity => "/v0/entity",
            Route::Entities => "/v0/entities",
            Route::Health => "/health",
            Route::Metrics => "/metrics",
            Route::Stats => "/v0/stats",
            Route::Slow => "/v0/slow",
            Route::Events => "/v0/events",
            Route::Flush => "/v0/admin/flush",
            Route::Compact => "/v0/admin/compact",
            Route::Checkpoint => "/v0/admin/checkpoint",
            Route::Profile => "/v0/profile",
            Route::OpenApi => "/openapi.json",
        }
    }

    /// The route of a path.
    #[inline]
    pub(crate) fn of(path: &str) -> Option<Route> {
        Route::ALL.into_iter().find(|route| route.path() == path)
    }

    /// The methods that it takes, as the `Allow` header lists them.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Route::Entity => "GET, HEAD, PUT, DELETE",
            route if route.is_operation() => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether it is something to do, not something to look at.
    fn is_operation(self) -> bool {
        matches!(self, Route::Flush | Route::Compact | Route::Checkpoint | Route::Profile)
    }

    #[inline]
    pub(crate) fn allows(self, method: &Method) -> bool {
        match *method {
            Method::GET | Method::HEAD => !self.is_operation(),
            Method::PUT | Method::DELETE => self == Route::Entity,
            Method::POST => self.is_operation(),
            _ => false,
        }
    }

    /// Whether a request's body means something here.
    pub(crate) fn takes_body(self, method: &Method) -> bool {
        self == Route::Checkpoint || self == Route::Entity && *method == Method::PUT
    }
}

/// Starts the work of a request whose method is allowed.
#[inline]
pub(crate) fn start(route: Route, call: &Call, exchange: Exchange) -> Step {
    match route {
        Route::Status => status::start(call, exchange),
        Route::Entity => entity::start(call, exchange),
        Route::Entities => entities::start(call, exchange),
        Route::Health => health::start(call, exchange),
        Route::Metrics => metrics::start(call, exchange),
        Route::Stats => stats::start(call, exchange),
        Route::Slow => slow::start(call, exchange),
        Route::Events => events::start(call, exchange),
        Route::Flush | Route::Compact | Route::Checkpoint => admin::start(route, call, exchange),
        #[cfg(feature = "profiler")]
        Route::Profile => profile::start(call, exchange),
        #[cfg(not(feature = "profiler"))]
        Route::Profile => Step::answer(no_profiler().answer(&mut { exchange }.reply)),
        Route::OpenApi => openapi::start(exchange),
    }
}

#[cfg(not(feature = "profiler"))]
fn no_profiler() -> crate::problem::Problem {
    crate::problem::Problem::new(
        http::StatusCode::NOT_IMPLEMENTED,
        "no-profiler",
        "No profiler",
        "this Kvant was built without its profiler (cargo feature `profiler`)",
    )
}

#[cfg(test)]
mod tests;
