//! One socket, under hyper or before it: reads through a buffer of the selector, writes that can be
//! held back, and a watch over readers that take nothing.
//!
//! Invariants:
//! 1. While an answer's body is corked, writes are gathered in the backlog, up to
//!    [`BACKLOG_BYTES`]; whoever corks uncorks before it makes hyper wait. So many small chunks
//!    cost one system call, and nothing is held back while the server waits.
//! 2. Bytes leave in the order in which hyper wrote them: the backlog goes before anything written
//!    later.
//!
//! Threads: all of it belongs to one selector.

mod reader_watch;
mod state;

pub(crate) use state::SocketState;

use crate::arrival::Arrival;
use crate::counters;
use crate::head::HEAD_BYTES_MAX;
use crate::selector::Selector;
use hyper::rt::{Read, ReadBufCursor, Write};
use kvant_base::Reservation;
use kvant_base::tag::{self, Stage};
use reader_watch::ReaderWatch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Bytes taken from the kernel at once.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// Hyper's limit for its read buffer, and so for a head that is not complete, which is refused with
/// `431` then. A head within [`HEAD_BYTES_MAX`] has 100 headers at most, and the rest is for what
/// stands between their names and values.
pub(crate) const HEAD_BUFFER_BYTES: usize = HEAD_BYTES_MAX + (8 << 10);
/// The lengths of a body, in digits, that hyper keeps for purposes of its own.
const HUGE_LENGTHS: [&[u8]; 2] = [b"18446744073709551614", b"18446744073709551615"];
/// Hyper's read buffer at first. It grows when a read fills it.
const HYPER_READ_BYTES: usize = 8 << 10;
/// What hyper's read buffers take once they have grown: one that is being filled, and one whose
/// bytes a body still holds.
const GROWN_BUFFERS_BYTES: u64 = 2 * HEAD_BUFFER_BYTES as u64;
/// Longer request lines have a target of more than the 65,534 bytes that hyper accepts.
const LINE_BYTES_MAX: usize = 65_534 + "DELETE  HTTP/1.1\r\n".len();
/// Answers up to this length are gathered for one `send`, which is cheaper than a `writev` of their
/// parts.
const GATHERED_BYTES_MAX: usize = 4 << 10;
/// Bytes of a long response that are written before other connections have their turn: the kernel
/// takes MiBs at once otherwise.
const WRITE_BYTES_MAX: usize = 128 << 10;
/// Parts of a write: those that hyper queues, and a head.
const WRITE_PARTS_MAX: usize = 17;
/// Corked bytes that are gathered before they are written all the same.
const BACKLOG_BYTES: usize = 64 << 10;

/// The selector's buffer: bytes pass through it to and from hyper's, so that no connection needs
/// one of its own.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// A socket as hyper's I/O object.
pub(crate) struct Socket {
    stream: TcpStream,
    state: Rc<SocketState>,
    selector: Rc<Selector>,
    arrival: Arc<Arrival>,
    arrival_waker: Waker,
    /// Received before hyper reads.
    unread: Vec<u8>,
    backlog: Vec<u8>,
    backlog_sent_bytes: usize,
    idle_max: Duration,
    /// While the kernel refuses bytes.
    reader_watch: Option<Box<ReaderWatch>>,
    /// The last write was as long as one may be: the next one waits until others have had their
    /// turn.
    yields: bool,
    /// Runs while a refused client rests.
    rest_timer: Option<Pin<Box<Sleep>>>,
    first_line: FirstLine,
    /// The head that is being received has a length that hyper takes for too large a head.
    has_huge_length: bool,
    /// Bytes of the head that hyper reads.
    head_bytes: usize,
    /// Reserved for hyper's read buffers when they may grow, as long as hyper serves the
    /// connection.
    grown_buffers: Option<Reservation>,
    /// The last read took all that it might.
    reads_fill_buffer: bool,
    /// There was no memory for the rest of a head.
    lacks_memory: bool,
    eof: bool,
}

/// The first line received since the last answer.
#[derive(Default)]
struct FirstLine {
    bytes: usize,
    has_ended: bool,
}

impl FirstLine {
    fn receive(&mut self, bytes: &[u8]) {
        if !self.has_ended {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            self.has_ended = end.is_some();
            self.bytes += end.unwrap_or(bytes.len());
        }
    }
}

