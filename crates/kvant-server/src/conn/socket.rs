//! One socket: reads through a buffer of the selector, writes that can be held back, and a watch
//! over readers that take nothing.
//!
//! Invariants:
//! 1. While a response's body is corked, writes are gathered in the backlog, up to
//!    [`BACKLOG_BYTES`]; the body uncorks before it makes hyper wait. So small chunks share a
//!    system call, and nothing is held back while the server waits.
//! 2. Bytes leave in the order in which they were written: the backlog goes first.
//!
//! Threads: all of it belongs to one selector.

mod hyper_reads;
mod read_buffer;
mod reader_watch;
mod state;

pub(super) use read_buffer::{READ_BYTES_MAX, ReadBuffer};
pub(super) use state::SocketState;

use super::context::ConnContext;
use crate::http::head::HEAD_BYTES_MAX;
use crate::turns::Arrival;
use bytes::{Buf, Bytes};
use hyper_reads::HyperReads;
use kvant_base::tag::{self, Stage};
use reader_watch::ReaderWatch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Hyper's limit for its read buffer: it rejects an incomplete head of this length with `431`. A
/// head within [`HEAD_BYTES_MAX`] has at most 100 headers; the rest is for the bytes between their
/// names and values.
pub(crate) const HEAD_BUFFER_BYTES: usize = HEAD_BYTES_MAX + (8 << 10);
/// Writes up to this length are gathered for one `send`, which is cheaper than a `writev` of their
/// parts.
const GATHERED_BYTES_MAX: usize = 4 << 10;
/// Bytes of a long response that are written before other connections have their turn. The kernel
/// would take MiBs at once.
const WRITE_BYTES_MAX: usize = 128 << 10;
/// Parts of a write: those that hyper queues, and a head.
const WRITE_PARTS_MAX: usize = 17;
/// Corked bytes beyond this are written.
const BACKLOG_BYTES: usize = 64 << 10;

pub(crate) struct Socket {
    pub(super) cx: Rc<ConnContext>,
    pub(super) state: Rc<SocketState>,
    stream: TcpStream,
    arrival: Arc<Arrival>,
    arrival_waker: Waker,
    /// Received, and not read by hyper yet.
    pub(super) unread: Vec<u8>,
    /// What hyper reads, and the memory for it.
    pub(super) hyper_reads: HyperReads,
    pub(super) backlog: Vec<u8>,
    backlog_sent_bytes: usize,
    /// While the kernel refuses bytes.
    reader_watch: Option<Box<ReaderWatch>>,
    /// The last write was as long as one may be: the next one waits until others have had their
    /// turn.
    yields: bool,
    /// Runs while a refused client rests.
    rest_timer: Option<Pin<Box<Sleep>>>,
    eof: bool,
}

impl Socket {
    /// `task`: the waker of the connection's task.
    pub(super) fn new(
        cx: Rc<ConnContext>,
        stream: TcpStream,
        state: Rc<SocketState>,
        task: Waker,
    ) -> Socket {
        let arrival = Arrival::new(task, &cx.read_budget);
        Socket {
            cx,
            state,
            stream,
            arrival_waker: Waker::from(Arc::clone(&arrival)),
            arrival,
            unread: Vec::new(),
            hyper_reads: HyperReads::default(),
            backlog: Vec::new(),
            backlog_sent_bytes: 0,
            reader_watch: None,
            yields: false,
            rest_timer: None,
            eof: false,
        }
    }

    /// Receives at most `bytes_max` into the selector's read buffer, and returns how many; 0 at the
    /// peer's end.
    pub(super) fn poll_receive(&mut self, bytes_max: usize) -> Poll<io::Result<usize>> {
        if let Some(time) = self.state.take_rest() {
            self.rest_timer = Some(Box::pin(tokio::time::sleep(time)));
        }
        // Not that of the task: the next request counts as arrived when this one is woken.
        let mut cx = Context::from_waker(&self.arrival_waker);
        // A server that stops closes connections without a request: none may wait here, unread.
        if !self.cx.stopping.get() {
            if let Some(timer) = &mut self.rest_timer {
                ready!(timer.as_mut().poll(&mut cx));
                self.rest_timer = None;
            }
            if self.arrival.waits() {
                return Poll::Pending;
            }
        }
        let _tag = tag::stage(Stage::Parse);
        let mut read_buffer = self.cx.buffers.read.borrow_mut();
        let Poll::Ready(received) = self.poll_recv(&mut cx, read_buffer.room(bytes_max)) else {
            self.arrival.forget();
            self.arrival.set_priority(self.state.has_priority.get());
            return Poll::Pending;
        };
        let received_bytes = received?;
        self.eof = received_bytes == 0;
        self.cx.meter.counters.received_bytes.add(received_bytes as u64);
        self.state.add_received(received_bytes as u64, self.arrival.take_ns());
        Poll::Ready(Ok(received_bytes))
    }

