//! `GET`, `HEAD`, `PUT` and `DELETE /v0/entity?id=K`: one record.

use crate::admission::Class;
use crate::answer::{Body, Exchange, OCTETS, Reply, Response};
use crate::batcher::Written;
use crate::dispatch::{self, Failure, Reading};
use crate::express::Found;
use crate::key::Key;
use crate::memory::SMALL_BYTES;
use crate::problem::{self, Problem};
use crate::query::{self, EntityQuery};
use crate::request_body::{self, Unread, broken_body, discard, no_memory, read_value};
use crate::selector::Selector;
use crate::service::{Call, Step};
use crate::stores::Store;
use crate::timing::KeyStart;
use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::{Body as _, Incoming};
use kvant_base::{Error, ErrorKind, Level};
use kvant_engine::Lookup;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Longer blocks are read from the disk only when memory has been reserved for them.
pub(crate) const BLOCK_BYTES_UNCOUNTED: u32 = 64 << 10;

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    let selector = &call.selector;
    let config = &selector.shared.config;
    let query = query::entity(exchange.query(), exchange.method == Method::PUT);
    if let Ok(query) = &query {
        call.socket.note(|trace| trace.key = KeyStart::of(&query.key));
    }
    let ready = query.and_then(|query| Ok((query, selector.shared.lifecycle.ready()?)));
    let Exchange { method, body, found, reply, .. } = exchange;
    let (query, store) = match ready {
        Ok(ready) => ready,
        Err(problem) => return request_body::refuse(config, body, reply, problem),
    };
    let class = match method {
        Method::PUT | Method::DELETE => Class::Write,
        _ => Class::Read,
    };
    // What was read already is as good as done.
    if found.is_none()
        && let Some(refusal) = dispatch::admit(call, class)
    {
        let problem = dispatch::explain(selector, &call.socket, &Failure::Refused(refusal));
        return request_body::refuse(config, body, reply, problem);
    }
    match method {
        Method::PUT => put(call, reply, body, query),
        Method::DELETE => Step::Write(
            reply,
            selector.batcher.write(query.key, None, None, selector.now_ns()),
            StatusCode::ACCEPTED,
        ),
        _ => get(call, store, reply, query.key, found),
    }
}

fn get(call: &Call, store: &Arc<dyn Store>, reply: Reply, key: Key, found: Option<Found>) -> Step {
    let selector = &call.selector;
    let reading = match found {
        Some((found_key, value)) if *found_key == *key => {
            return got(call, Arc::clone(store), reply, key, Ok(Lookup::Known(Some(value))));
        }
        _ => dispatch::get(selector, &**store, &key, BLOCK_BYTES_UNCOUNTED, selector.now_ns()),
    };
    let (call, store) = (call.clone(), Arc::clone(store));
    match reading {
        Reading::Done(read) => {
            call.socket.note(|trace| trace.storage(&read.work));
            got(&call, store, reply, key, read.result)
        }
        Reading::Later(later) => Step::slow(async move {
            let read = dispatch::read(&call.selector, &*store, later.await);
            call.socket.note(|trace| trace.storage(&read.work));
            let mut step = got(&call, store, reply, key, read.result);
            poll_fn(|cx| step.poll_response(cx, &call)).await
        }),
    }
}

/// The answer to a read.
fn got(
    call: &Call,
    store: Arc<dyn Store>,
    mut reply: Reply,
    key: Key,
    result: std::result::Result<Lookup, Failure>,
) -> Step {
    let value = match result {
        Ok(Lookup::Known(Some(value))) => value,
        Ok(Lookup::Known(None)) => return Step::answer(problem::not_found(&mut reply)),
        Ok(Lookup::NeedsDisk { block_bytes }) => {
            return Step::slow(get_later(call.clone(), store, reply, key, block_bytes.into()));
        }
        Err(failure) => {
            let problem = dispatch::explain(&call.selector, &call.socket, &failure);
            return Step::answer(problem.answer(&mut reply));
        }
    };
    let value_bytes = value.len() as u64;
    if value_bytes <= SMALL_BYTES {
        return Step::answer(reply.answer(StatusCode::OK, Some(&OCTETS), Body::full(value)));
    }
    match call.selector.shared.memory.try_hold(value_bytes) {
        Some(held) => {
            Step::answer(reply.answer(StatusCode::OK, Some(&OCTETS), Body::reserved(value, held)))
        }
        None => Step::slow(get_later(call.clone(), store, reply, key, value_bytes)),
    }
}