impl Socket {
    /// `task`: what serves the connection.
    pub(crate) fn new(
        stream: TcpStream,
        state: Rc<SocketState>,
        selector: Rc<Selector>,
        task: Waker,
    ) -> Socket {
        let arrival = Arrival::new(task, Arc::clone(&selector.turn));
        Socket {
            stream,
            state,
            arrival_waker: Waker::from(Arc::clone(&arrival)),
            arrival,
            idle_max: selector.shared.config.range_idle_max,
            selector,
            unread: Vec::new(),
            backlog: Vec::new(),
            backlog_sent_bytes: 0,
            reader_watch: None,
            yields: false,
            rest_timer: None,
            first_line: FirstLine::default(),
            has_huge_length: false,
            head_bytes: 0,
            grown_buffers: None,
            reads_fill_buffer: false,
            lacks_memory: false,
            eof: false,
        }
    }

    pub(crate) fn state(&self) -> &Rc<SocketState> {
        &self.state
    }

    /// Receives into the selector's buffer: how many bytes, at most [`READ_BYTES_MAX`]; 0 at the
    /// peer's end.
    pub(crate) fn poll_receive(
        &mut self,
        bytes_max: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some(time) = self.state.take_rest() {
            self.rest_timer = Some(Box::pin(tokio::time::sleep(time)));
        }
        if let Some(timer) = &mut self.rest_timer {
            // The end of the rest is when the next request counts as come.
            let mut cx = Context::from_waker(&self.arrival_waker);
            ready!(timer.as_mut().poll(&mut cx));
            self.rest_timer = None;
        }
        let passes = !self.arrival.is_woken()
            || self.state.has_priority.get()
            || self.selector.turnstile.passes(self.selector.turn.number(), &self.state, cx.waker());
        if !passes {
            return Poll::Pending;
        }
        let _tag = tag::stage(Stage::Parse);
        let mut scratch = self.selector.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch[..bytes_max]);
        let mut cx = Context::from_waker(&self.arrival_waker);
        let Poll::Ready(received) = Pin::new(&mut self.stream).poll_read(&mut cx, &mut buffer)
        else {
            self.arrival.forget();
            return Poll::Pending;
        };
        received?;
        let received_bytes = buffer.filled().len();
        self.eof = received_bytes == 0;
        counters::add(&self.selector.counters.received_bytes, received_bytes as u64);
        self.state.received(received_bytes as u64, self.arrival.take_ns());
        Poll::Ready(Ok(received_bytes))
    }

    /// Leaves to hyper what was received last.
    pub(crate) fn hand_over(&mut self, received: Vec<u8>) {
        self.unread = received;
        self.state.activity.head_begins();
        self.head_bytes = 0;
    }

    /// Takes back what hyper has read of a head that is not complete.
    pub(crate) fn take_back(&mut self, read: &[u8]) {
        debug_assert!(self.unread.is_empty(), "hyper reads whenever it waits for a head");
        self.unread = read.to_vec();
        self.first_line = FirstLine::default();
        self.grown_buffers = None;
        self.head_bytes = 0;
        if !read.is_empty() {
            self.state.activity.head_begins();
        }
    }

    /// Whether bytes wait for hyper.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether hyper ended because there was no memory for the rest of a head.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.lacks_memory
    }

    /// How many bytes hyper may read at once. Where it may not read all that its buffer takes, the
    /// buffer does not grow.
    fn hyper_read_bytes_max(&mut self) -> io::Result<usize> {
        if self.grown_buffers.is_some() {
            return Ok(READ_BYTES_MAX);
        }
        let memory = &self.selector.shared.memory;
        if self.state.activity.is_in_head() {
            if self.head_bytes >= HYPER_READ_BYTES {
                self.grown_buffers = memory.try_reserve_buffers(GROWN_BUFFERS_BYTES);
                self.lacks_memory = self.grown_buffers.is_none();
            }
        } else if self.reads_fill_buffer {
            // A body is read all the same, if with more system calls.
            self.grown_buffers = memory.try_reserve_spare_buffers(GROWN_BUFFERS_BYTES);
        }
        if self.lacks_memory {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(HYPER_READ_BYTES - 1)
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

    /// Tells the peer that nothing more will come.
    pub(crate) async fn end_sending(&mut self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self).poll_shutdown(cx)).await
    }

    /// Takes what the peer still sends until it closes its side, so that the answer that ended the
    /// connection is not destroyed by the reset that closing with unread bytes would send. Bounded
    /// by `bytes_max` and `time_max`.
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
                match self.stream.try_read(&mut self.selector.scratch.borrow_mut()) {
                    Ok(0) => return,
                    Ok(n) => taken_bytes += n as u64,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        // Either end of it is the end of the connection.
        if tokio::time::timeout(time_max, drain).await.is_err() {
            self.selector.counters.linger_timed_out();
        }
    }

    /// Closes at once; with a reset where [`SocketState::reset_on_close`] asked for it.
    pub(crate) fn abort(self) {
        if self.state.reset.get() {
            // A socket that refuses the option is closed the ordinary way: the peer sees a short
            // body.
            let refused =
                socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).is_err();
            debug_assert!(!refused, "a connected TCP socket accepts SO_LINGER");
        }
    }

    /// The kernel took `n` bytes.
    fn progressed(&mut self, n: usize) {
        counters::add(&self.selector.counters.sent_bytes, n as u64);
        self.state.sent_bytes.set(self.state.sent_bytes.get() + n as u64);
        self.state.activity.progresses();
        if self.state.blocked.replace(false) {
            self.reader_watch = None;
        }
    }

    /// Looks whether the peer has closed its side, behind whatever it has sent that is not read
    /// yet.
    #[cold]
    fn look_for_peer(&self) {
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let at_once = Timespec::default();
        // A socket that cannot be looked at is read as one that has gone: nothing can be sent to it
        // either.
        let is_gone = match poll(&mut polled, Some(&at_once)) {
            Ok(_) => polled[0].revents().intersects(gone),
            Err(error) => error != Errno::INTR,
        };
        self.state.peer_left.set(is_gone);
    }

    /// The kernel has all that hyper wrote.
    #[inline]
    fn answer_left(&self) {
        if self.state.is_answered.get()
            && let Some(mut trace) = self.state.take_answered()
        {
            self.state.complete(&mut trace, self.selector.now_ns());
            self.selector.timings.record(&trace);
        }
    }

    /// The kernel takes nothing: wait for it as long as the peer takes something.
    fn blocked<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.state.blocked.set(true);
        let watch = self
            .reader_watch
            .get_or_insert_with(|| Box::new(ReaderWatch::new(&self.stream, self.idle_max)));
        ready!(watch.poll_idle(&self.stream, cx));
        counters::add(&self.selector.counters.readers_cut, 1);
        self.state.reset_on_close();
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the reader took nothing for too long",
        )))
    }

    /// Whether something was received and nothing sent since.
    pub(crate) fn has_unanswered(&self) -> bool {
        self.first_line.bytes > 0 || self.first_line.has_ended
    }

    /// Hyper answers `431` to every head that fills its buffer, and to the two greatest lengths.
    /// Where the request line is what is too long, or the body, this puts that `status` into the
    /// backlog instead. False when there is nothing to correct.
    #[cold]
    fn corrects_refusal(&mut self, slices: &[IoSlice<'_>], status: &str) -> bool {
        let answer = slices.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        let Some(rest) = answer.strip_prefix(b"HTTP/1.1 431 Request Header Fields Too Large")
        else {
            return false;
        };
        self.backlog.extend_from_slice(b"HTTP/1.1 ");
        self.backlog.extend_from_slice(status.as_bytes());
        self.backlog.extend_from_slice(rest);
        true
    }

    /// Makes room in the backlog for so many bytes, with which it has at most [`BACKLOG_BYTES`]:
    /// first a little, which most answers never exceed, then for all that it may have.
    fn make_room(&mut self, bytes: usize) {
        if self.backlog.capacity() - self.backlog.len() < bytes {
            let room = match self.backlog.len() {
                0 => bytes.max(4096),
                gathered_bytes => BACKLOG_BYTES - gathered_bytes,
            };
            self.backlog.reserve_exact(room);
        }
    }

    /// Sends the backlog.
    pub(crate) fn poll_backlog(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.backlog_sent_bytes < self.backlog.len() {
            match Pin::new(&mut self.stream)
                .poll_write(cx, &self.backlog[self.backlog_sent_bytes..])
            {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    self.backlog_sent_bytes += n;
                    self.progressed(n);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.blocked(cx),
            }
        }
        // Given back, unless more of the same answer comes: most connections never gather anything
        // again soon.
        if self.state.corked.get() {
            self.backlog.clear();
        } else {
            self.backlog = Vec::new();
        }
        self.backlog_sent_bytes = 0;
        Poll::Ready(Ok(()))
    }
}

