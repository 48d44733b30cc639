//! Connections: sockets, the fast path, hyper, and the limits of time.
//!
//! - [`connection`]: one connection from its first byte to its last;
//! - [`socket`], [`hyper_io`]: one socket, by itself and as hyper's I/O object;
//! - [`fast_path`]: the commonest requests, without hyper;
//! - [`hyper_service`]: all requests, through hyper; [`request_body`] reads their bodies;
//! - [`answer`]: the encodings of short answers, for both;
//! - [`phase`], [`sweep`]: connections that kept the server waiting for too long.
//!
//! The routes stand above: they are reached through [`Handler`].
//!
//! Threads: all of it belongs to one selector.

mod answer;
mod connection;
mod fast_path;
mod hyper_io;
mod hyper_service;
mod phase;
pub(crate) mod request_body;
mod socket;
mod sweep;

pub(crate) use connection::serve;
pub(crate) use hyper_service::Step;
pub(crate) use socket::{HEAD_BUFFER_BYTES, ReadBuffer, SocketState};
pub(crate) use sweep::{OpenConnections, run as sweep};

use crate::admission::{Class, Pacer};
use crate::config::ServerConfig;
use crate::http::{Exchange, Problem, Response, Route};
use crate::memory::RequestMemory;
use crate::timing::Meter;
use crate::turns::{ReadBudget, Turn};
use crate::work::{Failure, Storage};
use answer::DateText;
use hyper::server::conn::http1;
use kvant_base::Log;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Serves requests that hyper has parsed.
pub(crate) trait Handler {
    /// Starts the work of a request whose path and method are known, and whose body is empty unless
    /// the route takes one.
    fn start(&self, route: Route, call: &Call, exchange: Exchange) -> Step;
}

/// What the connections of one selector share.
pub(crate) struct ConnContext {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) memory: Arc<RequestMemory>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) storage: Rc<Storage>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) turn: Arc<Turn>,
    pub(crate) read_budget: Rc<ReadBudget>,
    pub(crate) pacer: Pacer,
    pub(crate) http: http1::Builder,
    pub(crate) buffers: Buffers,
    pub(crate) open: OpenConnections,
    /// Notified of every connection that closes, on all selectors.
    pub(crate) connection_closed: Arc<Notify>,
    pub(crate) stopping: Cell<bool>,
}

/// Buffers that no connection needs for longer than a turn.
#[derive(Default)]
pub(crate) struct Buffers {
    read: RefCell<ReadBuffer>,
    /// Where the fast path encodes responses.
    response: RefCell<Vec<u8>>,
    date: RefCell<DateText>,
}

/// The connection that a request came on.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) cx: Rc<ConnContext>,
    pub(crate) socket: Rc<SocketState>,
}

impl ConnContext {
    /// Explains a failure. A refused client rests before its next request is read.
    #[cold]
    fn explain(&self, socket: &SocketState, failure: &Failure) -> Problem {
        if let Failure::Refused(_) = failure {
            let rest_ns = self.pacer.rest_ns(self.meter.now_ns());
            if rest_ns > 0 {
                socket.set_rest(Duration::from_nanos(rest_ns));
            }
        }
        self.storage.explain(failure)
    }
}

impl Call {
    /// Whether to serve a request whose head was just parsed.
    pub(crate) fn admit(&self, class: Class) -> Result<(), Problem> {
        let Some(stamps) = self.socket.stamps() else {
            return Ok(());
        };
        let lag_ns = self.socket.lag_ns(stamps.parsed_ns);
        self.cx
            .storage
            .admit(class, lag_ns, stamps.parsed_ns)
            .map_err(|failure| self.explain(&failure))
    }

    /// Explains a failure.
    pub(crate) fn explain(&self, failure: &Failure) -> Problem {
        self.cx.explain(&self.socket, failure)
    }

    /// Encodes the outcome of an entity request.
    pub(crate) fn respond(
        &self,
        outcome: crate::work::EntityOutcome,
        reply: &mut crate::http::Reply,
    ) -> Response {
        answer::Answer::of(outcome, |failure| self.explain(failure)).into_response(reply)
    }
}
