//! Responses with a complete body, encoded for the fast path as bytes and for hyper as a response:
//! both have the same status, headers and body.

use crate::http::problem::{NOT_FOUND, PROBLEM_JSON};
use crate::http::response::{JSON, OCTETS, status_document};
use crate::http::{Body, Problem, Reply, Response};
use crate::memory::Held;
use crate::work::{EntityOutcome, Failure};
use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use kvant_env::Clock;
use std::time::{Duration, UNIX_EPOCH};

/// What a head that does not close the connection starts with: status and type of a value.
const VALUE_START: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n";
/// More than the head of a value takes.
const HEAD_ROOM_BYTES: usize = 256;

/// A response that is always the same.
pub(super) struct FixedResponse {
    status: StatusCode,
    content_type: Option<&'static HeaderValue>,
    /// Both of them, as a head starts.
    start: &'static str,
    body: &'static [u8],
}

static STATUS_READY: FixedResponse = FixedResponse {
    status: StatusCode::OK,
    content_type: Some(&JSON),
    start: "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
    body: status_document(true),
};
static ABSENT: FixedResponse = FixedResponse {
    status: StatusCode::NOT_FOUND,
    content_type: Some(&PROBLEM_JSON),
    start: "HTTP/1.1 404 Not Found\r\ncontent-type: application/problem+json\r\n",
    body: NOT_FOUND,
};
static STORED: FixedResponse = FixedResponse {
    status: StatusCode::CREATED,
    content_type: None,
    start: "HTTP/1.1 201 Created\r\n",
    body: b"",
};
static DELETED: FixedResponse = FixedResponse {
    status: StatusCode::ACCEPTED,
    content_type: None,
    start: "HTTP/1.1 202 Accepted\r\n",
    body: b"",
};

pub(super) enum ShortResponse {
    Fixed(&'static FixedResponse),
    /// A value, with the memory that it holds until it was sent.
    Value(Bytes, Option<Held>),
    /// A value of the fast path, in the response buffer behind [`make_head_room`].
    Appended,
    Problem(Problem),
}

impl ShortResponse {
    pub(super) fn status_ready() -> ShortResponse {
        ShortResponse::Fixed(&STATUS_READY)
    }

    #[inline]
    pub(super) fn of(
        outcome: EntityOutcome,
        explain: impl FnOnce(&Failure) -> Problem,
    ) -> ShortResponse {
        match outcome {
            EntityOutcome::Value(value, held) => ShortResponse::Value(value, held),
            EntityOutcome::Appended => ShortResponse::Appended,
            EntityOutcome::Absent => ShortResponse::Fixed(&ABSENT),
            EntityOutcome::Stored => ShortResponse::Fixed(&STORED),
            EntityOutcome::Deleted => ShortResponse::Fixed(&DELETED),
            EntityOutcome::Failed(failure) => ShortResponse::Problem(explain(&failure)),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            ShortResponse::Fixed(fixed) => fixed.status,
            ShortResponse::Value(..) | ShortResponse::Appended => StatusCode::OK,
            ShortResponse::Problem(problem) => problem.status,
        }
    }

    pub(super) fn into_response(self, reply: &mut Reply) -> Response {
        match self {
            ShortResponse::Fixed(fixed) => {
                reply.respond(fixed.status, fixed.content_type, Body::full(fixed.body))
            }
            ShortResponse::Value(value, held) => {
                let body = match held {
                    Some(held) => Body::reserved(value, held),
                    None => Body::full(value),
                };
                reply.respond(StatusCode::OK, Some(&OCTETS), body)
            }
            ShortResponse::Appended => unreachable!("only the fast path gives its buffer"),
            ShortResponse::Problem(problem) => problem.respond(reply),
        }
    }

    /// Writes the head into `out`, in hyper's order and spelling. Returns where it starts, what
    /// follows the contents of `out`, and the memory that this holds. `date_end`: the end of the
    /// head, from [`DateText`]. `closes`: it is the last response of the connection.
    pub(super) fn write_head(
        self,
        out: &mut Vec<u8>,
        date_end: &[u8],
        closes: bool,
    ) -> (usize, Bytes, Option<Held>) {
        if !matches!(self, ShortResponse::Appended) {
            out.clear();
        }
        let (body, held) = match self {
            ShortResponse::Fixed(fixed) => {
                out.extend_from_slice(fixed.start.as_bytes());
                (Bytes::from_static(fixed.body), None)
            }
            ShortResponse::Value(value, held) => {
                out.extend_from_slice(VALUE_START);
                (value, held)
            }
            ShortResponse::Appended => {
                let value_end = out.len();
                out.extend_from_slice(VALUE_START);
                write_head_end(out, value_end - HEAD_ROOM_BYTES, date_end, closes);
                let start = HEAD_ROOM_BYTES - (out.len() - value_end);
                out.copy_within(value_end.., start);
                out.truncate(value_end);
                return (start, Bytes::new(), None);
            }
            ShortResponse::Problem(problem) => (write_problem_start(problem, out), None),
        };
        write_head_end(out, body.len(), date_end, closes);
        (0, body, held)
    }
}

/// Prepares the response buffer for a value, which is appended before the length of its head is
/// known.
#[inline]
pub(super) fn make_head_room(buffer: &mut Vec<u8>) {
    if buffer.len() < HEAD_ROOM_BYTES {
        buffer.resize(HEAD_ROOM_BYTES, 0);
    } else {
        buffer.truncate(HEAD_ROOM_BYTES);
    }
}

#[inline]
fn write_head_end(out: &mut Vec<u8>, body_bytes: usize, date_end: &[u8], closes: bool) {
    if closes {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body_bytes).as_bytes());
    out.extend_from_slice(date_end);
}

/// Appends the status and the headers of a problem, and returns its body.
#[cold]
fn write_problem_start(problem: Problem, out: &mut Vec<u8>) -> Bytes {
    // With the reason, as in a status line.
    let status = problem.status.to_string();
    let (headers, body) = problem.encode();
    let mut line = |parts: [&[u8]; 3]| {
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(b"\r\n");
    };
    line([b"HTTP/1.1", b" ", status.as_bytes()]);
    for (name, value) in &headers {
        line([name.as_str().as_bytes(), b": ", value.as_bytes()]);
    }
    body
}

/// The `Date` header as the end of a head, formatted once a second.
#[derive(Default)]
pub(super) struct DateText {
    /// By the monotonic clock. A wall clock that is set is read then, too.
    valid_until_ns: u64,
    text: String,
}

impl DateText {
    /// The end of the line before, the `Date` header and the blank line, at `now_ns` of the
    /// monotonic clock.
    #[inline]
    pub(super) fn at(&mut self, now_ns: u64, clock: &dyn Clock) -> &[u8] {
        if now_ns >= self.valid_until_ns {
            self.read_clock(now_ns, clock);
        }
        self.text.as_bytes()
    }

    #[cold]
    fn read_clock(&mut self, now_ns: u64, clock: &dyn Clock) {
        let wall_ms = clock.wall_ms();
        self.valid_until_ns = now_ns + (1000 - wall_ms % 1000) * 1_000_000;
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(wall_ms / 1000));
        self.text = format!("\r\ndate: {date}\r\n\r\n");
    }
}
