//! Builds the bytes of requests.
//!
//! The headers, which are the same in all requests, are built once as a [`HeaderBlock`]. Functions
//! that append to a buffer allocate nothing if the buffer has room.

#[cfg(test)]
mod tests;

use crate::target::Target;
use kvant_base::{Error, Result};

/// The headers of requests to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBlock {
    /// Lines, each with its end.
    bytes: Vec<u8>,
    /// Whether they include the length of the body.
    has_length: bool,
}

impl HeaderBlock {
    /// `Host` of the target, unless `headers` has one, and then `headers`.
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
        let has_length = has("content-length") || has("transfer-encoding");
        Ok(HeaderBlock { bytes, has_length })
    }

    /// The lines, each with its end, without the empty line at the end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends a request. A body gets a `Content-Length` unless the headers have its length.
///
/// `method` and `path` are not checked: use [`check_method`]; the path of a [`Target`] is valid.
pub fn append_request(
    out: &mut Vec<u8>,
    method: &str,
    path: &str,
    headers: &HeaderBlock,
    body: Option<&[u8]>,
) {
    for part in [method, " ", path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(&headers.bytes);
    if let (Some(body), false) = (body, headers.has_length) {
        out.extend_from_slice(b"Content-Length: ");
        append_decimal(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
}

/// Appends a number in decimal digits.
pub fn append_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Checks that a method is a token (RFC 9110, section 5.6.2).
pub fn check_method(method: &str) -> Result<()> {
    if is_token(method) {
        Ok(())
    } else {
        Err(Error::invalid(format!("`{}` is no method", method.escape_debug())))
    }
}

/// Checks that the name is a token, and that no byte of the value ends a line.
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
