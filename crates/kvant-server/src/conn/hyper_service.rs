//! From a head that hyper has parsed to a route, and back to a response that hyper writes.

use super::context::{Call, ConnContext, RequestStep};
use super::request_body::{self, Discarded};
use super::socket::SocketState;
use crate::counters::Column;
use crate::http::{Body, Exchange, Operation, Plane, Problem, Route, head, problem, site};
use crate::timing::Trace;
use bytes::Bytes;
use http::Request;
use http::header::CONNECTION;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use kvant_base::tag::{self, Activity, Stage};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The requests of one connection.
pub(super) struct HttpService {
    call: Call,
    plane: Plane,
}

impl HttpService {
    pub(super) fn new(cx: Rc<ConnContext>, socket: Rc<SocketState>, plane: Plane) -> HttpService {
        HttpService { call: Call { cx, socket }, plane }
    }

    fn start(
        &self,
        checked: Result<(), Problem>,
        route: Option<Route>,
        mut exchange: Exchange,
    ) -> RequestStep {
        let problem = match (checked, route) {
            (Err(problem), _) => problem,
            (Ok(()), None) => Problem::unknown_path(),
            (Ok(()), Some(route)) if !route.allows(&exchange.method) => {
                Problem::method_not_allowed(route.allow())
            }
            (Ok(()), Some(route)) => {
                return match exchange.body.take() {
                    Some(body) if !route.takes_body(&exchange.method) => {
                        start_without_body(self.call.clone(), route, exchange, body)
                    }
                    body => {
                        self.call.cx.handler.start(route, &self.call, Exchange { body, ..exchange })
                    }
                };
            }
        };
        request_body::refuse(&self.call.cx.config, exchange.body, exchange.reply, problem)
    }
}

impl hyper::service::Service<Request<Incoming>> for HttpService {
    type Response = http::Response<TrackedBody>;
    type Error = Infallible;
    type Future = Responding;

    fn call(&self, request: Request<Incoming>) -> Responding {
        let Call { cx, socket } = &self.call;
        socket.progress.begin_request();
        socket.has_body.set(!request.body().is_end_stream());
        let checked = head::check(request.version(), request.uri(), request.headers());
        let expects_continue = *checked.as_ref().unwrap_or(&false);
        let checked = checked
            .and_then(|_| site::check(request.uri(), request.headers(), &cx.config.allowed_hosts));
        let route =
            Route::from_name(request.uri().path()).filter(|route| self.plane.serves(*route));
        let column = Column::from(request.method());
        let operation =
            route.map_or(Operation::Other, |route| Operation::of(route, request.method()));
        let activity = operation.activity();
        let _tag = tag::enter_at(activity, Stage::Dispatch);
        let mut trace = Trace::begin(operation, cx.meter.now_ns());
        trace.stamps.arrival_ns = socket.take_arrived_ns();
        // The kernel has not taken the end of the last response, and hyper goes on with a pipelined
        // request.
        if let Some(mut last) = socket.take_complete() {
            socket.finish_trace(&mut last, trace.stamps.parsed_ns);
            cx.meter.timings.record(&last);
        }
        socket.begin_exchange(trace);
        let step = self.start(checked, route, Exchange::new(request, expects_continue));
        Responding { call: self.call.clone(), route, activity, column, step }
    }
}

/// Starts a request whose route does not read the body: the body is discarded first.
fn start_without_body(
    call: Call,
    route: Route,
    mut exchange: Exchange,
    body: Incoming,
) -> RequestStep {
    let discarding = request_body::discard(&call.cx.config, body, &exchange.reply, 0);
    let version = exchange.reply.version();
    RequestStep::later(async move {
        let discarded = discarding.await;
        if discarded == Discarded::Broken {
            return request_body::broken_body().respond(&mut exchange.reply);
        }
        let mut step = call.cx.handler.start(route, &call, exchange);
        let mut response = poll_fn(|cx| step.poll_response(cx)).await;
        if discarded != Discarded::Whole {
            problem::close(&mut response, version);
        }
        response
    })
}

pub(super) struct Responding {
    call: Call,
    route: Option<Route>,
    activity: Activity,
    column: Column,
    step: RequestStep,
}

impl Future for Responding {
    type Output = Result<http::Response<TrackedBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let _tag = tag::enter_at(this.activity, Stage::Dispatch);
        let response = ready!(this.step.poll_response(cx));
        let status = response.status();
        let Call { cx, socket } = &this.call;
        cx.meter.counters.count_request(this.route, this.column, status);
        socket.update_trace(|trace| trace.status = status);
        socket.progress.begin_response(response.headers().contains_key(CONNECTION));
        Poll::Ready(Ok(response.map(|body| TrackedBody { body, socket: Rc::clone(socket) })))
    }
}

/// A body that tells its socket when hyper has all of it. Hyper drops a body then; the flush that
/// follows sends the response.
pub(super) struct TrackedBody {
    body: Body,
    socket: Rc<SocketState>,
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.socket.mark_complete();
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = kvant_base::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kvant_base::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
