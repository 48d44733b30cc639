//! One connection from its first byte to its last.
//!
//! It begins on the fast path ([`fast_path`]), moves to hyper with the first request that needs it,
//! and returns with the first plain one between two requests, or when it is idle: hyper has buffers
//! for each connection, 16 KiB at first and up to 152 KiB after long heads and bodies, and an idle
//! connection needs none.

use super::context::ConnContext;
use super::fast_path::{self, FastPathEnd};
use super::hyper_io;
use super::hyper_service::HttpService;
use super::phase::{Due, Progress};
use super::request_body::{DRAIN_BYTES_EXTRA, DRAIN_TIME_MAX};
use super::socket::{READ_BYTES_MAX, Socket, SocketState};
use crate::http::Plane;
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, Level, Reservation};
use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;

/// Memory of a connection without hyper: its task, and its entries in our and the runtime's lists.
const IDLE_BYTES: u64 = 4 << 10;
/// Hyper's two buffers, before more is reserved for them.
const HYPER_BYTES: u64 = 24 << 10;
/// How long a client may go on sending whose head took too long, or while the server stops.
const CUT_LINGER_MAX: Duration = Duration::from_millis(500);

/// Counts a connection until it is dropped.
struct Presence {
    cx: Rc<ConnContext>,
    number: usize,
    _memory: Reservation,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.cx.open.remove(self.number);
        self.cx.meter.counters.connections.fetch_sub(1, Ordering::Relaxed);
        self.cx.connection_closed.notify_waiters();
    }
}

enum End<T> {
    Served(T),
    /// Something is due, between two requests.
    Due(Due),
}

/// Serves requests until either side closes.
pub(crate) async fn serve(cx: Rc<ConnContext>, stream: TcpStream, plane: Plane) {
    let state = Rc::new(SocketState::default());
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let number = cx.open.add(&task, &state);
    let memory = cx.memory.budget().reserve(Consumer::Connections, IDLE_BYTES);
    let _presence = Presence { cx: Rc::clone(&cx), number, _memory: memory };
    if let Err(error) = stream.set_nodelay(true) {
        // The peer has closed the connection already.
        cx.log.event(Level::Warn, "connection_lost", &[("error", &error)]);
        return;
    }
    let mut socket = Socket::new(Rc::clone(&cx), stream, Rc::clone(&state), task);
    let mut plain = Vec::new();
    loop {
        // A part of a head that hyper had read is for hyper.
        if socket.unread.is_empty() {
            let served = {
                let plain = mem::take(&mut plain);
                let mut serving = pin!(fast_path::serve(&cx, plane, &mut socket, plain));
                poll_fn(|cx| poll_unless_due(&state.progress, serving.as_mut(), cx)).await
            };
            match served {
                End::Served(Ok(FastPathEnd::HandedOver)) => {}
                End::Served(Ok(FastPathEnd::Closed)) => return,
                End::Served(Err(_)) => return socket.abort(),
                End::Due(due) => return cut(&cx, socket, due).await,
            }
        }
        let buffers = cx.memory.try_reserve_buffers(HYPER_BYTES);
        if buffers.is_none() && !socket.unread.is_empty() {
            return cut(&cx, socket, Due::NoMemory).await;
        }
        state.progress.set_buffers(true);
        // Boxed, so that an idle connection is small.
        let returned = Box::pin(serve_by_hyper(&cx, Rc::clone(&state), plane, socket)).await;
        state.progress.set_buffers(false);
        socket = match returned {
            None => return,
            Some((socket, Due::Idle)) => socket,
            Some((mut socket, Due::Plain)) => {
                plain = mem::take(&mut socket.unread);
                socket
            }
            Some((socket, due)) => return cut(&cx, socket, due).await,
        };
        drop(buffers);
    }
}

