//! Errors as responses: `application/problem+json` (RFC 9457).
//!
//! `type` is a stable token (a relative reference) that `docs/http.md` lists; `detail` says what
//! the caller can do.

use super::request::Reply;
use super::response::{Body, Response};
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{StatusCode, Version};
use kvant_base::{Error, ErrorKind};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

pub(crate) static PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The encoded problem of an absent key. Encoding it each time would make a miss cost more than a
/// hit.
pub(crate) const NOT_FOUND: &[u8] =
    br#"{"type":"not-found","title":"No such entity","status":404,"detail":"the key is absent, was deleted, or has expired"}"#;

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    retry_after_s: Option<u32>,
    allow: Option<&'static str>,
    closes: bool,
    members: Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem {
            status,
            kind,
            title,
            detail: detail.into(),
            retry_after_s: None,
            allow: None,
            closes: false,
            members: Map::new(),
        }
    }

    /// A request that may succeed a second later.
    pub(crate) fn unavailable(
        kind: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, kind, title, detail).retry_after(1)
    }

    pub(crate) fn internal(
        kind: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, kind, title, detail)
    }

    /// A request that is wrong in itself.
    pub(crate) fn bad_request(kind: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, kind, "Bad request", detail)
    }

    /// A head that could be read in two ways: the connection ends with the response.
    pub(crate) fn bad_head(detail: &'static str) -> Problem {
        Problem::bad_request("malformed-request", detail).closing()
    }

    pub(crate) fn unknown_path() -> Problem {
        Problem::bad_request("unknown-path", "no such path here; /openapi.json lists them all")
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Problem {
        let (status, detail) = (StatusCode::METHOD_NOT_ALLOWED, format!("use one of: {allow}"));
        let problem = Problem::new(status, "method-not-allowed", "Method not allowed", detail);
        Problem { allow: Some(allow), ..problem }
    }

    pub(crate) fn key_too_long() -> Problem {
        let detail =
            format!("keys have at most {} bytes after decoding", kvant_base::limits::KEY_BYTES_MAX);
        Problem::new(StatusCode::URI_TOO_LONG, "key-too-long", "Key too long", detail)
    }

    pub(crate) fn value_too_long(value_bytes_max: u64) -> Problem {
        let detail = format!(
            "values have at most {value_bytes_max} bytes here; --value-bytes-max changes the limit"
        );
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "value-too-long", "Value too long", detail)
    }

    /// A body that is no value.
    pub(crate) fn body_too_long(bytes_max: u64) -> Problem {
        let detail = format!("the body of this request has at most {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "value-too-long", "Body too long", detail)
    }

    pub(crate) fn head_too_large() -> Problem {
        let detail = "the target, header names and header values have at most 65536 bytes together";
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Problem::new(status, "head-too-large", "Request head too large", detail).closing()
    }

    pub(crate) fn recovering(per_cent: u64) -> Problem {
        let detail = format!(
            "the store is being recovered, {per_cent} per cent are done; /health shows when it is ready"
        );
        Problem::unavailable("recovering", "Recovery not finished", detail)
            .with("recovery_per_cent", per_cent)
    }

    /// `reason`: what writes wait for, in one word.
    pub(crate) fn stalled(reason: &str) -> Problem {
        let detail = "nothing was written: what writes wait for is behind, and this one waited too long; retry";
        Problem::unavailable("stalled", "Write stalled", detail).with("reason", reason)
    }

    pub(crate) fn no_memory() -> Problem {
        let detail = "nothing was done: no memory for the request within the longest wait; retry, or raise --memory";
        Problem::unavailable("no-memory", "No memory for the request", detail)
    }

    /// A request that needs something that the engine does not have.
    pub(crate) fn not_supported(engine: &str, capability: &str) -> Problem {
        let detail = format!(
            "nothing was done: the engine `{engine}` has no {capability}; start the server with another --engine"
        );
        let title = "Not supported by this engine";
        Problem::new(StatusCode::NOT_IMPLEMENTED, "not-supported", title, detail)
    }

    pub(crate) fn request_timeout() -> Problem {
        let detail = "nothing was written: the rest of the body did not arrive in time";
        let (status, title) = (StatusCode::REQUEST_TIMEOUT, "Request body too slow");
        Problem::new(status, "request-timeout", title, detail).closing()
    }

    /// The store's first cause for refusing writes.
    pub(crate) fn fenced(cause: &Error) -> Problem {
        let detail = format!(
            "the disk failed in a way that leaves unknown what it holds, so no write is accepted until a restart; reads go on: \
             {cause}"
        );
        Problem::internal("fenced", "Writes are fenced", detail)
    }

    pub(crate) fn writes_failing(cause: &Error) -> Problem {
        let detail =
            format!("the last writes failed, later ones may succeed; reads go on: {cause}");
        Problem::unavailable("writes-failing", "Writes fail", detail)
    }

    /// `cause`: why no node of the cluster answers.
    pub(crate) fn away(cause: &Error) -> Problem {
        let detail = format!("nothing was done: the cluster cannot be reached: {cause}");
        Problem::unavailable("cluster-away", "Cluster cannot be reached", detail)
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Problem {
        self.status = status;
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.members.insert(name.to_string(), value.into());
        self
    }

    /// Tells the client to wait this long before it retries.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    pub(crate) fn closing(mut self) -> Problem {
        self.closes = true;
        self
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closes
    }

    pub(crate) fn respond(self, reply: &mut Reply) -> Response {
        let (status, closes, version) = (self.status, self.closes, reply.version());
        let (headers, body) = self.encode();
        let mut response = reply.respond(status, None, Body::full(body));
        response.headers_mut().extend(headers);
        if closes {
            close(&mut response, version);
        }
        response
    }

    /// The headers and the body, of a problem that does not end the connection.
    pub(crate) fn encode(self) -> (HeaderMap, Bytes) {
        let mut object = json!({
            "type": self.kind,
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if let Value::Object(map) = &mut object {
            map.extend(self.members);
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, PROBLEM_JSON.clone());
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        (headers, Bytes::from(object.to_string()))
    }
}

/// Marks a response as the last one of its connection.
pub(crate) fn close(response: &mut Response, version: Version) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    if version == Version::HTTP_10 {
        // Hyper would add `keep-alive` to a 1.1 response for a 1.0 client that requests it.
        *response.version_mut() = Version::HTTP_10;
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Problem {
        match error.kind() {
            ErrorKind::Invalid => Problem::bad_request("invalid", error.message().to_string()),
            ErrorKind::Corruption => Problem::internal(
                "corruption",
                "Stored data is damaged",
                "a block needed for this request fails its checksum; other keys stay readable; the log names file and \
                 offset, and `kvant db verify` finds all damage",
            ),
            ErrorKind::NoSpace => Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "no-space",
                "Disk full",
                "nothing was written: the disk is full; reads go on, and deletes while the space kept for them lasts; puts will \
                 when space has returned",
            ),
            ErrorKind::OutcomeUnknown => {
                let detail = "the disk failed: this write may or may not be there after a restart";
                Problem::internal(
                    "outcome-unknown",
                    "Outcome unknown",
                    format!("{detail}: {error}"),
                )
            }
            ErrorKind::Fenced => Problem::fenced(error),
            ErrorKind::Stalled => Problem::stalled(error.message()),
            ErrorKind::TooFewReplicas { required, received } => Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "not-enough-replicas",
                "Not enough replicas",
                error.message().to_string(),
            )
            .with("required", required)
            .with("received", received),
            ErrorKind::NoAnswer => Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "no-answer",
                "No answer of the cluster",
                error.message().to_string(),
            ),
            ErrorKind::Away => Problem::away(error),
            ErrorKind::Closed => {
                let detail = "nothing was done: the store is closed; retry when the server is back";
                Problem::unavailable("stopping", "Server stopping", detail)
            }
            _ => {
                let refused = format!(
                    "the operating system, or the cluster, refused an operation: {}; the log has \
                     the details",
                    error.message()
                );
                Problem::internal("io", "Storage failed", refused)
            }
        }
    }
}
