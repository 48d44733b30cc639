//! A request as the routes see it.

use super::response::Reply;
use http::{Method, Uri};
use hyper::body::{Body as _, Incoming};

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
        Exchange { method, uri, body, reply: Reply::new(version, headers, expects_continue) }
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.uri.query()
    }
}
