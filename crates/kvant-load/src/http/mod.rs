//! Parses HTTP/1.1 responses as they arrive: status line, headers, body framing (RFC 9112,
//! sections 6 and 7).
//!
//! Each connection has a [`ResponseParser`]. It consumes its input up to the end of a response, so
//! that a worker can read into one buffer for all its connections. A response that lies whole in
//! that buffer costs one call of httparse and no allocation; only partial lines and heads are kept.
//! Bodies are skipped, unless a [`Collector`] keeps them.
//!
//! Invariants:
//! 1. How a response is split into pieces does not change the result.
//! 2. Each call consumes all input, completes a response, or fails: callers never keep bytes.
//! 3. After an error the connection must be closed.

mod chunked;
mod collector;
mod framing;
mod head;

#[cfg(test)]
mod tests;

pub(crate) use collector::Collector;
pub(crate) use framing::ParseError;

use chunked::Chunked;
use framing::{HEAD_BYTES_MAX, prefix};
use head::{Framing, Head};

/// Parses the responses of one connection, one after the other.
#[derive(Debug, Default)]
pub(crate) struct ResponseParser {
    state: ParserState,
    /// A partial head. Empty in every state but [`ParserState::Head`].
    held: Vec<u8>,
    /// Whether bytes of an incomplete response, interim responses included, were consumed.
    has_begun: bool,
    status: u16,
    keeps_alive: bool,
}

#[derive(Debug, Default)]
enum ParserState {
    #[default]
    Head,
    Length {
        left_bytes: u64,
    },
    Chunked(Chunked),
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// The length of the input, unless a response ends within it.
    pub(crate) consumed_bytes: usize,
    /// The response that ends with the consumed bytes.
    pub(crate) response: Option<Response>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Whether the server reads another request from this connection.
    pub(crate) keeps_alive: bool,
}

impl ResponseParser {
    /// Discards a partial response, for a new connection; keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.state = ParserState::Head;
        self.held.clear();
        self.has_begun = false;
    }

    /// Consumes bytes up to the end of a response. `is_head` says whether the request was a `HEAD`.
    /// `collector` receives headers and body.
    ///
    /// # Errors
    /// The input is not a response: close the connection.
    pub(crate) fn parse(
        &mut self,
        input: &[u8],
        is_head: bool,
        mut collector: Option<&mut Collector>,
    ) -> Result<Parsed, ParseError> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let (taken, is_complete) = match &mut self.state {
                ParserState::Head => self.take_head(rest, is_head, collector.as_deref_mut())?,
                ParserState::Length { left_bytes } => {
                    let body = prefix(rest, *left_bytes);
                    *left_bytes -= body.len() as u64;
                    let is_complete = *left_bytes == 0;
                    collect_body(&mut collector, body)?;
                    (body.len(), is_complete)
                }
                ParserState::Chunked(chunked) => {
                    chunked.take(rest, |data| collect_body(&mut collector, data))?
                }
                ParserState::UntilClose => {
                    collect_body(&mut collector, rest)?;
                    (rest.len(), false)
                }
            };
            at += taken;
            self.has_begun |= taken > 0;
            if is_complete {
                return Ok(Parsed { consumed_bytes: at, response: Some(self.complete()) });
            }
            if at == input.len() {
                return Ok(Parsed { consumed_bytes: at, response: None });
            }
        }
    }

    /// The server closed the connection, which completes a response without a length; `None` when
    /// no response had begun.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] within any other response.
    pub(crate) fn end(&mut self) -> Result<Option<Response>, ParseError> {
        match self.state {
            ParserState::UntilClose => Ok(Some(self.complete())),
            ParserState::Head if !self.has_begun => Ok(None),
            _ => Err(ParseError::Truncated),
        }
    }

    fn complete(&mut self) -> Response {
        self.state = ParserState::Head;
        self.has_begun = false;
        Response { status: self.status, keeps_alive: self.keeps_alive }
    }

    /// Returns the number of bytes consumed and whether the response ends with the head.
    fn take_head(
        &mut self,
        input: &[u8],
        is_head: bool,
        collector: Option<&mut Collector>,
    ) -> Result<(usize, bool), ParseError> {
        let held_bytes = self.held.len();
        let piece = &input[..input.len().min(HEAD_BYTES_MAX - held_bytes)];
        let head = if held_bytes == 0 {
            head::parse(piece, is_head, collector)?
        } else {
            self.held.extend_from_slice(piece);
            // Each attempt parses from the first byte: wait for the empty line.
            match has_empty_line(&self.held[held_bytes.saturating_sub(2)..]) {
                true => head::parse(&self.held, is_head, collector)?,
                false => None,
            }
        };
        match head {
            Some(head) => {
                self.held.clear();
                Ok((head.bytes - held_bytes, self.enter(&head)))
            }
            None if held_bytes + piece.len() == HEAD_BYTES_MAX => Err(ParseError::HeadTooBig),
            None => {
                if held_bytes == 0 {
                    self.held.extend_from_slice(piece);
                }
                Ok((piece.len(), false))
            }
        }
    }

    /// Enters the state after a head. Returns whether the response ends with it.
    fn enter(&mut self, head: &Head) -> bool {
        self.status = head.status;
        self.keeps_alive = head.keeps_alive && head.framing != Framing::UntilClose;
        self.state = match head.framing {
            Framing::Interim => ParserState::Head,
            Framing::Length(left_bytes) => ParserState::Length { left_bytes },
            Framing::Chunked => ParserState::Chunked(Chunked::default()),
            Framing::UntilClose => ParserState::UntilClose,
        };
        head.framing == Framing::Length(0)
    }
}

fn collect_body(collector: &mut Option<&mut Collector>, data: &[u8]) -> Result<(), ParseError> {
    match collector {
        Some(collector) => collector.add_body(data),
        None => Ok(()),
    }
}

/// Whether `bytes` contain the empty line that ends a head, with or without carriage returns.
fn has_empty_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|two| two == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}
