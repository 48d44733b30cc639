//! Understands answers as they arrive: status line, headers, framing of the body (RFC 9112,
//! sections 6 and 7).
//!
//! Bytes go through a [`ResponseParser`], one for each connection. It takes all that it is given up
//! to the end of an answer, so that a worker reads into one buffer for all its connections. An
//! answer that lies whole in that buffer costs one call of httparse and no allocation; only a head
//! that arrives in pieces is kept. A body is counted and passed by, unless a [`Collector`] asks for
//! it.
//!
//! Invariants:
//! 1. How an answer is cut into pieces changes nothing in what is understood.
//! 2. Either all input is consumed, or an answer is complete, or it is an error: callers never keep
//!    bytes for later.
//! 3. After an error nothing can be said about the rest of the connection: it has to be closed.
//!
//! Threads: none of its own; a parser belongs to its connection.

mod chunked;
mod collector;
mod head;

#[cfg(test)]
mod tests;

pub(crate) use collector::Collector;

use chunked::Chunked;
use head::{Framing, Head};
use std::fmt;

/// Longest head of an answer (status line and headers), and longest sum of chunk extensions and
/// trailers, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most headers of an answer.
pub(crate) const HEADERS_MAX: usize = 128;
/// Longest body that is kept for a script, in bytes. Bodies that nobody looks at may be of any
/// length.
pub(crate) const BODY_COLLECTED_BYTES_MAX: usize = 64 << 20;

/// Understands the answers of one connection, one after the other.
#[derive(Debug, Default)]
pub(crate) struct ResponseParser {
    state: State,
    /// The beginning of a head whose end has not arrived. Empty in every state but [`State::Head`].
    held: Vec<u8>,
    /// Bytes of this answer that were consumed, interim answers included.
    bytes: u64,
    status: u16,
    keeps_alive: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Length {
        left_bytes: u64,
    },
    Chunked(Chunked),
    UntilClose,
}

/// What came of some input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How many bytes of the input belong to what was understood so far; all of it unless an answer
    /// is complete.
    pub(crate) consumed_bytes: usize,
    /// The answer that ends with the consumed bytes.
    pub(crate) answer: Option<Answer>,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// Whether the server reads another request from this connection.
    pub(crate) keeps_alive: bool,
    /// All its bytes: status line, headers, framing, body, and interim answers (1xx) before it.
    pub(crate) bytes: u64,
}

/// Why input is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not a status line and headers.
    Head(httparse::Error),
    /// A status under 100.
    Status,
    /// A head over [`HEAD_BYTES_MAX`].
    HeadTooBig,
    /// `Content-Length` that is no number, that contradicts another one, or beside
    /// `Transfer-Encoding`.
    Length,
    /// `Transfer-Encoding` of an HTTP/1.0 server.
    TransferEncoding,
    /// A chunked body that breaks its own framing, or whose extensions and trailers are over
    /// [`HEAD_BYTES_MAX`].
    Chunk,
    /// 101: nobody asked for another protocol.
    Switched,
    /// A body over [`BODY_COLLECTED_BYTES_MAX`] that a script is to see.
    BodyTooBig,
    /// The connection ended within an answer.
    Truncated,
}

impl ResponseParser {
    /// A parser that expects the beginning of an answer.
    pub(crate) fn new() -> ResponseParser {
        ResponseParser::default()
    }

    /// Whether no byte of an answer has been seen since the last one was complete.
    pub(crate) fn is_idle(&self) -> bool {
        self.bytes == 0
    }

