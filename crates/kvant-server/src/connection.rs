//! One connection from its first byte to its last.

use crate::express;
use crate::io::{Socket, SocketState};
use crate::routes::Plane;
use crate::selector::Selector;
use crate::service::HttpService;
use kvant_base::{Consumer, Level, Reservation};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;

/// What a connection counts for: hyper's two buffers as they start, and the state around them.
const CONNECTION_BYTES: u64 = 20 << 10;
/// Bytes beyond the longest value that are read and thrown away to let a client see why it was refused.
pub(crate) const DRAIN_BYTES_EXTRA: u64 = 16 << 20;
/// How long such a client is listened to.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Counts a connection until it is dropped.
struct Presence {
    selector: Rc<Selector>,
    id: u64,
    _memory: Reservation,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.selector.leave(self.id);
        self.selector.counters.connections.fetch_sub(1, Ordering::Relaxed);
        self.selector.shared.connection_closed.notify_waiters();
    }
}

/// Serves requests until either side closes.
pub(crate) async fn serve(selector: Rc<Selector>, stream: TcpStream, plane: Plane) {
    let shared = &selector.shared;
    let config = &shared.config;
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let id = selector.enter(&task);
    let memory = shared
        .memory
        .budget()
        .reserve(Consumer::Connections, CONNECTION_BYTES);
    let _presence = Presence {
        selector: Rc::clone(&selector),
        id,
        _memory: memory,
    };
    if let Err(error) = stream.set_nodelay(true) {
        // The peer has gone; there is nobody to answer.
        shared
            .log
            .event(Level::Warn, "connection_lost", &[("error", &error)]);
        return;
    }
    let state = Rc::new(SocketState::default());
    let mut socket = Socket::new(stream, Rc::clone(&state), Rc::clone(&selector), task);
    let found = match express::serve(&selector, plane, &mut socket).await {
        Ok(express::End::HandedOver(found)) => found,
        Ok(express::End::Closed) => return,
        Err(_) => return socket.abort(),
    };
    let service = HttpService::new(Rc::clone(&selector), state, plane, found);
    let mut connection = selector.http.serve_connection(socket, service);
    let mut told_to_stop = false;
    let result = poll_fn(|cx| {
        if selector.stopping.get() && !told_to_stop {
            told_to_stop = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        Pin::new(&mut connection).poll(cx)
    })
    .await;
    let socket = connection.into_parts().io;
    // Malformed heads were answered, too.
    if result.is_err_and(|error| !error.is_parse()) || selector.stopping.get() {
        return socket.abort();
    }
    let mut linger = pin!(socket.linger(config.value_bytes_max + DRAIN_BYTES_EXTRA, DRAIN_TIME_MAX));
    poll_fn(|cx| match selector.stopping.get() {
        true => Poll::Ready(()),
        false => linger.as_mut().poll(cx),
    })
    .await;
}
