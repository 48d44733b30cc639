//! One socket, under hyper or before it: reads through a buffer of the selector, writes that can be held back, and a watch over
//! readers that take nothing.
//!
//! Invariants:
//! 1. While an answer's body is corked, writes are gathered in the backlog, up to [`BACKLOG_BYTES`]; whoever corks uncorks before
//!    it makes hyper wait. So many small chunks cost one system call, and nothing is held back while the server waits.
//! 2. Bytes leave in the order in which hyper wrote them: the backlog goes before anything written later.
//! 3. `SocketState::blocked` is true exactly while the kernel refuses bytes that hyper or the backlog want to send.
//!
//! Threads: all of it belongs to one selector.

use crate::activity::Activity;
use crate::counters::{self, Counters};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Bytes taken from the kernel at once. Hyper's read buffer grows to twice this for large bodies and keeps that size.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// Hyper's limit for a head that is not complete; what exceeds it is refused with `431`.
pub(crate) const HEAD_BUFFER_BYTES: usize = 408 << 10;
/// Answers up to this length are gathered for one `send`, which is cheaper than a `writev` of their parts.
const GATHERED_BYTES_MAX: usize = 4 << 10;
/// Corked bytes that are gathered before they are written all the same.
const BACKLOG_BYTES: usize = 64 << 10;

/// The selector's buffer: bytes pass through it to and from hyper's, so that no connection needs one of its own.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// What a socket and the answers sent through it tell each other.
#[derive(Default)]
pub(crate) struct SocketState {
    corked: Cell<bool>,
    blocked: Cell<bool>,
    reset: Cell<bool>,
    pub(crate) activity: Activity,
}

impl SocketState {
    /// Holds writes back, or lets them go at the next flush.
    pub(crate) fn cork(&self, corked: bool) {
        self.corked.set(corked);
    }

    /// Whether the kernel takes no more bytes for now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get()
    }

    /// Makes the close visible as a reset: for answers whose end is the end of the connection, and that break off.
    pub(crate) fn reset_on_close(&self) {
        self.reset.set(true);
    }
}

/// A socket as hyper's I/O object.
pub(crate) struct Socket {
    stream: TcpStream,
    state: Rc<SocketState>,
    scratch: Scratch,
    counters: Arc<Counters>,
    /// Received before hyper reads.
    unread: Vec<u8>,
    backlog: Vec<u8>,
    backlog_sent_bytes: usize,
    idle_max: Duration,
    /// Runs while the kernel refuses bytes.
    idle_timer: Option<Pin<Box<Sleep>>>,
    /// Bytes received since the last answer, as long as they are one line.
    first_line_bytes: Option<usize>,
    eof: bool,
}

impl Socket {
    pub(crate) fn new(
        stream: TcpStream,
        state: Rc<SocketState>,
        scratch: Scratch,
        counters: Arc<Counters>,
        idle_max: Duration,
    ) -> Socket {
        Socket {
            stream,
            state,
            scratch,
            counters,
            unread: Vec::new(),
            backlog: Vec::new(),
            backlog_sent_bytes: 0,
            idle_max,
            idle_timer: None,
            first_line_bytes: Some(0),
            eof: false,
        }
    }

    /// Receives into the selector's buffer: how many bytes, at most [`READ_BYTES_MAX`]; 0 at the peer's end.
    pub(crate) fn poll_receive(&mut self, bytes_max: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = self.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch[..bytes_max]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        let received_bytes = buffer.filled().len();
        self.eof = received_bytes == 0;
        counters::add(&self.counters.received_bytes, received_bytes as u64);
        Poll::Ready(Ok(received_bytes))
    }

    /// Leaves to hyper the first bytes of the selector's buffer, which were received last.
    pub(crate) fn hand_over(&mut self, received_bytes: usize) {
        self.unread = self.scratch.borrow()[..received_bytes].to_vec();
        self.state.activity.head_begins();
    }

    /// Takes back what hyper has read of a head that is not complete.
    pub(crate) fn take_back(&mut self, read: &[u8]) {
        debug_assert!(self.unread.is_empty(), "hyper reads whenever it waits for a head");
        self.unread = read.to_vec();
        self.first_line_bytes = Some(0);
        if !read.is_empty() {
            self.state.activity.head_begins();
        }
    }

    /// Whether bytes wait for hyper.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// What the connection is doing.
    pub(crate) fn activity(&self) -> &Activity {
        &self.state.activity
    }