    /// Receives into `room` by the system call itself: around its `recv`, libc makes a thread
    /// cancellable and back, which costs CPU time and is never used here.
    fn poll_recv(&self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        // The event loop may not have seen yet what has arrived at a server that stops.
        if self.cx.stopping.get() {
            match recv(&self.stream, &mut *room, RecvFlags::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                received => return Poll::Ready(Ok(received?.0)),
            }
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            let mut received_bytes = None;
            let outcome = self.stream.try_io(Interest::READABLE, || {
                let n = recv(&self.stream, &mut *room, RecvFlags::empty())?.0;
                received_bytes = Some(n);
                // As in tokio, a short read has emptied the socket: it is not ready any more.
                if (1..room.len()).contains(&n) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (received_bytes, outcome) {
                (Some(n), _) => return Poll::Ready(Ok(n)),
                (None, Err(error)) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                    _ => return Poll::Ready(Err(error)),
                },
                (None, Ok(())) => unreachable!("a receive that succeeds has a length"),
            }
        }
    }

    /// Passes the bytes that were received last on to hyper.
    pub(super) fn hand_over(&mut self, received: Vec<u8>) {
        self.unread = received;
        self.state.progress.begin_head();
        self.hyper_reads.head_bytes = 0;
    }

    /// Takes back what hyper has read of a head that is not complete. What it has not read follows.
    pub(super) fn take_back(&mut self, read: &[u8]) {
        self.unread.splice(..0, read.iter().copied());
        self.hyper_reads = HyperReads::default();
        if !read.is_empty() {
            self.state.progress.begin_head();
        }
    }

    /// Sends all of `bytes`. Bytes that the kernel does not take go to the backlog.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        if self.backlog.is_empty() {
            match send(&self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(sent_bytes) => {
                    self.note_sent(sent_bytes);
                    rest = &bytes[sent_bytes..];
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.backlog.extend_from_slice(rest);
        Ok(())
    }

    /// Sends `head` and `body` until the kernel has all of it, and of the backlog.
    pub(super) fn poll_send_all(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Vec<u8>,
        body: &mut Bytes,
    ) -> Poll<io::Result<()>> {
        while !head.is_empty() || !body.is_empty() {
            let parts = [IoSlice::new(head), IoSlice::new(body)];
            let sent_bytes = ready!(self.poll_write_parts(cx, &parts))?;
            let of_head = sent_bytes.min(head.len());
            head.drain(..of_head);
            body.advance(sent_bytes - of_head);
        }
        self.poll_backlog(cx)
    }

    /// Writes some of `parts`, and returns how many bytes were taken.
    pub(super) fn poll_write_parts(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let total_bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.state.corked.get() || !self.backlog.is_empty() {
            if self.backlog.len() + total_bytes <= BACKLOG_BYTES {
                self.make_room(total_bytes);
                parts.iter().for_each(|part| self.backlog.extend_from_slice(part));
                return Poll::Ready(Ok(total_bytes));
            }
            ready!(self.poll_backlog(cx))?;
        }
        if std::mem::take(&mut self.yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let stream = Pin::new(&mut self.stream);
        let written = if total_bytes <= GATHERED_BYTES_MAX {
            let mut gathered = self.cx.buffers.response.borrow_mut();
            gathered.clear();
            parts.iter().for_each(|part| gathered.extend_from_slice(part));
            stream.poll_write(cx, &gathered)
        } else {
            let mut bounded = [IoSlice::new(&[]); WRITE_PARTS_MAX];
            let mut room_bytes = WRITE_BYTES_MAX;
            for (bounded, part) in bounded.iter_mut().zip(parts) {
                let bytes = part.len().min(room_bytes);
                *bounded = IoSlice::new(&part[..bytes]);
                room_bytes -= bytes;
            }
            stream.poll_write_vectored(cx, &bounded[..parts.len().min(WRITE_PARTS_MAX)])
        };
        match written {
            Poll::Ready(Ok(0)) if total_bytes > 0 => {
                Poll::Ready(Err(io::ErrorKind::WriteZero.into()))
            }
            Poll::Ready(Ok(n)) => {
                self.yields = n == WRITE_BYTES_MAX;
                self.note_sent(n);
                Poll::Ready(Ok(n))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_blocked(cx),
        }
    }

    /// Reserves room for `bytes` more in the backlog, up to [`BACKLOG_BYTES`] in all: little at
    /// first, enough for most responses, then all of it.
    fn make_room(&mut self, bytes: usize) {
        if self.backlog.capacity() - self.backlog.len() < bytes {
            let room = match self.backlog.len() {
                0 => bytes.max(4096),
                gathered_bytes => BACKLOG_BYTES - gathered_bytes,
            };
            self.backlog.reserve_exact(room);
        }
    }

    pub(super) fn poll_backlog(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // No allocation, so no backlog either, and none to free.
        if self.backlog.capacity() == 0 {
            return Poll::Ready(Ok(()));
        }
        while self.backlog_sent_bytes < self.backlog.len() {
            let rest = &self.backlog[self.backlog_sent_bytes..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    self.backlog_sent_bytes += n;
                    self.note_sent(n);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_blocked(cx),
            }
        }
        // Freed, unless more of the same response comes: few connections use it again soon.
        if self.state.corked.get() {
            self.backlog.clear();
        } else {
            self.backlog = Vec::new();
        }
        self.backlog_sent_bytes = 0;
        Poll::Ready(Ok(()))
    }

    /// Notes that the kernel took `n` bytes.
    fn note_sent(&mut self, n: usize) {
        self.cx.meter.counters.sent_bytes.add(n as u64);
        self.state.sent_bytes.set(self.state.sent_bytes.get() + n as u64);
        self.state.progress.restart();
        if self.state.blocked.replace(false) {
            self.reader_watch = None;
        }
    }

    /// Waits for the kernel to take bytes again, as long as the peer takes some.
    fn poll_blocked<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.state.blocked.set(true);
        let idle_max = self.cx.config.range_idle_max;
        let watch = self
            .reader_watch
            .get_or_insert_with(|| Box::new(ReaderWatch::new(&self.stream, idle_max)));
        ready!(watch.poll_idle(&self.stream, cx));
        self.cx.meter.counters.readers_cut.add(1);
        self.state.reset_on_close();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the reader took nothing for too long",
        )))
    }

