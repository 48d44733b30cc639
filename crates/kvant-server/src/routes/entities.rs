//! `GET /v0/entities?start=K[&end=K][&limit=N]`: records in key order.

use super::entity::failed;
use crate::answer::{Body, Exchange, Reply, Response};
use crate::memory::Held;
use crate::problem;
use crate::query::{self, RangeQuery};
use crate::range::{Format, RANGE_BYTES, RangeBody};
use crate::request_body::no_memory;
use crate::service::{Call, Step};
use crate::stores::{Records, Store};
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode, Version};
use kvant_base::Result;
use std::sync::Arc;

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    let shared = &call.selector.shared;
    let query = query::range(exchange.query());
    let ready = query.and_then(|query| Ok((query, shared.lifecycle.ready()?)));
    let Exchange {
        method, mut reply, ..
    } = exchange;
    let (query, store) = match ready {
        Ok(ready) => ready,
        Err(problem) => return Step::answer(problem.answer(&mut reply)),
    };
    let format = Format::accepted(reply.request_headers().get_all(ACCEPT));
    if method == Method::HEAD {
        return Step::answer(head(&mut reply, format, Body::empty()));
    }
    match shared.memory.try_hold(RANGE_BYTES) {
        Some(held) => Step::answer(open(call, &**store, &mut reply, &query, format, held)),
        None => Step::slow(open_later(call.clone(), Arc::clone(store), reply, query, format)),
    }
}

async fn open_later(
    call: Call,
    store: Arc<dyn Store>,
    mut reply: Reply,
    query: RangeQuery,
    format: Format,
) -> Response {
    let shared = &call.selector.shared;
    match shared
        .memory
        .hold(RANGE_BYTES, shared.config.queue_wait_max)
        .await
    {
        Some(held) => open(&call, &*store, &mut reply, &query, format, held),
        None => no_memory(&call.selector).answer(&mut reply),
    }
}

fn open(
    call: &Call,
    store: &dyn Store,
    reply: &mut Reply,
    query: &RangeQuery,
    format: Format,
    held: Held,
) -> Response {
    let until_close = reply.version() == Version::HTTP_10;
    let end = query.end.as_deref();
    let records = match end {
        Some(end) if *end <= *query.start => Ok(Box::new(NoRecords) as Box<dyn Records>),
        end => call.selector.shared.dispatch.range(store, &query.start, end),
    };
    let body =
        records.and_then(|records| RangeBody::open(records, format, query.limit, held, call, until_close));
    match body {
        Ok(body) => head(reply, format, Body::range(body)),
        Err(error) => failed(&call.selector, &error).answer(reply),
    }
}

fn head(reply: &mut Reply, format: Format, body: Body) -> Response {
    let media_type = HeaderValue::from_static(format.media_type());
    let version = reply.version();
    let mut response = reply.answer(StatusCode::OK, Some(&media_type), body);
    if version == Version::HTTP_10 {
        problem::close(&mut response, version);
    }
    response
}

/// A range without records.
struct NoRecords;

impl Records for NoRecords {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(None)
    }
}
