//! `GET`, `HEAD`, `PUT` and `DELETE /v0/entity?id=K`: one record. The fast path serves most of
//! these requests; this is the decoding for the others.

use crate::admission::Class;
use crate::conn::request_body::{self, BodyMax};
use crate::conn::{Call, RequestStep};
use crate::http::query::{self, EntityQuery};
use crate::http::{Exchange, Problem, Reply, Response};
use crate::store::{Backend, Capability};
use crate::timing::KeyStart;
use crate::work::{EntityOutcome, EntityWork, entity};
use bytes::Bytes;
use http::Method;
use hyper::body::Incoming;

pub(super) fn start(call: &Call, exchange: Exchange) -> RequestStep {
    let (query, store) = match admit(call, &exchange) {
        Ok(admitted) => admitted,
        Err(problem) => {
            return request_body::refuse(&call.cx.config, exchange.body, exchange.reply, problem);
        }
    };
    let Exchange { method, body, mut reply, .. } = exchange;
    let (storage, now_ns) = (&call.cx.storage, call.cx.meter.now_ns());
    let work = match (method, body) {
        (Method::PUT, Some(body)) => {
            return RequestStep::later(put(call.clone(), reply, store, query, body));
        }
        (Method::PUT, None) => entity::put(storage, &store, query, Bytes::new(), now_ns),
        (Method::DELETE, _) => entity::delete(storage, &store, query, now_ns),
        _ => entity::get(storage, &store, query, None, now_ns),
    };
    match work {
        EntityWork::Done(outcome, done) => {
            call.socket.update_trace(|trace| trace.set_storage(&done));
            RequestStep::ready(call.respond(outcome, &mut reply))
        }
        work => RequestStep::later(finish(call.clone(), reply, work)),
    }
}

/// Checks a request before its body is read.
fn admit(call: &Call, exchange: &Exchange) -> Result<(EntityQuery, Backend), Problem> {
    let query = query::entity(exchange.uri.query(), exchange.method == Method::PUT)?;
    call.socket.update_trace(|trace| trace.key = KeyStart::of(&query.key));
    let store = call.cx.storage.lifecycle.ready()?;
    query.check_replicas(store.replica_count())?;
    if query.ttl_ms.is_some() && !store.has(Capability::Ttl) {
        return Err(Problem::not_supported(store.name(), "time to live (`ttl`)"));
    }
    call.admit(match exchange.method {
        Method::PUT | Method::DELETE => Class::Write,
        _ => Class::Read,
    })?;
    Ok((query, store.clone()))
}

async fn put(
    call: Call,
    mut reply: Reply,
    store: Backend,
    query: EntityQuery,
    body: Incoming,
) -> Response {
    let max = BodyMax { bytes: call.cx.config.value_bytes_max, problem: Problem::value_too_long };
    match request_body::read(&call, &mut reply, body, max).await {
        Ok(value) => {
            let now_ns = call.cx.meter.now_ns();
            let work = entity::put(&call.cx.storage, &store, query, value.bytes.clone(), now_ns);
            // The value keeps its memory until the write is done.
            finish(call, reply, work).await
        }
        Err(problem) => problem.respond(&mut reply),
    }
}

async fn finish(call: Call, mut reply: Reply, work: EntityWork) -> Response {
    let (outcome, done): (EntityOutcome, _) = work.await;
    call.socket.update_trace(|trace| trace.set_storage(&done));
    call.respond(outcome, &mut reply)
}
