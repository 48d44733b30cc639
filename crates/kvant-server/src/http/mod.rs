//! HTTP: heads, queries, routes, problems, and the encodings of responses. Knows neither
//! connections nor storage.
//!
//! - [`head`], [`site`]: what is rejected before any route runs;
//! - [`route`]: paths, methods, listeners, operations;
//! - [`plain_request`], [`known_request`]: the parser of the fast path, and what it need not parse;
//! - [`query`]: parameters of a target;
//! - [`request`], [`response`]: a request as the routes see it, and the means to respond;
//! - [`problem`]: errors as `application/problem+json`;
//! - [`record_format`], [`metrics_text`]: the encodings of ranges and of `/metrics`.

pub(crate) mod head;
pub(crate) mod known_request;
pub(crate) mod metrics_text;
pub(crate) mod plain_request;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod record_format;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod site;

pub(crate) use problem::Problem;
pub(crate) use request::{Exchange, Reply};
pub(crate) use response::{Body, Response};
pub(crate) use route::{Operation, Plane, Route};