    /// Sends all of `bytes`, what the kernel does not take by way of the backlog.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        let sent_bytes = match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(sent_bytes) => sent_bytes?,
            Poll::Pending => 0,
        };
        self.progressed(sent_bytes);
        self.backlog.extend_from_slice(&bytes[sent_bytes..]);
        Ok(())
    }

    /// Takes what the peer still sends until it closes its side, so that the answer that ended the connection is not destroyed by
    /// the reset that closing with unread bytes would send. Bounded by `bytes_max` and `time_max`.
    pub(crate) async fn linger(self, bytes_max: u64, time_max: Duration) {
        if self.eof {
            return;
        }
        let drain = async {
            let mut taken_bytes = 0;
            while taken_bytes <= bytes_max {
                if self.stream.readable().await.is_err() {
                    return;
                }
                match self.stream.try_read(&mut self.scratch.borrow_mut()) {
                    Ok(0) => return,
                    Ok(n) => taken_bytes += n as u64,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        // Either end of it is the end of the connection.
        if tokio::time::timeout(time_max, drain).await.is_err() {
            self.counters.linger_timed_out();
        }
    }

    /// Closes at once; with a reset where [`SocketState::reset_on_close`] asked for it.
    pub(crate) fn abort(self) {
        if self.state.reset.get() {
            // A socket that refuses the option is closed the ordinary way: the peer sees a short body.
            let refused = socket2::SockRef::from(&self.stream)
                .set_linger(Some(Duration::ZERO))
                .is_err();
            debug_assert!(!refused, "a connected TCP socket accepts SO_LINGER");
        }
    }

    /// The kernel took `n` bytes.
    fn progressed(&mut self, n: usize) {
        counters::add(&self.counters.sent_bytes, n as u64);
        self.state.activity.progresses();
        if self.state.blocked.replace(false) {
            self.idle_timer = None;
        }
    }

    /// The kernel takes nothing: wait for it, but not for ever.
    fn blocked<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.state.blocked.set(true);
        let idle_max = self.idle_max;
        let timer = self
            .idle_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle_max)));
        ready!(timer.as_mut().poll(cx));
        counters::add(&self.counters.readers_cut, 1);
        self.state.reset_on_close();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the reader took nothing for too long",
        )))
    }

    /// Hyper answers `431` to every head that fills its buffer. Where all of the buffer is one line, the target is what is too long:
    /// puts `414` into the backlog instead. False when there is nothing to correct.
    #[cold]
    fn corrects_refusal(&mut self, slices: &[IoSlice<'_>]) -> bool {
        let answer = slices.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        let Some(rest) = answer.strip_prefix(b"HTTP/1.1 431 Request Header Fields Too Large") else {
            return false;
        };
        self.backlog.extend_from_slice(b"HTTP/1.1 414 URI Too Long");
        self.backlog.extend_from_slice(rest);
        true
    }

    /// Sends the backlog.
    pub(crate) fn poll_backlog(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.backlog_sent_bytes < self.backlog.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.backlog[self.backlog_sent_bytes..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    self.backlog_sent_bytes += n;
                    self.progressed(n);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.blocked(cx),
            }
        }
        // Given back: most connections never gather anything again soon.
        self.backlog = Vec::new();
        self.backlog_sent_bytes = 0;
        Poll::Ready(Ok(()))
    }
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.state.activity.hyper_reads();
        let bytes_max = cursor.remaining().min(READ_BYTES_MAX);
        let (scratch, unread);
        let bytes = if socket.unread.is_empty() {
            let received_bytes = ready!(socket.poll_receive(bytes_max, cx))?;
            scratch = socket.scratch.borrow();
            &scratch[..received_bytes]
        } else {
            let rest = socket.unread.split_off(bytes_max.min(socket.unread.len()));
            unread = std::mem::replace(&mut socket.unread, rest);
            &unread
        };
        if !bytes.is_empty() {
            socket.state.activity.head_begins();
        }
        if let Some(line_bytes) = &mut socket.first_line_bytes {
            *line_bytes += bytes.len();
            if bytes.contains(&b'\n') {
                socket.first_line_bytes = None;
            }
        }
        cursor.put_slice(bytes);
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let total_bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let line_bytes = socket.first_line_bytes.replace(0);
        if line_bytes.is_some_and(|bytes| bytes >= HEAD_BUFFER_BYTES) && socket.corrects_refusal(slices) {
            return Poll::Ready(Ok(total_bytes));
        }
        if socket.state.corked.get() || !socket.backlog.is_empty() {
            if socket.backlog.len() + total_bytes <= BACKLOG_BYTES {
                socket.backlog.reserve(total_bytes.max(4096));
                slices
                    .iter()
                    .for_each(|slice| socket.backlog.extend_from_slice(slice));
                return Poll::Ready(Ok(total_bytes));
            }
            ready!(socket.poll_backlog(cx))?;
        }
        let written = if total_bytes <= GATHERED_BYTES_MAX {
            let mut scratch = socket.scratch.borrow_mut();
            let mut gathered_bytes = 0;
            for slice in slices {
                scratch[gathered_bytes..][..slice.len()].copy_from_slice(slice);
                gathered_bytes += slice.len();
            }
            Pin::new(&mut socket.stream).poll_write(cx, &scratch[..gathered_bytes])
        } else {
            Pin::new(&mut socket.stream).poll_write_vectored(cx, slices)
        };
        match written {
            Poll::Ready(Ok(n)) => {
                socket.progressed(n);
                Poll::Ready(Ok(n))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => socket.blocked(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if socket.backlog.is_empty() || socket.state.corked.get() {
            return Poll::Ready(Ok(()));
        }
        socket.poll_backlog(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.state.cork(false);
        ready!(socket.poll_backlog(cx))?;
        Pin::new(&mut socket.stream).poll_shutdown(cx)
    }
}