/// Reads a long value, or reads it again, when there is memory for its `bytes`.
async fn get_later(
    call: Call,
    store: Arc<dyn Store>,
    mut reply: Reply,
    key: Key,
    mut bytes: u64,
) -> Response {
    let selector = &call.selector;
    let shared = &selector.shared;
    loop {
        let Some(mut held) = shared.memory.hold(bytes, shared.config.queue_wait_max).await else {
            // Requests that came together are refused together: thousands of them would fill a turn
            // of the event loop.
            poll_fn(|cx| {
                let passes =
                    selector.turnstile.passes(selector.turn.number(), &call.socket, cx.waker());
                if passes { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            return no_memory(selector).answer(&mut reply);
        };
        let block_bytes_max = u32::try_from(bytes).unwrap_or(u32::MAX).max(BLOCK_BYTES_UNCOUNTED);
        let read = match dispatch::get(selector, &*store, &key, block_bytes_max, selector.now_ns())
        {
            Reading::Done(read) => read,
            Reading::Later(later) => dispatch::read(selector, &*store, later.await),
        };
        call.socket.note(|trace| trace.storage(&read.work));
        return match read.result {
            // It has been replaced by a longer one.
            Ok(Lookup::NeedsDisk { block_bytes }) => {
                bytes = block_bytes.into();
                continue;
            }
            Ok(Lookup::Known(Some(value))) => {
                held.resize(value.len() as u64);
                reply.answer(StatusCode::OK, Some(&OCTETS), Body::reserved(value, held))
            }
            Ok(Lookup::Known(None)) => problem::not_found(&mut reply),
            Err(failure) => dispatch::explain(selector, &call.socket, &failure).answer(&mut reply),
        };
    }
}

fn put(call: &Call, reply: Reply, body: Option<Incoming>, query: EntityQuery) -> Step {
    let EntityQuery { key, ttl_ms } = query;
    let selector = &call.selector;
    let Some(body) = body else {
        return Step::Write(
            reply,
            selector.batcher.write(key, Some(Bytes::new()), ttl_ms, selector.now_ns()),
            StatusCode::CREATED,
        );
    };
    let config = &selector.shared.config;
    match body.size_hint().exact() {
        Some(bytes) if bytes > config.value_bytes_max => request_body::refuse(
            config,
            Some(body),
            reply,
            Problem::value_too_long(config.value_bytes_max),
        ),
        Some(..=SMALL_BYTES) => Step::Put(Put(Some(PutParts { reply, body, key, ttl_ms }))),
        _ => Step::slow(put_slowly(call.clone(), PutParts { reply, body, key, ttl_ms }, None)),
    }
}

/// A short value that is on its way, mostly with its head, so in one piece. No timer runs for it:
/// the sweep looks after it.
pub(crate) struct Put(Option<PutParts>);

struct PutParts {
    reply: Reply,
    body: Incoming,
    key: Key,
    ttl_ms: Option<u64>,
}

impl Put {
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>, call: &Call) -> Poll<Step> {
        let parts = self.0.as_mut().expect("not polled after its end");
        let activity = &call.socket.activity;
        let frame = match Pin::new(&mut parts.body).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending if activity.body_is_due() => {
                let problem = request_body::timed_out(&call.selector);
                return Poll::Ready(Step::answer(problem.answer(&mut parts.reply)));
            }
            Poll::Pending => {
                activity.body_is_awaited();
                return Poll::Pending;
            }
        };
        activity.request_begins();
        let mut parts = self.0.take().expect("it was there just now");
        let data = match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Err(_)) => {
                return Poll::Ready(Step::answer(broken_body().answer(&mut parts.reply)));
            }
            Some(Ok(Err(_))) | None => Bytes::new(),
        };
        if !parts.body.is_end_stream() {
            return Poll::Ready(Step::slow(put_slowly(call.clone(), parts, Some(data))));
        }
        let selector = &call.selector;
        let writing =
            selector.batcher.write(parts.key, Some(data), parts.ttl_ms, selector.now_ns());
        Poll::Ready(Step::Write(parts.reply, writing, StatusCode::CREATED))
    }
}

/// Reads and writes a value that is long, of unknown length, or comes in pieces.
async fn put_slowly(call: Call, parts: PutParts, first: Option<Bytes>) -> Response {
    let selector = &call.selector;
    let PutParts { mut reply, mut body, key, ttl_ms } = parts;
    let config = &selector.shared.config;
    if first.is_some() {
        reply.continue_sent();
    }
    match read_value(selector, &mut reply, &mut body, first, config.value_bytes_max).await {
        Ok(value) => {
            let writing =
                selector.batcher.write(key, Some(value.bytes.clone()), ttl_ms, selector.now_ns());
            written(&call, &mut reply, StatusCode::CREATED, writing.await)
        }
        Err(Unread { problem, taken_bytes }) => {
            let can_go_on =
                !problem.is_closing() && discard(config, body, &reply, taken_bytes).await;
            let problem = if can_go_on { problem } else { problem.closing() };
            problem.answer(&mut reply)
        }
    }
}

/// The answer to a write with its outcome.
#[inline]
pub(crate) fn written(
    call: &Call,
    reply: &mut Reply,
    status: StatusCode,
    written: Written,
) -> Response {
    call.socket.note(|trace| trace.storage(&written.work));
    match written.result {
        Ok(()) => reply.answer(status, None, Body::empty()),
        Err(failure) => dispatch::explain(&call.selector, &call.socket, &failure).answer(reply),
    }
}

/// Explains an error of the store; what a person has to look at goes to the log, too.
#[cold]
pub(crate) fn failed(selector: &Selector, error: &Error) -> Problem {
    if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io | ErrorKind::OutcomeUnknown) {
        selector.shared.log.event(Level::Error, "request_failed", &[("error", error)]);
    }
    Problem::from(error)
}