/// Serves requests through hyper until either side closes, or until something is due between two
/// requests: then the socket comes back.
async fn serve_by_hyper(
    cx: &Rc<ConnContext>,
    state: Rc<SocketState>,
    plane: Plane,
    socket: Socket,
) -> Option<(Socket, Due)> {
    let service = HttpService::new(Rc::clone(cx), Rc::clone(&state), plane);
    let mut connection = cx.http.serve_connection(socket, service);
    let mut is_shutting_down = false;
    let served = poll_fn(|task| {
        // Hyper calls the service and the bodies, which set more exact tags.
        let _tag = tag::enter_at(state.activity.get(), Stage::Parse);
        let polled = poll_unless_due(&state.progress, Pin::new(&mut connection), task);
        // After hyper has polled the socket: otherwise it would shut down without reading bytes
        // that have arrived.
        if polled.is_pending() && cx.stopping.get() && !is_shutting_down {
            is_shutting_down = true;
            Pin::new(&mut connection).graceful_shutdown();
            return poll_unless_due(&state.progress, Pin::new(&mut connection), task);
        }
        polled
    })
    .await;
    let parts = connection.into_parts();
    let mut socket = parts.io;
    // Between two requests, too: all responses were sent.
    if socket.lacks_memory() && !state.is_blocked() {
        return Some((socket, Due::NoMemory));
    }
    let result = match served {
        End::Served(result) => result,
        End::Due(due) => {
            // Between two requests hyper holds nothing else: the socket has taken what it wrote.
            socket.take_back(&parts.read_buf);
            // If hyper holds the beginning of a head, what came belongs to it.
            let is_for_hyper = due == Due::Plain && !parts.read_buf.is_empty();
            return Some((socket, if is_for_hyper { Due::Idle } else { due }));
        }
    };
    let is_malformed = matches!(&result, Err(error) if error.is_parse());
    if result.is_err() && !is_malformed {
        socket.abort();
        return None;
    }
    let refusal = match &socket.hyper_reads {
        reads if reads.is_too_large => Some(hyper_io::status_of_too_large(&parts.read_buf)),
        // Hyper responds to malformed heads, except the preface of HTTP/2.
        reads if is_malformed && reads.received_since_write => Some("400 Bad Request"),
        _ => None,
    };
    if let Some(status) = refusal
        && send_refusal(cx, &mut socket, status).await.is_err()
    {
        // The peer has closed the connection.
        return None;
    }
    // Nothing can be lost any more, whatever the client has sent behind its last request.
    if cx.stopping.get() && socket.is_acknowledged() {
        return None;
    }
    // Hyper does so itself, unless the last response is not its own.
    if socket.end_sending().await.is_err() {
        // The peer has closed the connection.
        return None;
    }
    let bytes_max = cx.config.value_bytes_max + DRAIN_BYTES_EXTRA;
    let mut linger = pin!(socket.linger(bytes_max, DRAIN_TIME_MAX));
    let is_cut = poll_fn(|task| match cx.stopping.get() {
        true => Poll::Ready(true),
        false => linger.as_mut().poll(task).map(|()| false),
    });
    if is_cut.await {
        // What the client has sent behind its last request must not destroy the response.
        let _is_over = tokio::time::timeout(CUT_LINGER_MAX, linger).await;
    }
    None
}

/// Goes on with serving unless something is due.
#[inline]
fn poll_unless_due<T>(
    progress: &Progress,
    serving: Pin<&mut impl Future<Output = T>>,
    cx: &mut Context<'_>,
) -> Poll<End<T>> {
    // Bytes that came meanwhile are served first: then nothing of the sweep is due any more.
    match serving.poll(cx) {
        Poll::Ready(result) => Poll::Ready(End::Served(result)),
        Poll::Pending => {
            progress.take_due().map_or(Poll::Pending, |due| Poll::Ready(End::Due(due)))
        }
    }
}

/// Ends a connection that has kept the server waiting, or for whose request there is no memory.
async fn cut(cx: &ConnContext, mut socket: Socket, due: Due) {
    let counters = &cx.meter.counters;
    let status = match due {
        Due::HeadTimeout => {
            counters.head_timeouts.add(1);
            "408 Request Timeout"
        }
        Due::NoMemory => {
            counters.memory_refusals.add(1);
            "503 Service Unavailable\r\nretry-after: 1"
        }
        Due::Close | Due::BodyTimeout | Due::Idle | Due::Plain => {
            counters.idle_connections_closed.add(1);
            return;
        }
    };
    let sent = send_refusal(cx, &mut socket, status).await;
    if sent.is_ok() && socket.end_sending().await.is_ok() {
        // The rest of the head, unread, would destroy the response.
        socket.linger(READ_BYTES_MAX as u64, CUT_LINGER_MAX).await;
    }
}

/// Sends the last response of a connection, without a body, as hyper does to malformed heads.
/// `status` may have lines of headers after it.
async fn send_refusal(cx: &ConnContext, socket: &mut Socket, status: &str) -> io::Result<()> {
    let mut response =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0").into_bytes();
    let mut date = cx.buffers.date.borrow_mut();
    response.extend_from_slice(date.at(cx.meter.now_ns(), &*cx.meter.clock));
    socket.send(&response)
}
