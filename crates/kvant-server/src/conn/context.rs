//! What the connections of one selector share, and how the routes are reached.

use super::open_connections::OpenConnections;
use super::short_response::{DateText, ShortResponse};
use super::socket::{ReadBuffer, SocketState};
use crate::admission::{Class, Pacer};
use crate::config::ServerConfig;
use crate::http::known_request::KnownRequests;
use crate::http::{Exchange, Problem, Reply, Response, Route};
use crate::memory::RequestMemory;
use crate::timing::Meter;
use crate::turns::ReadBudget;
use crate::work::{EntityOutcome, Failure, Storage};
use hyper::server::conn::http1;
use kvant_base::Log;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;

/// Serves requests that hyper has parsed.
pub(crate) trait Handler {
    /// Starts the work of a request whose path and method are known, and whose body is empty unless
    /// the route takes one.
    fn start(&self, route: Route, call: &Call, exchange: Exchange) -> RequestStep;
}

pub(crate) struct ConnContext {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) memory: Arc<RequestMemory>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) storage: Rc<Storage>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) read_budget: Arc<ReadBudget>,
    pub(crate) pacer: Pacer,
    pub(crate) http: http1::Builder,
    pub(crate) buffers: Buffers,
    pub(crate) open: OpenConnections,
    /// Notified of every connection that closes, on all selectors.
    pub(crate) connection_closed: Arc<Notify>,
    pub(crate) stopping: Cell<bool>,
}

/// Buffers that no connection needs for longer than a turn, and what connections have in common.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(super) read: RefCell<ReadBuffer>,
    pub(super) known_requests: RefCell<KnownRequests>,
    /// Where the fast path encodes responses.
    pub(super) response: RefCell<Vec<u8>>,
    pub(super) date: RefCell<DateText>,
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
    pub(super) fn explain(&self, socket: &SocketState, failure: &Failure) -> Problem {
        if let Failure::Refused(_) = failure {
            let rest_ns = self.pacer.rest_ns(self.meter.now_ns());
            if rest_ns > 0 {
                socket.rest.set(Some(Duration::from_nanos(rest_ns)));
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

    pub(crate) fn explain(&self, failure: &Failure) -> Problem {
        self.cx.explain(&self.socket, failure)
    }

    pub(crate) fn respond(&self, outcome: EntityOutcome, reply: &mut Reply) -> Response {
        ShortResponse::of(outcome, |failure| self.explain(failure)).into_response(reply)
    }
}

/// What is left to do until a request has its response.
pub(crate) enum RequestStep {
    Ready(Option<Response>),
    Later(Pin<Box<dyn Future<Output = Response>>>),
}

impl RequestStep {
    pub(crate) fn ready(response: Response) -> RequestStep {
        RequestStep::Ready(Some(response))
    }

    pub(crate) fn later(future: impl Future<Output = Response> + 'static) -> RequestStep {
        RequestStep::Later(Box::pin(future))
    }

    pub(super) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Response> {
        match self {
            RequestStep::Ready(response) => {
                Poll::Ready(response.take().expect("no future is polled after its end"))
            }
            RequestStep::Later(later) => later.as_mut().poll(cx),
        }
    }
}
