//! The fast path: status, entities of any length to read, and short ones to write, without hyper.
//!
//! A connection begins here and goes over to hyper with the first request that is not plain
//! ([`PlainRequest`]): another route, headers that change the message, a malformed query. Hyper
//! reads that request from its first byte. The connection comes back with the next plain one, or
//! when it is idle.
//!
//! `docs/decisions/0005-plain-requests-without-hyper.md` says why there are two paths.
//!
//! Invariants:
//! 1. A response is, byte for byte, what hyper would have sent.
//! 2. A request that was begun here is completed here.
//! 3. Between receiving and parsing no other connection runs: the bytes are in the selector's read
//!    buffer. Nor between reading a value and sending it, if it is in the response buffer.

use super::context::ConnContext;
use super::short_response::{self, ShortResponse};
use super::socket::{Socket, SocketState};
use crate::admission::Class;
use crate::counters::Column;
use crate::http::known_request::FastRequest;
use crate::http::plain_request::{PlainRequest, REQUEST_BYTES_MAX};
use crate::http::{Operation, Plane, Route, query, site};
use crate::memory::SMALL_BYTES;
use crate::store::Capability;
use crate::timing::{KeyStart, StorageWork, Trace};
use crate::work::{EntityOutcome, EntityWork, entity};
use bytes::Bytes;
use http::Method;
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use kvant_base::tag::{self, Activity, Stage};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::task::Poll;

pub(super) enum FastPathEnd {
    /// The peer closed the connection.
    Closed,
    /// Hyper serves the next request.
    HandedOver,
}

struct Begun {
    route: Route,
    column: Column,
    work: BegunWork,
    trace: Trace,
}

enum BegunWork {
    Response(ShortResponse),
    Entity(EntityWork),
}

/// Serves plain requests until another comes, the peer closes, or the server stops. `first` was
/// received already, unless it is empty.
pub(super) async fn serve(
    cx: &ConnContext,
    plane: Plane,
    socket: &mut Socket,
    first: Vec<u8>,
) -> io::Result<FastPathEnd> {
    cx.buffers.read.borrow_mut().room(first.len()).copy_from_slice(&first);
    let mut first_bytes = first.len();
    drop(first);
    loop {
        let received_bytes = match mem::take(&mut first_bytes) {
            0 => {
                let received = poll_fn(|_| match cx.stopping.get() {
                    true => Poll::Ready(Ok(None)),
                    false => socket.poll_receive(REQUEST_BYTES_MAX).map_ok(Some),
                });
                match received.await? {
                    None => return Ok(FastPathEnd::HandedOver),
                    Some(0) => return Ok(FastPathEnd::Closed),
                    Some(count) => count,
                }
            }
            bytes => bytes,
        };
        let Some(begun) = begin(cx, plane, &socket.state, received_bytes) else {
            socket.hand_over(cx.buffers.read.borrow().received(received_bytes).to_vec());
            return Ok(FastPathEnd::HandedOver);
        };
        let Begun { route, column, work, mut trace } = begun;
        socket.state.progress.begin_request();
        let response = match work {
            BegunWork::Response(response) => response,
            BegunWork::Entity(work) => {
                let (outcome, done) = match work {
                    EntityWork::Done(outcome, done) => (outcome, done),
                    work => work.await,
                };
                trace.set_storage(&done);
                ShortResponse::of(outcome, |failure| cx.explain(&socket.state, failure))
            }
        };
        trace.status = response.status();
        cx.meter.counters.count_request(Some(route), column, trace.status);
        send(cx, socket, response, trace.operation, trace.stamps.done_ns).await?;
        socket.state.progress.end_request();
        socket.state.finish_trace(&mut trace, cx.meter.now_ns());
        cx.meter.timings.record(&trace);
    }
}

