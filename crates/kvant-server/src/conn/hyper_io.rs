//! A socket as hyper's I/O object: what hyper reads, and the corrections of its refusals.

use super::socket::{HEAD_BUFFER_BYTES, READ_BYTES_MAX, Socket};
use hyper::rt::{Read, ReadBufCursor, Write};
use kvant_base::tag::{self, Stage};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The lengths of a body, in digits, that hyper reserves for its own use.
const HUGE_LENGTHS: [&[u8]; 2] = [b"18446744073709551614", b"18446744073709551615"];
/// Hyper's read buffer at first. It grows when a read fills it.
const HYPER_READ_BYTES: usize = 8 << 10;
/// Memory of hyper's read buffers once they have grown: one that is being filled, and one whose
/// bytes a body still holds.
const GROWN_BUFFERS_BYTES: u64 = 2 * HEAD_BUFFER_BYTES as u64;
/// Longer request lines have a target of more than the 65,534 bytes that hyper accepts.
const LINE_BYTES_MAX: usize = 65_534 + "DELETE  HTTP/1.1\r\n".len();

impl Socket {
    /// Whether hyper ended because there was no memory for the rest of a head.
    pub(super) fn lacks_memory(&self) -> bool {
        self.hyper_reads.lacks_memory
    }

    /// Whether something was received and nothing sent since.
    pub(super) fn has_unanswered(&self) -> bool {
        let first_line = &self.hyper_reads.first_line;
        first_line.bytes > 0 || first_line.has_ended
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

    /// Hyper responds `431` to every head that fills its buffer, and to the two greatest lengths.
    /// Where the request line is too long, or the body, this appends that `status` to the backlog
    /// instead. False when the response is another one.
    #[cold]
    fn corrects_refusal(&mut self, parts: &[IoSlice<'_>], status: &str) -> bool {
        let response = parts.iter().map(|part| &**part).collect::<Vec<_>>().concat();
        let Some(rest) = response.strip_prefix(b"HTTP/1.1 431 Request Header Fields Too Large")
        else {
            return false;
        };
        for part in [b"HTTP/1.1 ", status.as_bytes(), rest] {
            self.backlog.extend_from_slice(part);
        }
        true
    }
}

/// Whether a head, or a piece of one, has one of the lengths that hyper cannot represent. A length
/// that is split between two pieces is not found.
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
        socket.state.progress.note_hyper_reads();
        let bytes_max = cursor.remaining().min(socket.hyper_read_bytes_max()?);
        let (read_buffer, unread);
        let bytes = if socket.unread.is_empty() {
            let received_bytes = ready!(socket.poll_receive(bytes_max, cx))?;
            read_buffer = socket.cx.buffers.read.borrow();
            read_buffer.received(received_bytes)
        } else {
            let rest = socket.unread.split_off(bytes_max.min(socket.unread.len()));
            unread = std::mem::replace(&mut socket.unread, rest);
            &unread
        };
        let reads = &mut socket.hyper_reads;
        if !bytes.is_empty() && socket.state.progress.begin_head() {
            reads.head_bytes = 0;
        }
        if socket.state.progress.is_in_head() {
            reads.has_huge_length |= has_huge_length(bytes);
        }
        reads.head_bytes += bytes.len();
        reads.fills_buffer = bytes.len() == bytes_max;
        reads.first_line.receive(bytes);
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
        let line = std::mem::take(&mut socket.hyper_reads.first_line);
        let has_huge_length = std::mem::take(&mut socket.hyper_reads.has_huge_length);
        let is_corrected = if line.bytes > LINE_BYTES_MAX {
            socket.corrects_refusal(parts, "414 URI Too Long")
        } else {
            has_huge_length && socket.corrects_refusal(parts, "413 Payload Too Large")
        };
        if is_corrected {
            return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
        }
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
        self.get_mut().poll_shutdown(cx)
    }
}
