//! What a selector counts. `/metrics` and `/v0/stats` add the selectors up.
//!
//! Threads: each counter is written by one selector only, so counting is a load and a store, not a
//! locked instruction; any thread may read. `connections` is the exception: the acceptor counts up,
//! the selector down.

use crate::routes::Route;
use http::{Method, StatusCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Rows of the request counters: the routes, then whatever is no route.
pub(crate) const ROUTE_ROWS: usize = Route::ALL.len() + 1;
/// Columns of the request counters, as they are labelled.
pub(crate) const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "DELETE", "POST", "other"];
/// Status classes 2xx to 5xx.
pub(crate) const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The counters of one selector.
#[derive(Default)]
pub(crate) struct Counters {
    /// Connections that are open or on their way to this selector.
    pub(crate) connections: AtomicUsize,
    /// Connections taken since the start.
    pub(crate) accepted: AtomicU64,
    /// Times that accepting had to wait for a connection to close.
    pub(crate) accept_waits: AtomicU64,
    /// Connections closed because they were open without a request for too long.
    pub(crate) idle_closed: AtomicU64,
    /// Requests whose head did not come in time.
    pub(crate) head_timeouts: AtomicU64,
    /// Requests whose body did not come in time.
    pub(crate) body_timeouts: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    /// Readers that took nothing for too long.
    pub(crate) readers_cut: AtomicU64,
    /// Ranges whose body broke off because of an error.
    pub(crate) ranges_aborted: AtomicU64,
    /// Peers that had not closed their side when the server stopped waiting for it.
    pub(crate) lingers_timed_out: AtomicU64,
    /// Submissions to the store, and the writes in them.
    pub(crate) batches: AtomicU64,
    pub(crate) batched_writes: AtomicU64,
    /// Times that writes had to wait for a stall, and writes refused because it lasted too long.
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_out: AtomicU64,
    /// Requests refused because their body or value found no memory in time.
    pub(crate) memory_refusals: AtomicU64,
    requests: [[[AtomicU64; CLASSES.len()]; METHODS.len()]; ROUTE_ROWS],
}

/// Adds to a counter that only the calling thread writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Counters {
    /// Counts an answered request.
    #[inline]
    pub(crate) fn request(&self, route: Option<Route>, method: Column, status: StatusCode) {
        let row = route.map_or(ROUTE_ROWS - 1, |route| route as usize);
        let class = usize::from(status.as_u16() / 100).clamp(2, 5) - 2;
        add(&self.requests[row][method.0][class], 1);
    }

    pub(crate) fn linger_timed_out(&self) {
        add(&self.lingers_timed_out, 1);
    }

    /// Requests answered, by row of [`Route::ALL`] (then the rest), column of [`METHODS`] and of
    /// [`CLASSES`].
    pub(crate) fn requests(&self, row: usize, method: usize, class: usize) -> u64 {
        self.requests[row][method][class].load(Ordering::Relaxed)
    }
}

/// A method's column in the request counters.
#[derive(Clone, Copy)]
pub(crate) struct Column(usize);

impl From<&Method> for Column {
    fn from(method: &Method) -> Column {
        Column(match *method {
            Method::GET => 0,
            Method::HEAD => 1,
            Method::PUT => 2,
            Method::DELETE => 3,
            Method::POST => 4,
            _ => 5,
        })
    }
}
