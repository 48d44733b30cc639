//! The commonest requests, answered without hyper: status, and entities with short values.
//!
//! A connection begins here and goes over to hyper with the first request that is not plain
//! ([`PlainRequest`]) or whose answer is not: long values, problems of the request, other routes.
//! Such a request has changed nothing yet: hyper reads it from its first byte, and takes over the
//! long value that was read for it. The connection comes back when it rests.
//!
//! Why there are two ways is in `docs/decisions/0005-plain-requests-without-hyper.md`.
//!
//! Invariants:
//! 1. An answer is, byte for byte, what hyper would have sent.
//! 2. A request that was begun here is answered here.
//! 3. Between receiving and parsing no other connection runs: the bytes are in the selector's
//!    buffer.

use crate::admission::Class;
use crate::answer::{JSON, OCTETS, Reply, Response};
use crate::batcher::{Writing, Written};
use crate::counters::Column;
use crate::dispatch::{self, Failure, Reading};
use crate::io::{Socket, SocketState};
use crate::key::Key;
use crate::memory::{Held, SMALL_BYTES};
use crate::plain_request::{PlainRequest, REQUEST_BYTES_MAX};
use crate::pool::Later;
use crate::problem::{NOT_FOUND, PROBLEM_JSON};
use crate::query;
use crate::routes::entity::BLOCK_BYTES_UNCOUNTED;
use crate::routes::{Plane, Route, status};
use crate::selector::Selector;
use crate::site;
use crate::timing::{KeyStart, Operation, Trace};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{Method, StatusCode};
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use kvant_base::tag::{self, Activity, Stage};
use kvant_engine::Lookup;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

/// How serving without hyper came to its end.
pub(crate) enum End {
    /// By the peer.
    Closed,
    /// Hyper is to go on. A value that was read for its first request is with it: reading is all
    /// that such a request has done.
    HandedOver(Option<Found>),
}

/// A key and its value.
pub(crate) type Found = (Key, Bytes);

/// A request that was begun.
struct Begun {
    route: Route,
    column: Column,
    step: Step,
    trace: Trace,
}

enum Step {
    Answer(Answer),
    /// Wait for a worker with this read.
    Read(Later, Asked),
    /// Wait for the batch with this write, then answer with this status.
    Write(Writing, StatusCode),
}

/// A read that a worker does, with what hyper needs should it have to answer.
struct Asked {
    key: Key,
    request: Vec<u8>,
}