    /// Forgets what has been seen, for a new connection; keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.state = State::Head;
        self.held.clear();
        self.bytes = 0;
    }

    /// Takes bytes up to the end of the answer, or all. `is_head` says whether this answer is one
    /// to a `HEAD`. Headers and body go to `collector` too, which starts anew with each answer.
    ///
    /// # Errors
    /// The input is no answer: close the connection.
    pub(crate) fn parse(
        &mut self,
        input: &[u8],
        is_head: bool,
        mut collector: Option<&mut Collector>,
    ) -> Result<Step, Fault> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let (taken, is_complete) = match &mut self.state {
                State::Head => self.take_head(rest, is_head, collector.as_deref_mut())?,
                State::Length { left_bytes } => {
                    let taken = usize::try_from(*left_bytes)
                        .map_or(rest.len(), |left| left.min(rest.len()));
                    *left_bytes -= taken as u64;
                    let is_complete = *left_bytes == 0;
                    collect_body(&mut collector, &rest[..taken])?;
                    (taken, is_complete)
                }
                State::Chunked(chunked) => {
                    chunked.take(rest, |data| collect_body(&mut collector, data))?
                }
                State::UntilClose => {
                    collect_body(&mut collector, rest)?;
                    (rest.len(), false)
                }
            };
            at += taken;
            self.bytes += taken as u64;
            if is_complete {
                return Ok(Step { consumed_bytes: at, answer: Some(self.complete()) });
            }
            if at == input.len() {
                return Ok(Step { consumed_bytes: at, answer: None });
            }
        }
    }

    /// The server ended the connection. That completes an answer without a length of its own;
    /// `None` says that no answer had begun.
    ///
    /// # Errors
    /// [`Fault::Truncated`] within an answer.
    pub(crate) fn end(&mut self) -> Result<Option<Answer>, Fault> {
        match self.state {
            State::UntilClose => Ok(Some(self.complete())),
            State::Head if self.is_idle() => Ok(None),
            _ => Err(Fault::Truncated),
        }
    }

    fn complete(&mut self) -> Answer {
        let answer =
            Answer { status: self.status, keeps_alive: self.keeps_alive, bytes: self.bytes };
        self.state = State::Head;
        self.bytes = 0;
        answer
    }

    /// How much of `input` belongs to the head, and whether the answer ends with it.
    fn take_head(
        &mut self,
        input: &[u8],
        is_head: bool,
        collector: Option<&mut Collector>,
    ) -> Result<(usize, bool), Fault> {
        if self.held.is_empty() {
            return match head::parse(input, is_head, collector)? {
                Some(head) if head.bytes > HEAD_BYTES_MAX => Err(Fault::HeadTooBig),
                Some(head) => Ok((head.bytes, self.enter(&head))),
                None if input.len() >= HEAD_BYTES_MAX => Err(Fault::HeadTooBig),
                None => {
                    self.held.extend_from_slice(input);
                    Ok((input.len(), false))
                }
            };
        }
        // What follows the head in `input` is held with it for a moment.
        let before_bytes = self.held.len();
        let piece = &input[..input.len().min(HEAD_BYTES_MAX - before_bytes)];
        self.held.extend_from_slice(piece);
        // Parsing starts at the first byte again: only where an empty line says that it can
        // succeed.
        if has_empty_line(&self.held[before_bytes.saturating_sub(2)..])
            && let Some(head) = head::parse(&self.held, is_head, collector)?
        {
            self.held.clear();
            return Ok((head.bytes - before_bytes, self.enter(&head)));
        }
        if self.held.len() == HEAD_BYTES_MAX {
            return Err(Fault::HeadTooBig);
        }
        Ok((piece.len(), false))
    }

    /// Goes on to what follows a head; whether the answer ends with it.
    fn enter(&mut self, head: &Head) -> bool {
        self.status = head.status;
        self.keeps_alive = head.keeps_alive && head.framing != Framing::UntilClose;
        self.state = match head.framing {
            Framing::Interim => State::Head,
            Framing::Length(left_bytes) => State::Length { left_bytes },
            Framing::Chunked => State::Chunked(Chunked::default()),
            Framing::UntilClose => State::UntilClose,
        };
        head.framing == Framing::Length(0)
    }
}

fn collect_body(collector: &mut Option<&mut Collector>, data: &[u8]) -> Result<(), Fault> {
    match collector {
        Some(collector) => collector.add_body(data),
        None => Ok(()),
    }
}

/// Whether an empty line, which ends a head, lies in `bytes`, with or without carriage returns.
fn has_empty_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|two| two == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Head(error) => write!(f, "not HTTP/1.1: {error}"),
            Fault::Status => write!(f, "the status is under 100"),
            Fault::HeadTooBig => write!(f, "the head is over {HEAD_BYTES_MAX} bytes"),
            Fault::Length => write!(f, "Content-Length is no number or contradicts another length"),
            Fault::TransferEncoding => write!(f, "Transfer-Encoding in HTTP/1.0"),
            Fault::Chunk => write!(f, "the chunked body is malformed"),
            Fault::Switched => write!(f, "101 without having been asked for"),
            Fault::BodyTooBig => write!(
                f,
                "the body is over {BODY_COLLECTED_BYTES_MAX} bytes, too long for a script"
            ),
            Fault::Truncated => write!(f, "the connection ended within an answer"),
        }
    }
}
