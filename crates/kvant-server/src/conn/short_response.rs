//! Responses with a complete body, encoded for the fast path as bytes and for hyper as a response:
//! both have the same status, headers and body.

use crate::http::problem::{NOT_FOUND, PROBLEM_JSON};
use crate::http::response::{JSON, OCTETS, status_document};
use crate::http::{Body, Problem, Reply, Response};
use crate::memory::Held;
use crate::work::{EntityOutcome, Failure};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderValue};
use std::time::{Duration, UNIX_EPOCH};

pub(super) enum ShortResponse {
    /// With a body that is always the same.
    Fixed(StatusCode, Option<&'static HeaderValue>, &'static [u8]),
    /// A value, with the memory that it holds until it was sent.
    Value(Bytes, Option<Held>),
    Problem(Problem),
}

impl ShortResponse {
    pub(super) fn status_ready() -> ShortResponse {
        ShortResponse::Fixed(StatusCode::OK, Some(&JSON), status_document(true))
    }

    #[inline]
    pub(super) fn of(
        outcome: EntityOutcome,
        explain: impl FnOnce(&Failure) -> Problem,
    ) -> ShortResponse {
        match outcome {
            EntityOutcome::Value(value, held) => ShortResponse::Value(value, held),
            EntityOutcome::Absent => {
                ShortResponse::Fixed(StatusCode::NOT_FOUND, Some(&PROBLEM_JSON), NOT_FOUND)
            }
            EntityOutcome::Stored => ShortResponse::Fixed(StatusCode::CREATED, None, b""),
            EntityOutcome::Deleted => ShortResponse::Fixed(StatusCode::ACCEPTED, None, b""),
            EntityOutcome::Failed(failure) => ShortResponse::Problem(explain(&failure)),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            ShortResponse::Fixed(status, ..) => *status,
            ShortResponse::Value(..) => StatusCode::OK,
            ShortResponse::Problem(problem) => problem.status,
        }
    }

    pub(super) fn into_response(self, reply: &mut Reply) -> Response {
        match self {
            ShortResponse::Fixed(status, content_type, body) => {
                reply.respond(status, content_type, Body::full(body))
            }
            ShortResponse::Value(value, held) => {
                let body = match held {
                    Some(held) => Body::reserved(value, held),
                    None => Body::full(value),
                };
                reply.respond(StatusCode::OK, Some(&OCTETS), body)
            }
            ShortResponse::Problem(problem) => problem.respond(reply),
        }
    }

    /// Appends the head to `out`, in hyper's order and spelling, and returns the body and the
    /// memory that it holds. `closes`: it is the last response of the connection.
    pub(super) fn write_head(
        self,
        out: &mut Vec<u8>,
        date: &[u8],
        closes: bool,
    ) -> (Bytes, Option<Held>) {
        let status = self.status();
        for part in [
            b"HTTP/1.1 ",
            status.as_str().as_bytes(),
            b" ",
            status.canonical_reason().unwrap_or_default().as_bytes(),
            b"\r\n",
        ] {
            out.extend_from_slice(part);
        }
        let mut header = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        };
        let (body, held) = match self {
            ShortResponse::Fixed(_, content_type, body) => {
                if let Some(content_type) = content_type {
                    header(CONTENT_TYPE.as_str(), content_type.as_bytes());
                }
                (Bytes::from_static(body), None)
            }
            ShortResponse::Value(value, held) => {
                header(CONTENT_TYPE.as_str(), OCTETS.as_bytes());
                (value, held)
            }
            ShortResponse::Problem(problem) => {
                let (headers, body) = problem.encode();
                for (name, value) in &headers {
                    header(name.as_str(), value.as_bytes());
                }
                (body, None)
            }
        };
        if closes {
            header(CONNECTION.as_str(), b"close");
        }
        header(CONTENT_LENGTH.as_str(), itoa::Buffer::new().format(body.len()).as_bytes());
        header(DATE.as_str(), date);
        out.extend_from_slice(b"\r\n");
        (body, held)
    }
}

/// The value of the `Date` header, formatted once a second.
#[derive(Default)]
pub(super) struct DateText {
    second: u64,
    text: String,
}

impl DateText {
    pub(super) fn at(&mut self, wall_ms: u64) -> &[u8] {
        let second = wall_ms / 1000;
        if self.text.is_empty() || self.second != second {
            self.second = second;
            self.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
        self.text.as_bytes()
    }
}
