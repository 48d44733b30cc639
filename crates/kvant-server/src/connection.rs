//! One connection from its first byte to its last.
//!
//! It begins without hyper ([`express`]), goes over to hyper with the first request that needs it,
//! and comes back when it rests: hyper has buffers for each connection, 16 KiB at first and up to
//! 152 KiB after long heads and bodies, and an idle connection needs none.

use crate::activity::{Activity, Due};
use crate::counters;
use crate::express;
use crate::io::{READ_BYTES_MAX, Socket, SocketState};
use crate::routes::Plane;
use crate::selector::Selector;
use crate::service::HttpService;
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, Level, Reservation};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;

/// What a connection counts for before hyper has it: its task, and its entries in lists of ours and
/// of the runtime.
const REST_BYTES: u64 = 4 << 10;
/// Hyper's two buffers, as large as they are before more is reserved for them.
const HYPER_BYTES: u64 = 24 << 10;
/// Bytes beyond the longest value that are read and thrown away to let a client see why it was
/// refused.
pub(crate) const DRAIN_BYTES_EXTRA: u64 = 16 << 20;
/// How long a client is listened to whose head took too long.
const CUT_LINGER_MAX: Duration = Duration::from_millis(500);
/// How long such a client is listened to.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Counts a connection until it is dropped.
struct Presence {
    selector: Rc<Selector>,
    number: usize,
    _memory: Reservation,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.selector.leave(self.number);
        self.selector.counters.connections.fetch_sub(1, Ordering::Relaxed);
        self.selector.shared.connection_closed.notify_waiters();
    }
}

/// How serving came to its end.
enum End<T> {
    /// By itself.
    Served(T),
    /// By the sweep, between two requests.
    Due(Due),
}

/// Serves requests until either side closes.
pub(crate) async fn serve(selector: Rc<Selector>, stream: TcpStream, plane: Plane) {
    let shared = &selector.shared;
    let state = Rc::new(SocketState::default());
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let number = selector.enter(&task, &state);
    let memory = shared.memory.budget().reserve(Consumer::Connections, REST_BYTES);
    let _presence = Presence { selector: Rc::clone(&selector), number, _memory: memory };
    if let Err(error) = stream.set_nodelay(true) {
        // The peer has gone; there is nobody to answer.
        shared.log.event(Level::Warn, "connection_lost", &[("error", &error)]);
        return;
    }
    let mut socket = Socket::new(stream, Rc::clone(&state), Rc::clone(&selector), task);
    loop {
        let mut found = None;
        // What hyper had read of a head when it gave the connection back is for hyper.
        if !socket.has_unread() {
            let served = {
                let mut serving = pin!(express::serve(&selector, plane, &mut socket));
                poll_fn(|cx| poll_unless_due(&state.activity, serving.as_mut(), cx)).await
            };
            match served {
                End::Served(Ok(express::End::HandedOver(read))) => found = read,
                End::Served(Ok(express::End::Closed)) => return,
                End::Served(Err(_)) => return socket.abort(),
                End::Due(due) => return cut(&selector, socket, due).await,
            }
        }
        let buffers = shared.memory.try_reserve_buffers(HYPER_BYTES);
        if buffers.is_none() && socket.has_unread() {
            return cut(&selector, socket, Due::NoMemory).await;
        }
        state.activity.set_buffers(true);
        // In a box of its own, so that a connection that rests is small.
        let given_up =
            Box::pin(serve_by_hyper(&selector, Rc::clone(&state), plane, socket, found)).await;
        state.activity.set_buffers(false);
        socket = match given_up {
            None => return,
            Some((socket, Due::Rest)) => socket,
            Some((socket, due)) => return cut(&selector, socket, due).await,
        };
        drop(buffers);
    }
}

