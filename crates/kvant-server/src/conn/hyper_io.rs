//! A socket as hyper's I/O object: what hyper reads, and its refusals that need another status.

use super::fast_path;
use super::socket::{HEAD_BUFFER_BYTES, READ_BYTES_MAX, Socket};
use hyper::rt::{Read, ReadBufCursor, Write};
use kvant_base::tag::{self, Stage};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The beginning of the response that hyper sends by itself to a head that it finds too large.
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n";
/// Hyper's read buffer at first. It grows when a read fills it.
const HYPER_READ_BYTES: usize = 8 << 10;
/// Memory of hyper's read buffers once they have grown: one that is being filled, and one whose
/// bytes a body still holds.
const GROWN_BUFFERS_BYTES: u64 = 2 * HEAD_BUFFER_BYTES as u64;
/// Longer request lines have a target of more than the 65,534 bytes that hyper accepts.
const LINE_BYTES_MAX: usize = 65_534 + "DELETE  HTTP/1.1\r\n".len();
/// Hyper accepts this many headers.
const HEADERS_MAX: usize = 100;
/// A head with a length that hyper rejects is longer than this.
const HUGE_LENGTH_HEAD_BYTES_MIN: usize = 32;

impl Socket {
    /// Whether hyper ended because there was no memory for the rest of a head.
    pub(super) fn lacks_memory(&self) -> bool {
        self.hyper_reads.lacks_memory
    }

    /// How many bytes hyper may read at once. A read that does not fill hyper's buffer keeps the
    /// buffer from growing.
    fn hyper_read_bytes_max(&mut self) -> io::Result<usize> {
        let (reads, memory) = (&mut self.hyper_reads, &self.cx.memory);
        if reads.grown_buffers.is_some() {
            return Ok(READ_BYTES_MAX);
        }
        if self.state.progress.is_in_head() {
            if reads.head_bytes >= HYPER_READ_BYTES {
                reads.grown_buffers = memory.try_reserve_buffers(GROWN_BUFFERS_BYTES);
                reads.lacks_memory = reads.grown_buffers.is_none();
            }
        } else if reads.fills_buffer {
            // Without memory a body is read with more system calls.
            reads.grown_buffers = memory.try_reserve_spare_buffers(GROWN_BUFFERS_BYTES);
        }
        if reads.lacks_memory {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(HYPER_READ_BYTES - 1)
    }
}

/// The status for a head that hyper found too large. Hyper responds `431` to a head that fills its
/// buffer, to one with too many headers, and to the lengths 2^64-1 and 2^64-2. `unread` is what its
/// buffer still holds: the head, except that hyper has removed one with such a length.
pub(super) fn status_of_too_large(unread: &[u8]) -> &'static str {
    let fills_buffer = unread.len() + HUGE_LENGTH_HEAD_BYTES_MIN > HEAD_BUFFER_BYTES;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let parsed = httparse::Request::new(&mut headers).parse(unread);
    if !fills_buffer && parsed != Err(httparse::Error::TooManyHeaders) {
        return "413 Payload Too Large";
    }
    let line_bytes = unread.iter().position(|&byte| byte == b'\n').unwrap_or(unread.len());
    match line_bytes > LINE_BYTES_MAX {
        true => "414 URI Too Long",
        false => "431 Request Header Fields Too Large",
    }
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if socket.state.progress.leaves_hyper() {
            return Poll::Pending;
        }
        socket.state.progress.note_hyper_reads();
        let bytes_max = cursor.remaining().min(socket.hyper_read_bytes_max()?);
        let (read_buffer, unread);
        let bytes = if socket.unread.is_empty() {
            let received_bytes = ready!(socket.poll_receive(bytes_max))?;
            read_buffer = socket.cx.buffers.read.borrow();
            let received = read_buffer.received(received_bytes);
            let state = &socket.state;
            let begins_request = state.progress.is_idle() && !state.has_body.get();
            if begins_request && fast_path::serves(&socket.cx, received) {
                socket.unread = received.to_vec();
                state.progress.leave_hyper();
                return Poll::Pending;
            }
            received
        } else {
            let rest = socket.unread.split_off(bytes_max.min(socket.unread.len()));
            unread = std::mem::replace(&mut socket.unread, rest);
            &unread
        };
        let reads = &mut socket.hyper_reads;
        if !bytes.is_empty() && socket.state.progress.begin_head() {
            reads.head_bytes = 0;
        }
        reads.head_bytes += bytes.len();
        reads.fills_buffer = bytes.len() == bytes_max;
        reads.received_since_write |= !bytes.is_empty();
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
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let _tag = tag::stage(Stage::Respond);
        // While there is a response, these may be bytes of a record: a write may begin with one.
        if parts.first().is_some_and(|head| head.starts_with(TOO_LARGE))
            && !socket.state.has_exchange()
        {
            socket.hyper_reads.is_too_large = true;
            return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
        }
        socket.hyper_reads.received_since_write = false;
        socket.poll_write_parts(cx, parts)
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
        ready!(socket.poll_backlog(cx))?;
        socket.note_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        // The response to a head that is too large is still to be sent.
        if socket.hyper_reads.is_too_large {
            return Poll::Ready(Ok(()));
        }
        socket.poll_shutdown(cx)
    }
}
