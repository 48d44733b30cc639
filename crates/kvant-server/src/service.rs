//! From a parsed head to a route, and back to an answer that hyper writes.
//!
//! The commonest requests are answered without a boxed future: reads and statuses at once, a write
//! after its batch.

use crate::answer::{Exchange, Reply, Response};
use crate::batcher::Writing;
use crate::counters::Column;
use crate::express::Found;
use crate::head;
use crate::io::SocketState;
use crate::problem::{self, Problem};
use crate::request_body;
use crate::routes::entity::{self, Put};
use crate::routes::{self, Plane, Route};
use crate::selector::Selector;
use crate::site;
use crate::timing::{Operation, Trace};
use http::header::CONNECTION;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use kvant_base::tag::{self, Activity, Stage};
use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The requests of one connection.
pub(crate) struct HttpService {
    call: Call,
    plane: Plane,
    /// Read for the first request before it came here.
    found: Cell<Option<Found>>,
}

/// Where requests come from: what every route is given.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) selector: Rc<Selector>,
    pub(crate) socket: Rc<SocketState>,
}

impl HttpService {
    pub(crate) fn new(
        selector: Rc<Selector>,
        socket: Rc<SocketState>,
        plane: Plane,
        found: Option<Found>,
    ) -> HttpService {
        HttpService { call: Call { selector, socket }, plane, found: Cell::new(found) }
    }
}

impl hyper::service::Service<Request<Incoming>> for HttpService {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        self.call.socket.activity.request_begins();
        let checked = head::check(request.version(), request.uri(), request.headers());
        let expects_continue = *checked.as_ref().unwrap_or(&false);
        let allowed_hosts = &self.call.selector.shared.config.allowed_hosts;
        let checked =
            checked.and_then(|_| site::check(request.uri(), request.headers(), allowed_hosts));
        let route = Route::of(request.uri().path()).filter(|route| self.plane.serves(*route));
        let column = Column::from(request.method());
        let operation =
            route.map_or(Operation::Other, |route| Operation::of(route, request.method()));
        let activity = operation.activity();
        let _tag = tag::enter_at(activity, Stage::Dispatch);
        let mut trace = Trace::begin(operation, self.call.selector.now_ns());
        trace.stamps.arrival_ns = self.call.socket.take_arrived_ns();
        // The kernel has not taken the end of the last answer, and hyper goes on with a pipelined
        // request.
        if let Some(mut last) = self.call.socket.take_answered() {
            self.call.socket.complete(&mut last, trace.stamps.parsed_ns);
            self.call.selector.timings.record(&last);
        }
        self.call.socket.begin(trace);
        let mut exchange = Exchange::new(request, expects_continue, self.found.take());
        let refuse = |exchange: Exchange, problem| {
            request_body::refuse(
                &self.call.selector.shared.config,
                exchange.body,
                exchange.reply,
                problem,
            )
        };
        let step = match (checked, route) {
            (Err(problem), _) => refuse(exchange, problem),
            (Ok(_), None) => refuse(exchange, Problem::unknown_path()),
            (Ok(_), Some(route)) if !route.allows(&exchange.method) => {
                refuse(exchange, Problem::method_not_allowed(route.allow()))
            }
            (Ok(_), Some(route)) => match exchange.body.take() {
                None => routes::start(route, &self.call, exchange),
                body if route.takes_body(&exchange.method) => {
                    routes::start(route, &self.call, Exchange { body, ..exchange })
                }
                Some(body) => start_without_body(self.call.clone(), route, exchange, body),
            },
        };
        Answering { call: self.call.clone(), route, activity, column, step }
    }
}

/// A request whose body means nothing: it is out of the way before the route starts.
fn start_without_body(call: Call, route: Route, exchange: Exchange, body: Incoming) -> Step {
    let discarding = request_body::discard(&call.selector.shared.config, body, &exchange.reply, 0);
    let version = exchange.reply.version();
    Step::slow(async move {
        let can_go_on = discarding.await;
        let mut step = routes::start(route, &call, exchange);
        let mut response = poll_fn(|cx| step.poll_response(cx, &call)).await;
        if !can_go_on {
            problem::close(&mut response, version);
        }
        response
    })
}

/// What is left to do until a request has its answer.
pub(crate) enum Step {
    /// Hand out the answer.
    Answer(Option<Response>),
    /// Wait for the batch with this write, then answer with this status.
    Write(Reply, Writing, StatusCode),
    /// Read a short value, then write it.
    Put(Put),
    /// Anything else.
    Slow(Pin<Box<dyn Future<Output = Response>>>),
}

impl Step {
    pub(crate) fn answer(response: Response) -> Step {
        Step::Answer(Some(response))
    }

    pub(crate) fn slow(future: impl Future<Output = Response> + 'static) -> Step {
        Step::Slow(Box::pin(future))
    }

    #[inline]
    pub(crate) fn poll_response(&mut self, cx: &mut Context<'_>, call: &Call) -> Poll<Response> {
        loop {
            match self {
                Step::Answer(response) => {
                    return Poll::Ready(
                        response.take().expect("no future is polled after its end"),
                    );
                }
                Step::Write(reply, writing, status) => {
                    let written = ready!(Pin::new(writing).poll(cx));
                    return Poll::Ready(entity::written(call, reply, *status, written));
                }
                Step::Put(put) => *self = ready!(put.poll_step(cx, call)),
                Step::Slow(slow) => return slow.as_mut().poll(cx),
            }
        }
    }
}

/// A request on the way to its answer.
pub(crate) struct Answering {
    call: Call,
    route: Option<Route>,
    activity: Activity,
    column: Column,
    step: Step,
}

impl Future for Answering {
    type Output = Result<Response, Infallible>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let _tag = tag::enter_at(this.activity, Stage::Dispatch);
        let mut response = ready!(this.step.poll_response(cx, &this.call));
        let status = response.status();
        this.call.selector.counters.request(this.route, this.column, status);
        let socket = &this.call.socket;
        socket.note(|trace| trace.status = status);
        socket.activity.answer_begins(response.headers().contains_key(CONNECTION));
        response.body_mut().tell_end_to(socket);
        Poll::Ready(Ok(response))
    }
}
