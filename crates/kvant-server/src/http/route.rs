//! The paths, the methods that each allows, the listeners that serve it, and the operation that a
//! request counts as.

use http::Method;
use kvant_base::named_enum;
use kvant_base::tag::Activity;

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Route {
        Status = "/v0/status",
        Entity = "/v0/entity",
        Entities = "/v0/entities",
        Health = "/health",
        Metrics = "/metrics",
        Stats = "/v0/stats",
        Slow = "/v0/slow",
        History = "/v0/history",
        Events = "/v0/events",
        Flush = "/v0/admin/flush",
        Compact = "/v0/admin/compact",
        Checkpoint = "/v0/admin/checkpoint",
        Pause = "/v0/admin/pause",
        WhatIf = "/v0/admin/what-if",
        Profile = "/v0/profile",
        OpenApi = "/openapi.json",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Entities and the operator API.
    Both,
    Data,
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
    /// The allowed methods, as the `Allow` header lists them.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Route::Entity => "GET, HEAD, PUT, DELETE",
            route if route.is_action() => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether a request changes or starts something on the server, instead of reading it.
    fn is_action(self) -> bool {
        matches!(
            self,
            Route::Flush
                | Route::Compact
                | Route::Checkpoint
                | Route::Pause
                | Route::WhatIf
                | Route::Profile
        )
    }

    #[inline]
    pub(crate) fn allows(self, method: &Method) -> bool {
        match *method {
            Method::GET | Method::HEAD => !self.is_action(),
            Method::PUT | Method::DELETE => self == Route::Entity,
            Method::POST => self.is_action(),
            _ => false,
        }
    }

    pub(crate) fn takes_body(self, method: &Method) -> bool {
        self == Route::Checkpoint || self == Route::Entity && *method == Method::PUT
    }
}

named_enum! {
    /// What a request counts as in latency histograms and profiles.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Operation {
        Status = "status",
        Get = "get",
        Put = "put",
        Delete = "delete",
        Range = "range",
        /// Operator requests, and requests rejected before a route.
        #[default]
        Other = "other",
        /// Entity and range requests with the response `503`: quick refusals must not improve the
        /// latency of the others.
        Refused = "refused",
    }
}

impl Operation {
    #[inline]
    pub(crate) fn of(route: Route, method: &Method) -> Operation {
        match (route, method) {
            (Route::Status, _) => Operation::Status,
            (Route::Entity, &Method::PUT) => Operation::Put,
            (Route::Entity, &Method::DELETE) => Operation::Delete,
            (Route::Entity, _) => Operation::Get,
            (Route::Entities, _) => Operation::Range,
            _ => Operation::Other,
        }
    }

    /// The activity under which profiles show the work.
    #[inline]
    pub(crate) fn activity(self) -> Activity {
        match self {
            Operation::Status => Activity::Status,
            Operation::Get => Activity::Get,
            Operation::Put => Activity::Put,
            Operation::Delete => Activity::Delete,
            Operation::Range => Activity::Range,
            Operation::Other => Activity::Operator,
            Operation::Refused => Activity::None,
        }
    }
}
