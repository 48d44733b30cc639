//! The commonest requests, answered without hyper: status, and entities with short values.
//!
//! A connection begins here and goes over to hyper with the first request that is not plain ([`PlainRequest`]) or whose answer is
//! not: long values, problems of the request, other routes. Such a request has changed nothing yet: hyper reads it from its first byte, and
//! takes over the long value that was read for it. The connection comes back when it rests.
//!
//! Why there are two ways is in `docs/decisions/0005-plain-requests-without-hyper.md`.
//!
//! Invariants:
//! 1. An answer is, byte for byte, what hyper would have sent.
//! 2. A request that was begun here is answered here.
//! 3. Between receiving and parsing no other connection runs: the bytes are in the selector's buffer.

use crate::answer::{JSON, OCTETS, Reply, Response};
use crate::batcher::Written;
use crate::counters::Column;
use crate::io::Socket;
use crate::key::Key;
use crate::memory::SMALL_BYTES;
use crate::plain_request::{PlainRequest, REQUEST_BYTES_MAX};
use crate::problem::{NOT_FOUND, PROBLEM_JSON};
use crate::query;
use crate::routes::entity::{self, VALUE_BYTES_UNCOUNTED};
use crate::routes::{Plane, Route, status};
use crate::selector::Selector;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{Method, StatusCode};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

/// How serving without hyper came to its end.
pub(crate) enum End {
    /// By the peer.
    Closed,
    /// Hyper is to go on. What was read for its first request is with it: reading is all that such a request has done.
    HandedOver(Option<Found>),
}

/// A key and its value.
pub(crate) type Found = (Key, Bytes);

/// What became of what was received.
enum Beginning {
    Begun(Begun),
    /// Hyper has to answer.
    Left(Option<Found>),
}

/// A request that was begun.
struct Begun {
    route: Route,
    column: Column,
    step: Step,
}

enum Step {
    Answer(Answer),
    /// Wait for the batch with this write, then answer with this status.
    Write(Written, StatusCode),
}

/// An answer that is at hand.
enum Answer {
    Plain(StatusCode, Option<&'static http::HeaderValue>, Bytes),
    Problem(Response),
}

/// Serves plain requests until another comes, the peer closes, or the server stops.
pub(crate) async fn serve(selector: &Selector, plane: Plane, socket: &mut Socket) -> io::Result<End> {
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
        let begun = begin(selector, plane, &selector.scratch.borrow()[..received_bytes]);
        let Begun { route, column, step } = match begun {
            Beginning::Begun(begun) => begun,
            Beginning::Left(found) => {
                socket.hand_over(received_bytes);
                return Ok(End::HandedOver(found));
            }
        };
        socket.activity().request_begins();
        let answer = match step {
            Step::Answer(answer) => answer,
            Step::Write(written, status) => match written.await {
                Ok(()) => Answer::Plain(status, None, Bytes::new()),
                Err(error) => problem(selector, &error),
            },
        };
        selector.counters.request(Some(route), column, answer.status());
        let mut to_send = Some(answer);
        poll_fn(|cx| {
            if let Some(answer) = to_send.take() {
                let mut bytes = selector.answer_bytes.borrow_mut();
                bytes.clear();
                answer.write(selector, &mut bytes);
                socket.send(cx, &bytes)?;
            }
            socket.poll_backlog(cx)
        })
        .await?;
        socket.activity().request_ends();
    }
}

/// Begins what was received, unless hyper has to.
fn begin(selector: &Selector, plane: Plane, received: &[u8]) -> Beginning {
    let mut found = None;
    match try_begin(selector, plane, received, &mut found) {
        Some(begun) => Beginning::Begun(begun),
        None => Beginning::Left(found),
    }
}

/// `None` when hyper has to; then `found` is what was read for it.
#[inline]
fn try_begin(selector: &Selector, plane: Plane, received: &[u8], found: &mut Option<Found>) -> Option<Begun> {
    let request = PlainRequest::parse(received)?;
    let route = Route::of(request.path).filter(|route| plane.serves(*route))?;
    let store = selector.shared.lifecycle.store()?;
    let column = Column::from(&request.method);
    let plain = |status, content_type, body| Step::Answer(Answer::Plain(status, content_type, body));
    let step = match route {
        Route::Status if request.method == Method::GET => {
            plain(StatusCode::OK, Some(&JSON), Bytes::from_static(status::READY))
        }
        Route::Entity => {
            let query = query::entity(request.query, request.method == Method::PUT).ok()?;
            match request.method {
                Method::GET => match selector.shared.dispatch.get(&**store, &query.key) {
                    Ok(Some(value)) if value.len() > VALUE_BYTES_UNCOUNTED => {
                        *found = Some((query.key, value));
                        return None;
                    }
                    Ok(Some(value)) => plain(StatusCode::OK, Some(&OCTETS), value),
                    Ok(None) => plain(
                        StatusCode::NOT_FOUND,
                        Some(&PROBLEM_JSON),
                        Bytes::from_static(NOT_FOUND),
                    ),
                    Err(error) => Step::Answer(problem(selector, &error)),
                },
                Method::PUT => {
                    let value_bytes_max = selector.shared.config.value_bytes_max.min(SMALL_BYTES);
                    if request.body.len() as u64 > value_bytes_max {
                        return None;
                    }
                    let value = Bytes::copy_from_slice(request.body);
                    let written = selector.batcher.write(query.key, Some(value), query.ttl_ms);
                    Step::Write(written, StatusCode::CREATED)
                }
                _ => Step::Write(
                    selector.batcher.write(query.key, None, None),
                    StatusCode::ACCEPTED,
                ),
            }
        }
        _ => return None,
    };
    Some(Begun { route, column, step })
}

#[cold]
fn problem(selector: &Selector, error: &kvant_base::Error) -> Answer {
    Answer::Problem(entity::failed(selector, error).answer(&mut Reply::default()))
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Answer::Plain(status, ..) => *status,
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
        let mut digits = [0; 20];
        header(CONTENT_LENGTH.as_str(), decimal(body.len(), &mut digits));
        header(
            DATE.as_str(),
            selector.date.borrow_mut().at(selector.shared.env.clock.wall_ms()),
        );
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
}

/// The decimal digits of `number`, put at the end of `digits`.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
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