/// An answer that is at hand.
enum Answer {
    Plain(StatusCode, Option<&'static http::HeaderValue>, Bytes),
    /// A value, and memory until it has left.
    Value(Bytes, Option<Held>),
    Problem(Response),
}

/// Serves plain requests until another comes, the peer closes, or the server stops.
pub(crate) async fn serve(
    selector: &Selector,
    plane: Plane,
    socket: &mut Socket,
) -> io::Result<End> {
    loop {
        let received = poll_fn(|cx| match selector.stopping.get() {
            true => Poll::Ready(Ok(None)),
            false => socket.poll_receive(REQUEST_BYTES_MAX, cx).map_ok(Some),
        });
        let received_bytes = match received.await? {
            None => return Ok(End::HandedOver(None)),
            Some(0) => return Ok(End::Closed),
            Some(count) => count,
        };
        let begun =
            begin(selector, plane, socket.state(), &selector.scratch.borrow()[..received_bytes]);
        let Begun { route, column, step, mut trace } = match begun {
            Ok(begun) => begun,
            // Hyper has to answer.
            Err(found) => {
                let request = selector.scratch.borrow()[..received_bytes].to_vec();
                socket.hand_over(request);
                return Ok(End::HandedOver(found));
            }
        };
        socket.state().activity.request_begins();
        let answer = match step {
            Step::Answer(answer) => answer,
            Step::Read(later, asked) => {
                let store = selector.shared.lifecycle.store().expect("it was there to be asked");
                let done = later.await;
                let tag = tag::enter_at(Activity::Get, Stage::Dispatch);
                let read = dispatch::read(selector, &**store, done);
                drop(tag);
                trace.storage(&read.work);
                match read_answer(selector, socket.state(), read.result) {
                    Ok(answer) => answer,
                    Err(value) => {
                        socket.hand_over(asked.request);
                        return Ok(End::HandedOver(value.map(|value| (asked.key, value))));
                    }
                }
            }
            Step::Write(writing, status) => {
                let Written { result, work } = writing.await;
                trace.storage(&work);
                match result {
                    Ok(()) => Answer::Plain(status, None, Bytes::new()),
                    Err(failure) => problem(selector, socket.state(), &failure),
                }
            }
        };
        trace.status = answer.status();
        selector.counters.request(Some(route), column, answer.status());
        let mut to_send = Some(answer);
        let mut _held = None;
        poll_fn(|cx| {
            let _tag = tag::enter_at(trace.operation.activity(), Stage::Respond);
            if let Some(answer) = to_send.take() {
                let mut bytes = selector.answer_bytes.borrow_mut();
                bytes.clear();
                answer.write(selector, &mut bytes);
                socket.send(cx, &bytes)?;
                // What is sent later is in the backlog: the value itself is not needed any more,
                // its memory is.
                if let Answer::Value(_, held) = answer {
                    _held = held;
                }
            }
            socket.poll_backlog(cx)
        })
        .await?;
        socket.state().activity.request_ends();
        socket.state().complete(&mut trace, selector.now_ns());
        selector.timings.record(&trace);
    }
}

/// Begins what was received, unless hyper has to; then the error is what was read for it.
fn begin(
    selector: &Selector,
    plane: Plane,
    state: &SocketState,
    received: &[u8],
) -> Result<Begun, Option<Found>> {
    let mut found = None;
    try_begin(selector, plane, state, received, &mut found).ok_or(found)
}

/// `None` when hyper has to; then `found` is what was read for it.
#[inline]
fn try_begin(
    selector: &Selector,
    plane: Plane,
    state: &SocketState,
    received: &[u8],
    found: &mut Option<Found>,
) -> Option<Begun> {
    let tag = tag::enter_at(Activity::None, Stage::Parse);
    let request = PlainRequest::parse(received)?;
    if !site::is_own_host(request.host, &selector.shared.config.allowed_hosts) {
        return None;
    }
    let route = Route::of(request.path).filter(|route| plane.serves(*route))?;
    let store = selector.shared.lifecycle.store()?;
    let column = Column::from(&request.method);
    let parsed_ns = selector.now_ns();
    let operation = Operation::of(route, &request.method);
    tag.is_for(operation.activity(), Stage::Dispatch);
    let mut trace = Trace::begin(operation, parsed_ns);
    trace.stamps.arrival_ns = state.take_arrived_ns();
    let step = match route {
        Route::Status if request.method == Method::GET => Step::Answer(Answer::Plain(
            StatusCode::OK,
            Some(&JSON),
            Bytes::from_static(status::READY),
        )),
        Route::Entity => {
            let query = query::entity(request.query, request.method == Method::PUT).ok()?;
            let value_bytes_max = selector.shared.config.value_bytes_max.min(SMALL_BYTES);
            if request.body.len() as u64 > value_bytes_max {
                return None;
            }
            trace.key = KeyStart::of(&query.key);
            let class = match request.method {
                Method::GET => Class::Read,
                _ => Class::Write,
            };
            let lag_ns = state.lag_ns(parsed_ns);
            if let Some(refusal) = selector.lag.admit(class, lag_ns, parsed_ns) {
                Step::Answer(problem(selector, state, &Failure::Refused(refusal)))
            } else if class == Class::Read {
                match dispatch::get(
                    selector,
                    &**store,
                    &query.key,
                    BLOCK_BYTES_UNCOUNTED,
                    parsed_ns,
                ) {
                    Reading::Done(read) => {
                        trace.storage(&read.work);
                        match read_answer(selector, state, read.result) {
                            Ok(answer) => Step::Answer(answer),
                            Err(value) => {
                                *found = value.map(|value| (query.key, value));
                                return None;
                            }
                        }
                    }
                    Reading::Later(later) => {
                        Step::Read(later, Asked { key: query.key, request: received.to_vec() })
                    }
                }
            } else {
                let (value, status) = match request.method {
                    Method::PUT => {
                        (Some(Bytes::copy_from_slice(request.body)), StatusCode::CREATED)
                    }
                    _ => (None, StatusCode::ACCEPTED),
                };
                let writing = selector.batcher.write(query.key, value, query.ttl_ms, parsed_ns);
                Step::Write(writing, status)
            }
        }
        _ => return None,
    };
    Some(Begun { route, column, step, trace })
}

/// The answer to a read. An error: hyper answers, with the value where that has been read. It is
/// long, or has to wait for memory.
#[inline]
fn read_answer(
    selector: &Selector,
    state: &SocketState,
    result: Result<Lookup, Failure>,
) -> Result<Answer, Option<Bytes>> {
    match result {
        Ok(Lookup::Known(Some(value))) if value.len() as u64 <= SMALL_BYTES => {
            Ok(Answer::Value(value, None))
        }
        Ok(Lookup::Known(Some(value))) => {
            let is_short = value.len() <= VALUE_BYTES_COPIED_MAX;
            let held = is_short.then(|| selector.shared.memory.try_hold(value.len() as u64));
            match held.flatten() {
                Some(held) => Ok(Answer::Value(value, Some(held))),
                None => Err(Some(value)),
            }
        }
        Ok(Lookup::NeedsDisk { .. }) => Err(None),
        Ok(Lookup::Known(None)) => Ok(Answer::Plain(
            StatusCode::NOT_FOUND,
            Some(&PROBLEM_JSON),
            Bytes::from_static(NOT_FOUND),
        )),
        Err(failure) => Ok(problem(selector, state, &failure)),
    }
}

#[cold]
fn problem(selector: &Selector, state: &SocketState, failure: &Failure) -> Answer {
    Answer::Problem(dispatch::explain(selector, state, failure).answer(&mut Reply::default()))
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Answer::Plain(status, ..) => *status,
            Answer::Value(..) => StatusCode::OK,
            Answer::Problem(response) => response.status(),
        }
    }

    /// Appends head and body, in hyper's order and spelling.
    fn write(&self, selector: &Selector, out: &mut Vec<u8>) {
        let status = self.status();
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        let mut header = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        };
        let body = match self {
            Answer::Plain(_, content_type, body) => {
                if let Some(content_type) = content_type {
                    header(CONTENT_TYPE.as_str(), content_type.as_bytes());
                }
                body
            }
            Answer::Value(value, _) => {
                header(CONTENT_TYPE.as_str(), OCTETS.as_bytes());
                value
            }
            Answer::Problem(response) => {
                for (name, value) in response.headers() {
                    header(name.as_str(), value.as_bytes());
                }
                response.body().bytes().expect("the body of a problem is at hand")
            }
        };
        if selector.stopping.get() {
            header(CONNECTION.as_str(), b"close");
        }
        let mut digits = itoa::Buffer::new();
        header(CONTENT_LENGTH.as_str(), digits.format(body.len()).as_bytes());
        header(DATE.as_str(), selector.date.borrow_mut().at(selector.shared.env.clock.wall_ms()));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
}

/// The `Date` header's value, made once a second.
#[derive(Default)]
pub(crate) struct DateText {
    second: u64,
    text: String,
}

impl DateText {
    pub(crate) fn at(&mut self, wall_ms: u64) -> &[u8] {
        let second = wall_ms / 1000;
        if self.text.is_empty() || self.second != second {
            self.second = second;
            self.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
        self.text.as_bytes()
    }
}