/// Begins the request that was received, unless hyper has to serve it.
#[inline]
fn begin(
    cx: &ConnContext,
    plane: Plane,
    state: &SocketState,
    received_bytes: usize,
) -> Option<Begun> {
    let tag = tag::enter_at(Activity::None, Stage::Parse);
    let mut buffer = cx.buffers.read.borrow_mut();
    let request = understand(cx, buffer.received(received_bytes))?;
    let FastRequest { method, route, query, body_bytes } = request;
    if !plane.serves(route) {
        return None;
    }
    let store = cx.storage.lifecycle.store()?;
    let column = Column::from(&method);
    let parsed_ns = cx.meter.now_ns();
    let operation = Operation::of(route, &method);
    tag.set_activity(operation.activity(), Stage::Dispatch);
    let mut trace = Trace::begin(operation, parsed_ns);
    let work = match query {
        None => BegunWork::Response(ShortResponse::status_ready()),
        Some(query) => {
            if !is_short(cx, body_bytes)
                || query.ttl_ms.is_some() && !store.has(Capability::Ttl)
                || query.check_replicas(store.replica_count()).is_err()
            {
                return None;
            }
            trace.key = KeyStart::of(&query.key);
            let class = if method == Method::GET { Class::Read } else { Class::Write };
            let work = match cx.storage.admit(class, state.lag_ns(parsed_ns), parsed_ns) {
                Err(failure) => {
                    EntityWork::Done(EntityOutcome::Failed(failure), StorageWork::at(parsed_ns))
                }
                Ok(()) if class == Class::Read => {
                    let mut response = cx.buffers.response.borrow_mut();
                    short_response::make_head_room(&mut response);
                    entity::get(&cx.storage, store, query, Some(&mut response), parsed_ns)
                }
                Ok(()) if method == Method::PUT => {
                    let value = buffer.take_end(received_bytes, body_bytes);
                    entity::put(&cx.storage, store, query, value, parsed_ns)
                }
                Ok(()) => entity::delete(&cx.storage, store, query, parsed_ns),
            };
            BegunWork::Entity(work)
        }
    };
    trace.stamps.arrival_ns = state.take_arrived_ns();
    Some(Begun { route, column, work, trace })
}

/// Whether the request that was received is one for this path. (It may turn out to be for hyper
/// nevertheless, by what its query asks for.)
pub(super) fn serves(cx: &ConnContext, received: &[u8]) -> bool {
    let can_serve = cx.storage.lifecycle.store().is_some() && !cx.stopping.get();
    can_serve && understand(cx, received).is_some_and(|request| is_short(cx, request.body_bytes))
}

fn is_short(cx: &ConnContext, body_bytes: usize) -> bool {
    body_bytes as u64 <= cx.config.value_bytes_max.min(SMALL_BYTES)
}

/// The request that was received; `None` if hyper has to parse it.
#[inline]
fn understand(cx: &ConnContext, received: &[u8]) -> Option<FastRequest> {
    let known = cx.buffers.known_requests.borrow().find(received);
    known.or_else(|| parse(cx, received))
}

fn parse(cx: &ConnContext, received: &[u8]) -> Option<FastRequest> {
    let request = PlainRequest::parse(received)?;
    if !site::is_own_host(request.host, &cx.config.allowed_hosts) {
        return None;
    }
    let route = Route::from_name(request.path)?;
    let query = match route {
        Route::Status if request.method == Method::GET => None,
        Route::Entity => Some(query::entity(request.query, request.method == Method::PUT).ok()?),
        _ => return None,
    };
    cx.buffers.known_requests.borrow_mut().keep(received, &request, route);
    let body_bytes = request.body.len();
    Some(FastRequest { method: request.method, route, query, body_bytes })
}

/// Sends the response to a request that was done at `done_ns`, until the kernel has all of it.
async fn send(
    cx: &ConnContext,
    socket: &mut Socket,
    response: ShortResponse,
    operation: Operation,
    done_ns: u64,
) -> io::Result<()> {
    let (mut head, mut body, held);
    {
        let _tag = tag::enter_at(operation.activity(), Stage::Respond);
        let mut buffer = cx.buffers.response.borrow_mut();
        let mut date = cx.buffers.date.borrow_mut();
        let date_end = date.at(done_ns, &*cx.meter.clock);
        let start;
        (start, body, held) = response.write_head(&mut buffer, date_end, cx.stopping.get());
        if body.len() <= VALUE_BYTES_COPIED_MAX {
            // One call of the kernel for both. What it does not take goes to the backlog.
            buffer.extend_from_slice(&body);
            body = Bytes::new();
            head = Vec::new();
            socket.send(&buffer[start..])?;
        } else {
            head = buffer[start..].to_vec();
        }
    }
    poll_fn(|task| {
        let _tag = tag::enter_at(operation.activity(), Stage::Respond);
        socket.poll_send_all(task, &mut head, &mut body)
    })
    .await?;
    drop(held);
    Ok(())
}