/// Serves requests through hyper until either side closes, or until something is due between two
/// requests: then the socket comes back.
async fn serve_by_hyper(
    selector: &Rc<Selector>,
    state: Rc<SocketState>,
    plane: Plane,
    socket: Socket,
    found: Option<express::Found>,
) -> Option<(Socket, Due)> {
    let service = HttpService::new(Rc::clone(selector), Rc::clone(&state), plane, found);
    let mut connection = selector.http.serve_connection(socket, service);
    let mut told_to_stop = false;
    let served = poll_fn(|cx| {
        // Hyper calls the service and the bodies, which know better what they do.
        let _tag = tag::enter_at(state.works_for(), Stage::Parse);
        let polled = poll_unless_due(&state.activity, Pin::new(&mut connection), cx);
        // Not before hyper has looked at what it was given: told to stop, it would read none of it.
        if polled.is_pending() && selector.stopping.get() && !told_to_stop {
            told_to_stop = true;
            Pin::new(&mut connection).graceful_shutdown();
            return poll_unless_due(&state.activity, Pin::new(&mut connection), cx);
        }
        polled
    })
    .await;
    let parts = connection.into_parts();
    let mut socket = parts.io;
    // Between two requests, too: all answers have left.
    if socket.lacks_memory() && !state.is_blocked() {
        return Some((socket, Due::NoMemory));
    }
    let result = match served {
        End::Served(result) => result,
        End::Due(due) => {
            // Between two requests hyper has nothing else: what it had to write, the socket has
            // taken.
            socket.take_back(&parts.read_buf);
            return Some((socket, due));
        }
    };
    let is_malformed = matches!(&result, Err(error) if error.is_parse());
    if result.is_err() && !is_malformed || selector.stopping.get() {
        socket.abort();
        return None;
    }
    // Hyper answers malformed heads, but not the one with which HTTP/2 begins.
    if is_malformed
        && socket.has_unanswered()
        && send_refusal(selector, &mut socket, "400 Bad Request").await.is_err()
    {
        // The peer has gone.
        return None;
    }
    // Hyper does so itself, unless the peer wanted another protocol.
    if socket.end_sending().await.is_err() {
        // The peer has gone.
        return None;
    }
    let bytes_max = selector.shared.config.value_bytes_max + DRAIN_BYTES_EXTRA;
    let mut linger = pin!(socket.linger(bytes_max, DRAIN_TIME_MAX));
    poll_fn(|cx| match selector.stopping.get() {
        true => Poll::Ready(()),
        false => linger.as_mut().poll(cx),
    })
    .await;
    None
}

/// Goes on with serving unless the sweep has found something that is due.
#[inline]
fn poll_unless_due<T>(
    activity: &Activity,
    serving: Pin<&mut impl Future<Output = T>>,
    cx: &mut Context<'_>,
) -> Poll<End<T>> {
    // What has come meanwhile is served: then nothing is due any more.
    match serving.poll(cx) {
        Poll::Ready(result) => Poll::Ready(End::Served(result)),
        Poll::Pending => {
            activity.take_due().map_or(Poll::Pending, |due| Poll::Ready(End::Due(due)))
        }
    }
}

/// Ends a connection that has kept the server waiting, or whose request there is no memory to read.
async fn cut(selector: &Selector, mut socket: Socket, due: Due) {
    let counters = &selector.counters;
    let status = match due {
        Due::HeadTimeout => {
            counters::add(&counters.head_timeouts, 1);
            "408 Request Timeout"
        }
        Due::NoMemory => {
            counters::add(&counters.memory_refusals, 1);
            "503 Service Unavailable\r\nretry-after: 1"
        }
        Due::Close | Due::BodyTimeout | Due::Rest => {
            counters::add(&counters.idle_closed, 1);
            return;
        }
    };
    let sent = send_refusal(selector, &mut socket, status).await;
    if sent.is_ok() && socket.end_sending().await.is_ok() {
        // Or the rest of the head would destroy the answer.
        socket.linger(READ_BYTES_MAX as u64, CUT_LINGER_MAX).await;
    }
}

/// Sends the last answer of a connection, which has no body, as hyper does to malformed heads.
/// `status` may have lines of headers after it.
async fn send_refusal(selector: &Selector, socket: &mut Socket, status: &str) -> io::Result<()> {
    let mut answer =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\ndate: ")
            .into_bytes();
    let wall_ms = selector.shared.env.clock.wall_ms();
    answer.extend_from_slice(selector.date.borrow_mut().at(wall_ms));
    answer.extend_from_slice(b"\r\n\r\n");
    poll_fn(|cx| Poll::Ready(socket.send(cx, &answer))).await
}
