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

/// Declares [`Counters`] and [`ROWS`] from the names and the help texts of the counters.
macro_rules! counters {
    ($($name:ident: $help:literal,)+) => {
        #[derive(Default)]
        pub(crate) struct Counters {
            /// Connections that are open or on their way to this selector.
            pub(crate) connections: AtomicUsize,
            requests: [[[Counter; CLASSES.len()]; METHODS.len()]; ROUTE_ROWS],
            $(#[doc = $help] pub(crate) $name: Counter,)+
        }

        /// Every counter, except the requests by route.
        pub(crate) const ROWS: [CounterRow; [$($help),+].len()] = [
            $(CounterRow { name: stringify!($name), help: $help, counter: |all| &all.$name }),+
        ];
    };
}

pub(crate) struct CounterRow {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) counter: fn(&Counters) -> &Counter,
}

counters! {
    connections_accepted: "Connections accepted.",
    accept_waits: "Times that accepting waited at the limit of connections.",
    idle_connections_closed:
        "Connections closed after being open without a request for too long.",
    head_timeouts: "Requests whose head did not come in time.",
    body_timeouts: "Requests whose body did not come in time.",
    received_bytes: "Bytes read from clients.",
    sent_bytes: "Bytes that the kernel took for clients.",
    write_batches: "Batches of writes that the store took.",
    batched_writes: "Writes in batches that the store took.",
    write_stalls: "Times that writes began to wait for a stall.",
    writes_stalled_out: "Writes refused after waiting too long.",
    memory_refusals: "Requests refused for want of memory.",
    ranges_aborted: "Ranges broken off by an error.",
    readers_cut: "Readers that took nothing for too long.",
    lingers_timed_out: "Clients that went on sending after their connection's last response.",
}

impl Counters {
    /// Counts a request that was responded to.
    #[inline]
    pub(crate) fn count_request(&self, route: Option<Route>, method: Column, status: StatusCode) {
        let row = route.map_or(ROUTE_ROWS - 1, |route| route as usize);
        let class = usize::from(status.as_u16() / 100).clamp(2, 5) - 2;
        self.requests[row][method.0][class].add(1);
    }

    /// Requests responded to, by row of [`Route::ALL`] (then the rest), column of [`METHODS`] and
    /// of [`CLASSES`].
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
