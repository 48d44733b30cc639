//! A request as the routes see it, and the means to respond to it.

use super::response::{Body, JSON, Response};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri, Version};
use hyper::body::{Body as _, Incoming};
use std::mem;

/// One request, and the means to respond to it.
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// `None` when the body is empty.
    pub(crate) body: Option<Incoming>,
    pub(crate) reply: Reply,
}

impl Exchange {
    pub(crate) fn new(request: http::Request<Incoming>, expects_continue: bool) -> Exchange {
        let (parts, body) = request.into_parts();
        let http::request::Parts { method, uri, version, headers, .. } = parts;
        let body = (!body.is_end_stream()).then_some(body);
        Exchange { method, uri, body, reply: Reply { version, headers, expects_continue } }
    }
}

/// The parts of a request that a response depends on.
#[derive(Default)]
pub(crate) struct Reply {
    version: Version,
    headers: HeaderMap,
    expects_continue: bool,
}

impl Reply {
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The request's headers; empty after the first response was built.
    pub(crate) fn request_headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether the client waits for `100 Continue` before it sends its body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    pub(crate) fn mark_continue_sent(&mut self) {
        self.expects_continue = false;
    }

    /// Builds a response. The request's header map becomes the response's, and hyper reuses it for
    /// the next request: a connection allocates one map.
    #[inline]
    pub(crate) fn respond(
        &mut self,
        status: StatusCode,
        content_type: Option<&HeaderValue>,
        body: Body,
    ) -> Response {
        let mut headers = mem::take(&mut self.headers);
        headers.clear();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    pub(crate) fn json(&mut self, document: &serde_json::Value) -> Response {
        self.respond(StatusCode::OK, Some(&JSON), Body::full(document.to_string()))
    }
}
