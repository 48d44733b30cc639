//! Plain requests that differ from an earlier one in key and body alone: these are not parsed.
//!
//! A client sends the same head with each request, but for the key. The selector keeps what stood
//! before and after the key in the last request of each method. A request with the same bytes
//! there, and an unencoded key in between, has the same meaning for its own key.
//!
//! Invariants:
//! 1. What [`KnownRequests::find`] returns is what the parsers would return.
//! 2. A kept head has passed every check of the fast path that does not depend on the key, the
//!    body, the listener or the state of the server.
//!
//! Threads: belongs to one selector.

use super::Route;
use super::plain_request::{PlainRequest, is_plain};
use super::query::EntityQuery;
use crate::key::Key;
use http::Method;
use kvant_base::limits::KEY_BYTES_MAX;

/// Longer heads are parsed each time.
const HEAD_BYTES_MAX: usize = 1 << 10;

/// A request that the fast path serves.
#[derive(Debug)]
pub(crate) struct FastRequest {
    pub(crate) method: Method,
    pub(crate) route: Route,
    /// `None` for the status.
    pub(crate) query: Option<EntityQuery>,
    pub(crate) body_bytes: usize,
}

/// The last heads.
#[derive(Default)]
pub(crate) struct KnownRequests {
    get: Option<KnownHead>,
    put: Option<KnownHead>,
    delete: Option<KnownHead>,
    /// All of a request for the status.
    status: Vec<u8>,
}

#[derive(Default)]
struct KnownHead {
    before_key: Vec<u8>,
    after_key: Vec<u8>,
    body_bytes: usize,
}

impl KnownRequests {
    /// The request that was received, if its head is known.
    #[inline]
    pub(crate) fn find(&self, received: &[u8]) -> Option<FastRequest> {
        let (method, head) = match received.first()? {
            b'G' => (Method::GET, &self.get),
            b'P' => (Method::PUT, &self.put),
            b'D' => (Method::DELETE, &self.delete),
            _ => return None,
        };
        if let Some(head) = head
            && let Some(key) = head.key_in(received)
        {
            let key = Key::from(key);
            let query = Some(EntityQuery { key, ttl_ms: None, replicas: None, is_traced: false });
            return Some(FastRequest {
                method,
                route: Route::Entity,
                query,
                body_bytes: head.body_bytes,
            });
        }
        (received == self.status).then_some(FastRequest {
            method,
            route: Route::Status,
            query: None,
            body_bytes: 0,
        })
    }

    /// Keeps the head of `request`, which was parsed from `received` and which the fast path
    /// serves at `route`.
    pub(crate) fn keep(&mut self, received: &[u8], request: &PlainRequest<'_>, route: Route) {
        let head_bytes = received.len() - request.body.len();
        if head_bytes > HEAD_BYTES_MAX {
            return;
        }
        if route == Route::Status {
            self.status = received.to_vec();
            return;
        }
        let key = request.query.and_then(|query| query.strip_prefix("id="));
        let Some(key) = key.filter(|key| is_key(key.as_bytes())) else {
            return;
        };
        let key_at = key.as_ptr().addr() - received.as_ptr().addr();
        let known = match request.method {
            Method::GET => &mut self.get,
            Method::PUT => &mut self.put,
            _ => &mut self.delete,
        };
        let known = known.get_or_insert_default();
        known.before_key.clear();
        known.before_key.extend_from_slice(&received[..key_at]);
        known.after_key.clear();
        known.after_key.extend_from_slice(&received[key_at + key.len()..head_bytes]);
        known.body_bytes = request.body.len();
    }
}

impl KnownHead {
    /// The key of a request with this head.
    #[inline]
    fn key_in<'a>(&self, received: &'a [u8]) -> Option<&'a [u8]> {
        let head = &received[..received.len().checked_sub(self.body_bytes)?];
        let key = head.strip_prefix(&*self.before_key)?.strip_suffix(&*self.after_key)?;
        is_key(key).then_some(key)
    }
}

/// Whether these bytes of a query are a whole key, each byte of which stands for itself.
#[inline]
fn is_key(bytes: &[u8]) -> bool {
    let is_literal = |byte: u8| is_plain(byte) && byte != b'%' && byte != b'&';
    (1..=KEY_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(|&byte| is_literal(byte))
}

#[cfg(test)]
mod tests;