    /// Notes that the kernel has all that hyper wrote, and whether the peer has left.
    #[inline]
    pub(super) fn note_flushed(&mut self) {
        if self.state.is_complete.get()
            && let Some(mut trace) = self.state.take_complete()
        {
            self.state.finish_trace(&mut trace, self.cx.meter.now_ns());
            self.cx.meter.timings.record(&trace);
        }
        if self.state.watches_peer.get() {
            self.check_peer();
        }
    }

    /// Checks whether the peer has closed its side, perhaps after bytes that are not read yet.
    #[cold]
    fn check_peer(&self) {
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let at_once = Timespec::default();
        // A socket that cannot be polled counts as closed: nothing can be sent to it either.
        let has_left = match poll(&mut polled, Some(&at_once)) {
            Ok(_) => polled[0].revents().intersects(closed),
            Err(error) => error != Errno::INTR,
        };
        self.state.peer_left.set(has_left);
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.cork(false);
        ready!(self.poll_backlog(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Whether the peer has all bytes, as far as the system tells.
    pub(super) fn is_acknowledged(&self) -> bool {
        reader_watch::queued_bytes(&self.stream) == Some(0)
    }

    /// Tells the peer that nothing more will come.
    pub(super) async fn end_sending(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_shutdown(cx)).await
    }

    /// Discards what the peer still sends until it closes its side: closing with unread bytes would
    /// send a reset, which destroys the last response. Bounded by `bytes_max` and `time_max`.
    pub(super) async fn linger(self, bytes_max: u64, time_max: Duration) {
        if self.eof {
            return;
        }
        let drain = async {
            let mut taken_bytes = 0;
            while taken_bytes <= bytes_max {
                if self.stream.readable().await.is_err() {
                    return;
                }
                match self.stream.try_read(self.cx.buffers.read.borrow_mut().room(READ_BYTES_MAX)) {
                    Ok(0) => return,
                    Ok(n) => taken_bytes += n as u64,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        // The connection ends either way.
        if tokio::time::timeout(time_max, drain).await.is_err() {
            self.cx.meter.counters.lingers_timed_out.add(1);
        }
    }

    /// Closes at once; with a reset where [`SocketState::reset_on_close`] was called.
    pub(super) fn abort(self) {
        if self.state.reset.get() {
            // A socket that refuses the option is closed the ordinary way: the peer sees a short
            // body.
            let refused =
                socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).is_err();
            debug_assert!(!refused, "a connected TCP socket accepts SO_LINGER");
        }
    }
}
