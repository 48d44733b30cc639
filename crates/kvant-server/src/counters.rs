//! The counters of a selector. `/metrics` and `/v0/stats` add the selectors up.
//!
//! Threads: each counter is written by one selector only, so counting is a load and a store, not a
//! locked instruction; any thread may read. `connections` is the exception: the acceptor adds, the
//! selector subtracts.

use crate::http::Route;
use http::{Method, StatusCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Rows of the request counters: the routes, then everything else.
pub(crate) const ROUTE_ROWS: usize = Route::ALL.len() + 1;
/// The labels of the columns of the request counters.
pub(crate) const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "DELETE", "POST", "other"];
/// Status classes 2xx to 5xx.
pub(crate) const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// A counter that one thread writes.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only one thread may call this.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one selector.
#[derive(Default)]
pub(crate) struct Counters {
    /// Connections that are open or on their way to this selector.
    pub(crate) connections: AtomicUsize,
    /// Connections taken since the start.
    pub(crate) accepted: Counter,
    /// Times that accepting waited for a connection to close.
    pub(crate) accept_waits: Counter,
    /// Connections closed because they had no request for too long.
    pub(crate) idle_closed: Counter,
    /// Requests whose head did not come in time.
    pub(crate) head_timeouts: Counter,
    /// Requests whose body did not come in time.
    pub(crate) body_timeouts: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    /// Readers that took nothing for too long.
    pub(crate) readers_cut: Counter,
    /// Ranges whose body broke off because of an error.
    pub(crate) ranges_aborted: Counter,
    /// Peers that had not closed their side when the server stopped waiting for it.
    pub(crate) lingers_timed_out: Counter,
    /// Submissions to the store, and the writes in them.
    pub(crate) batches: Counter,
    pub(crate) batched_writes: Counter,
    /// Times that writes had to wait for a stall, and writes refused because it lasted too long.
    pub(crate) stalls: Counter,
    pub(crate) stalled_out: Counter,
    /// Requests refused because their body or value found no memory in time.
    pub(crate) memory_refusals: Counter,
    requests: [[[Counter; CLASSES.len()]; METHODS.len()]; ROUTE_ROWS],
}

impl Counters {
    /// Counts a request that was responded to.
    #[inline]
    pub(crate) fn count_request(&self, route: Option<Route>, method: Column, status: StatusCode) {
        let row = route.map_or(ROUTE_ROWS - 1, |route| route as usize);
        let class = usize::from(status.as_u16() / 100).clamp(2, 5) - 2;
        self.requests[row][method.0][class].add(1);
    }

    /// Requests responded to, by row of [`Route::ALL`] (then the rest), column of [`METHODS`] and of
    /// [`CLASSES`].
    pub(crate) fn requests(&self, row: usize, method: usize, class: usize) -> u64 {
        self.requests[row][method][class].get()
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
