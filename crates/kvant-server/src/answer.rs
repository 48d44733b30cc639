//! Requests and responses as the routes see them, and the bodies of responses.

use crate::event_stream::EventBody;
use crate::express::Found;
use crate::io::SocketState;
use crate::memory::Held;
use crate::range::RangeBody;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri, Version};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A response.
pub(crate) type Response = http::Response<Body>;

pub(crate) static JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) static OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// One request, and the means to answer it.
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// Unless it is empty.
    pub(crate) body: Option<Incoming>,
    /// What was read for it already.
    pub(crate) found: Option<Found>,
    pub(crate) reply: Reply,
}

/// What of a request is needed to answer it.
#[derive(Default)]
pub(crate) struct Reply {
    version: Version,
    headers: HeaderMap,
    expects_continue: bool,
}

impl Exchange {
    pub(crate) fn new(
        request: http::Request<Incoming>,
        expects_continue: bool,
        found: Option<Found>,
    ) -> Exchange {
        let (parts, body) = request.into_parts();
        let http::request::Parts { method, uri, version, headers, .. } = parts;
        let body = (!body.is_end_stream()).then_some(body);
        Exchange { method, uri, body, found, reply: Reply { version, headers, expects_continue } }
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.uri.query()
    }
}

impl Reply {
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The request's headers, until the first answer is made.
    pub(crate) fn request_headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether the client waits for `100 Continue` before it sends its body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The client has been told to send its body.
    pub(crate) fn continue_sent(&mut self) {
        self.expects_continue = false;
    }

    /// An answer. The request's header map becomes the response's: hyper takes that one back for
    /// the next request, so a connection goes on without allocating any.
    #[inline]
    pub(crate) fn answer(
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

    /// A JSON document.
    pub(crate) fn json(&mut self, document: &serde_json::Value) -> Response {
        self.answer(StatusCode::OK, Some(&JSON), Body::full(Bytes::from(document.to_string())))
    }
}

/// The body of a response.
pub(crate) struct Body {
    content: Content,
    /// Tells of the body's end when it is dropped.
    end: Option<End>,
}

enum Content {
    /// Known bytes, handed out at once.
    Full(Bytes),
    /// Records as they are read.
    Range(Box<RangeBody>),
    /// Events as they happen.
    Events(Box<EventBody>),
}

/// Hyper drops a body when it has all of it: what follows is the flush with which the answer
/// leaves.
struct End(Rc<SocketState>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.is_whole();
    }
}

impl From<Content> for Body {
    fn from(content: Content) -> Body {
        Body { content, end: None }
    }
}

impl Body {
    pub(crate) fn empty() -> Body {
        Body::full(Bytes::new())
    }

    pub(crate) fn full(bytes: Bytes) -> Body {
        Content::Full(bytes).into()
    }

    pub(crate) fn range(range: RangeBody) -> Body {
        Content::Range(Box::new(range)).into()
    }

    pub(crate) fn events(events: EventBody) -> Body {
        Content::Events(Box::new(events)).into()
    }

    /// The socket through which it leaves hears when hyper has all of it.
    pub(crate) fn tell_end_to(&mut self, socket: &Rc<SocketState>) {
        self.end = Some(End(Rc::clone(socket)));
    }

    /// All of it, where it is known.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Full(bytes) => Some(bytes),
            Content::Range(_) | Content::Events(_) => None,
        }
    }

    /// Bytes whose memory stays reserved until the last of them has left.
    pub(crate) fn reserved(bytes: Bytes, memory: Held) -> Body {
        Body::full(Bytes::from_owner(Reserved { bytes, _memory: memory }))
    }
}

struct Reserved {
    bytes: Bytes,
    _memory: Held,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = kvant_base::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kvant_base::Error>>> {
        match &mut self.get_mut().content {
            Content::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Content::Range(range) => range.poll_frame(cx),
            Content::Events(events) => events.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Full(bytes) => bytes.is_empty(),
            Content::Range(range) => range.is_finished(),
            Content::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Range(_) | Content::Events(_) => SizeHint::default(),
        }
    }
}
