//! Rejects heads before any route sees them, beyond what hyper's parser rejects.
//!
//! Hyper responds to these with an empty body and closes: differing or non-digit `Content-Length`,
//! a bare CR, obs-fold, a space before a colon, a last transfer coding that is not `chunked`, a
//! target over 65,534 bytes, more than 100 headers. This module checks `Host`, transfer codings
//! before `chunked`, and the exact size of the head.

use super::Problem;
use http::header::{EXPECT, HOST, HeaderMap, TRANSFER_ENCODING};
use http::{Uri, Version};

/// Target, header names and header values, together.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// Checks a head; returns whether the client waits for `100 Continue` before it sends its body.
pub(crate) fn check(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<bool, Problem> {
    let mut head_bytes = target_bytes(uri);
    let mut host_count = 0;
    let mut coding_count = 0;
    let mut expects_continue = false;
    for (name, value) in headers {
        head_bytes += name.as_str().len() + value.len();
        if *name == HOST {
            host_count += 1;
        } else if *name == TRANSFER_ENCODING {
            // Coding names ignore case (RFC 9112, 7). A proxy could read anything but this one word
            // differently.
            if !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(Problem::bad_head(
                    "the only transfer coding accepted is exactly `chunked`",
                ));
            }
            coding_count += 1;
        } else if *name == EXPECT {
            expects_continue = value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        }
    }
    if head_bytes > HEAD_BYTES_MAX {
        return Err(Problem::head_too_large());
    }
    if coding_count > 1 {
        return Err(Problem::bad_head("Transfer-Encoding is given more than once"));
    }
    if version == Version::HTTP_11 && host_count != 1 {
        return Err(Problem::bad_head("an HTTP/1.1 request has exactly one Host header"));
    }
    Ok(expects_continue && version == Version::HTTP_11)
}

/// Length of the request target as sent, without a fragment, which hyper removes.
fn target_bytes(uri: &Uri) -> usize {
    let scheme = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    scheme + authority + uri.path_and_query().map_or(0, |target| target.as_str().len())
}
