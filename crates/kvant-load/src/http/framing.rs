//! The limits of a response, and why input is not one.

/// Longest head (status line and headers), and longest sum of chunk extensions and trailers, in
/// bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
pub(crate) const HEADERS_MAX: usize = 128;
/// Longest body that a [`Collector`](super::Collector) keeps, in bytes. Skipped bodies may have any
/// length.
pub(crate) const BODY_COLLECTED_BYTES_MAX: usize = 64 << 20;

/// Why input is not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// Not a status line and headers.
    Head(httparse::Error),
    /// A status below 100.
    Status,
    /// A head longer than [`HEAD_BYTES_MAX`].
    HeadTooBig,
    /// `Content-Length` that is not a number, contradicts another one, or accompanies
    /// `Transfer-Encoding`.
    Length,
    /// `Transfer-Encoding` of an HTTP/1.0 server.
    TransferEncoding,
    /// Malformed chunks, or extensions and trailers longer than [`HEAD_BYTES_MAX`].
    Chunk,
    /// 101 without an `Upgrade` in the request.
    Switched,
    /// A body longer than [`BODY_COLLECTED_BYTES_MAX`] that a script observes.
    BodyTooBig,
    /// The connection ended within a response.
    Truncated,
}

pub(super) fn prefix(bytes: &[u8], bytes_max: u64) -> &[u8] {
    &bytes[..bytes_max.min(bytes.len() as u64) as usize]
}
