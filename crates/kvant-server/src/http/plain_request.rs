//! The parser of plain requests: exactly one request, received in one piece, without headers that
//! change its meaning.
//!
//! Invariant: hyper and [`super::head::check`] accept every plain request and understand it alike.
//! Doubtful requests are not plain. Hyper uses the same parser of lines and headers, with the same
//! settings.

use super::query::split_once;
use super::site::SEC_FETCH_SITE;
use http::Method;

/// A plain request is shorter than this. The bytes of a longer one that a connection holds for
/// hyper are counted with the connection.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 16;
/// Headers that change how a message is read, responded to or ended, or that a web page causes.
/// `Host` and `Content-Length` are parsed.
const NOT_PLAIN: [&str; 10] = [
    "expect",
    "http2-settings",
    "keep-alive",
    "origin",
    "proxy-connection",
    SEC_FETCH_SITE,
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlainRequest<'a> {
    /// `GET`, `PUT` or `DELETE`.
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) host: &'a [u8],
    /// Only `PUT` has one.
    pub(crate) body: &'a [u8],
}

impl<'a> PlainRequest<'a> {
    /// The plain request that was received; `None` if it is not plain.
    pub(crate) fn parse(received: &'a [u8]) -> Option<PlainRequest<'a>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let head_bytes = match request.parse(received) {
            Ok(httparse::Status::Complete(head_bytes)) if request.version == Some(1) => head_bytes,
            _ => return None,
        };
        let method = match request.method? {
            "GET" => Method::GET,
            "PUT" => Method::PUT,
            "DELETE" => Method::DELETE,
            _ => return None,
        };
        let mut host = None;
        let mut body_bytes = None;
        for header in request.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("host") {
                if host.replace(header.value).is_some() {
                    return None;
                }
            } else if is("content-length") {
                if body_bytes.replace(length(header.value)?).is_some() {
                    return None;
                }
            } else if NOT_PLAIN.into_iter().any(is)
                || is("connection") && !header.value.eq_ignore_ascii_case(b"keep-alive")
            {
                return None;
            }
        }
        let body = &received[head_bytes..];
        let host = host?;
        if body.len() != body_bytes.unwrap_or(0) {
            return None;
        }
        if (method == Method::PUT) != body_bytes.is_some() {
            return None;
        }
        let target = request.path?;
        if !target.starts_with('/') || !target.bytes().all(is_plain) {
            return None;
        }
        let (path, query) = match split_once(target, b'?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        Some(PlainRequest { method, path, query, host, body })
    }
}

/// A length of digits only; long ones are not plain.
fn length(value: &[u8]) -> Option<usize> {
    if !(1..=6).contains(&value.len()) {
        return None;
    }
    value.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| 10 * sum + usize::from(digit - b'0'))
    })
}

/// Whether a target of a plain request may have this byte.
#[inline]
pub(super) fn is_plain(byte: u8) -> bool {
    PLAIN_BYTES[usize::from(byte)]
}

/// The bytes of a target that stand for themselves (RFC 3986, 2 and 3.4).
const PLAIN_BYTES: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~%=&+/?:@!$'()*,;";
    let mut at = 0;
    while at < others.len() {
        plain[others[at] as usize] = true;
        at += 1;
    }
    plain
};

#[cfg(test)]
mod tests;
