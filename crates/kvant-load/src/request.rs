//! Builds the bytes of requests.
//!
//! What does not change from request to request (the headers) is put together once, as a
//! [`HeaderBlock`]; the functions that append to a buffer allocate nothing when the buffer has
//! room.
//!
//! Threads: plain data; a block may be shared.

#[cfg(test)]
mod tests;

use crate::target::Target;
use kvant_base::{Error, Result};

/// The headers of all requests to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBlock {
    /// Lines with their ends.
    bytes: Vec<u8>,
    /// Whether the lines say how long the body is.
    says_length: bool,
}

impl HeaderBlock {
    /// `Host` of the target unless `headers` has one, then `headers` in their order.
    ///
    /// # Errors
    /// `Invalid` when a name or value would break the request.
    pub fn new(target: &Target, headers: &[(String, String)]) -> Result<HeaderBlock> {
        let mut bytes = Vec::new();
        let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !has("host") {
            append_header(&mut bytes, "Host", &target.authority);
        }
        for (name, value) in headers {
            check_header(name, value)?;
            append_header(&mut bytes, name, value);
        }
        let says_length = has("content-length") || has("transfer-encoding");
        Ok(HeaderBlock { bytes, says_length })
    }

    /// The lines, each with its end, without the empty line after them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends a request. A body gets its `Content-Length` unless the headers say how long it is.
///
/// `method` and `path` go out as they are: check those that users give with [`check_method`]; a
/// [`Target`]'s path is checked.
pub fn append_request(
    out: &mut Vec<u8>,
    method: &str,
    path: &str,
    headers: &HeaderBlock,
    body: Option<&[u8]>,
) {
    append_request_with(out, method, headers, body, |out| out.extend_from_slice(path.as_bytes()));
}

/// As [`append_request`], with a path that `append_path` appends, such as one with a key in it.
pub fn append_request_with(
    out: &mut Vec<u8>,
    method: &str,
    headers: &HeaderBlock,
    body: Option<&[u8]>,
    append_path: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    append_path(out);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    out.extend_from_slice(&headers.bytes);
    if let (Some(body), false) = (body, headers.says_length) {
        out.extend_from_slice(b"Content-Length: ");
        append_decimal(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
}

/// Appends bytes as part of a query's name or value, or of a path's segment: percent-encoded but
/// for the unreserved characters of RFC 3986.
pub fn append_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
    }
}

/// Appends a number in decimal digits.
pub fn append_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Whether a request may have this method.
///
/// # Errors
/// `Invalid` when it is no token (RFC 9110, section 5.6.2).
pub fn check_method(method: &str) -> Result<()> {
    if is_token(method) {
        Ok(())
    } else {
        Err(Error::invalid(format!("`{}` is no method", method.escape_debug())))
    }
}

/// Whether a request may have this header.
///
/// # Errors
/// `Invalid` when the name is no token, or the value has bytes that end a line.
pub fn check_header(name: &str, value: &str) -> Result<()> {
    if !is_token(name) {
        return Err(Error::invalid(format!("`{}` is no name of a header", name.escape_debug())));
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(Error::invalid(format!(
            "the header {name} has a line break or a zero byte in its value"
        )));
    }
    Ok(())
}

fn append_header(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
