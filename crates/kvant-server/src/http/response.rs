//! Responses: bodies and common values.

use crate::memory::Held;
use bytes::Bytes;
use http::header::HeaderValue;
use hyper::body::{Frame, SizeHint};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) type Response = http::Response<Body>;

pub(crate) static JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) static OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

pub(crate) const fn status_document(is_ready: bool) -> &'static [u8] {
    if is_ready { br#"{"status":"ready"}"# } else { br#"{"status":"recovering"}"# }
}

/// A body that is produced while it is sent.
pub(crate) trait BodyStream {
    /// The next frame; `None` at the end. After an error hyper breaks the response off.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<kvant_base::Result<Frame<Bytes>>>>;

    /// Whether the last frame was handed out.
    fn is_finished(&self) -> bool;
}

pub(crate) enum Body {
    Full(Bytes),
    Stream(Box<dyn BodyStream>),
}

impl Body {
    pub(crate) fn empty() -> Body {
        Body::Full(Bytes::new())
    }

    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        Body::Full(bytes.into())
    }

    pub(crate) fn stream(stream: impl BodyStream + 'static) -> Body {
        Body::Stream(Box::new(stream))
    }

    /// Bytes whose memory stays reserved until the last of them was sent.
    pub(crate) fn reserved(bytes: Bytes, memory: Held) -> Body {
        Body::Full(Bytes::from_owner(Reserved { bytes, _memory: memory }))
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
        match self.get_mut() {
            Body::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Body::Stream(stream) => stream.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.is_empty(),
            Body::Stream(stream) => stream.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}
