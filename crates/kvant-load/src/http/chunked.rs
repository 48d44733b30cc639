//! Chunked bodies (RFC 9112, section 7.1), line by line. Extensions and trailers are ignored.
//!
//! Lines end with CR LF and nothing else: a lenient reading is what request smuggling needs.

use super::framing::{HEAD_BYTES_MAX, ParseError, prefix};
use httparse::{Status, parse_chunk_size};

#[cfg(test)]
mod tests;

#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: ChunkState,
    /// A line whose end has not arrived.
    held: Vec<u8>,
    /// Bytes of extensions and trailers so far.
    ignored_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    /// In the line with a chunk's length.
    #[default]
    Size,
    Data {
        left_bytes: u64,
    },
    /// In the line end after the data.
    DataEnd,
    /// In a trailer, or in the empty line that ends the body.
    Trailer,
    End,
}

impl Chunked {
    /// Consumes bytes up to the end of the body, and passes the data to `on_data`. Returns the
    /// number of bytes consumed and whether the body is complete.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        mut on_data: impl FnMut(&[u8]) -> Result<(), ParseError>,
    ) -> Result<(usize, bool), ParseError> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::End {
            let rest = &input[at..];
            if let ChunkState::Data { left_bytes } = &mut self.state {
                let data = prefix(rest, *left_bytes);
                on_data(data)?;
                at += data.len();
                *left_bytes -= data.len() as u64;
                if *left_bytes == 0 {
                    self.state = ChunkState::DataEnd;
                }
                continue;
            }
            let line_bytes = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let piece = &rest[..line_bytes.unwrap_or(rest.len())];
            at += piece.len();
            if line_bytes.is_some() && self.held.is_empty() {
                self.take_line(piece)?;
            } else {
                let mut line = std::mem::take(&mut self.held);
                line.extend_from_slice(piece);
                self.take_line(&line)?;
                if line_bytes.is_none() {
                    self.held = line;
                }
            }
        }
        Ok((at, self.state == ChunkState::End))
    }

    /// Checks a line, or the beginning of one, and moves on at its end.
    fn take_line(&mut self, line: &[u8]) -> Result<(), ParseError> {
        let is_complete = line.ends_with(b"\n");
        let is_cr_without_lf = |pair: &[u8]| (pair[0] == b'\r') != (pair[1] == b'\n');
        if line[0] == b'\n' || line.windows(2).any(is_cr_without_lf) {
            return Err(ParseError::Chunk);
        }
        let (next, ignored_bytes) = match self.state {
            ChunkState::Size => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                let next = match parse_chunk_size(line).map_err(|_| ParseError::Chunk)? {
                    Status::Complete((_, 0)) => ChunkState::Trailer,
                    Status::Complete((_, left_bytes)) => ChunkState::Data { left_bytes },
                    Status::Partial => ChunkState::Size,
                };
                if digits == 0 {
                    return Err(ParseError::Chunk);
                }
                (next, (line.len() - digits).saturating_sub(b"\r\n".len()))
            }
            ChunkState::DataEnd if b"\r\n".starts_with(line) => (ChunkState::Size, 0),
            ChunkState::Trailer if line == b"\r\n" => (ChunkState::End, 0),
            ChunkState::Trailer => (ChunkState::Trailer, line.len()),
            _ => return Err(ParseError::Chunk),
        };
        if self.ignored_bytes + ignored_bytes > HEAD_BYTES_MAX {
            return Err(ParseError::Chunk);
        }
        if is_complete {
            self.ignored_bytes += ignored_bytes;
            self.state = next;
        }
        Ok(())
    }
}