/// Whether a head, or the piece of one, has one of the lengths that hyper cannot hold. One that
/// comes in two pieces is not seen.
fn has_huge_length(head: &[u8]) -> bool {
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.skip_while(|line| line.is_empty());
    lines.take_while(|line| !line.is_empty()).any(|line| {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
        let (name, value) = line.split_at(colon);
        name.eq_ignore_ascii_case(b"content-length")
            && HUGE_LENGTHS.iter().any(|huge| value.ends_with(huge))
    })
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.state.activity.hyper_reads();
        let bytes_max = cursor.remaining().min(socket.hyper_read_bytes_max()?);
        let (scratch, unread);
        let bytes = if socket.unread.is_empty() {
            let received_bytes = ready!(socket.poll_receive(bytes_max, cx))?;
            scratch = socket.selector.scratch.borrow();
            &scratch[..received_bytes]
        } else {
            let rest = socket.unread.split_off(bytes_max.min(socket.unread.len()));
            unread = std::mem::replace(&mut socket.unread, rest);
            &unread
        };
        if !bytes.is_empty() && socket.state.activity.head_begins() {
            socket.head_bytes = 0;
        }
        if socket.state.activity.is_in_head() {
            socket.has_huge_length |= has_huge_length(bytes);
        }
        socket.head_bytes += bytes.len();
        socket.reads_fill_buffer = bytes.len() == bytes_max;
        socket.first_line.receive(bytes);
        cursor.put_slice(bytes);
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let _tag = tag::stage(Stage::Respond);
        let total_bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let line = std::mem::take(&mut socket.first_line);
        let has_huge_length = std::mem::take(&mut socket.has_huge_length);
        let is_corrected = if line.bytes > LINE_BYTES_MAX {
            socket.corrects_refusal(slices, "414 URI Too Long")
        } else {
            has_huge_length && socket.corrects_refusal(slices, "413 Payload Too Large")
        };
        if is_corrected {
            return Poll::Ready(Ok(total_bytes));
        }
        if socket.state.corked.get() || !socket.backlog.is_empty() {
            if socket.backlog.len() + total_bytes <= BACKLOG_BYTES {
                socket.make_room(total_bytes);
                slices.iter().for_each(|slice| socket.backlog.extend_from_slice(slice));
                return Poll::Ready(Ok(total_bytes));
            }
            ready!(socket.poll_backlog(cx))?;
        }
        if std::mem::take(&mut socket.yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = if total_bytes <= GATHERED_BYTES_MAX {
            let mut scratch = socket.selector.scratch.borrow_mut();
            let mut gathered_bytes = 0;
            for slice in slices {
                scratch[gathered_bytes..][..slice.len()].copy_from_slice(slice);
                gathered_bytes += slice.len();
            }
            Pin::new(&mut socket.stream).poll_write(cx, &scratch[..gathered_bytes])
        } else {
            let mut parts = [IoSlice::new(&[]); WRITE_PARTS_MAX];
            let mut room_bytes = WRITE_BYTES_MAX;
            for (part, slice) in parts.iter_mut().zip(slices) {
                let bytes = slice.len().min(room_bytes);
                *part = IoSlice::new(&slice[..bytes]);
                room_bytes -= bytes;
            }
            let count = slices.len().min(WRITE_PARTS_MAX);
            Pin::new(&mut socket.stream).poll_write_vectored(cx, &parts[..count])
        };
        match written {
            Poll::Ready(Ok(n)) => {
                socket.yields = n == WRITE_BYTES_MAX;
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
        let _tag = tag::stage(Stage::Respond);
        if socket.state.corked.get() {
            return Poll::Ready(Ok(()));
        }
        // Also one that is empty now, which is given back then.
        if socket.backlog.capacity() > 0 {
            ready!(socket.poll_backlog(cx))?;
        }
        socket.answer_left();
        if socket.state.watches_peer.get() {
            socket.look_for_peer();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.state.cork(false);
        ready!(socket.poll_backlog(cx))?;
        Pin::new(&mut socket.stream).poll_shutdown(cx)
    }
}
