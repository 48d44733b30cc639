//! The chunked framing of bodies (RFC 9112, section 7.1), byte by byte but for the data.
//!
//! Extensions and trailers are passed by. Lines end with CR LF and nothing less: what is between
//! chunks is written by programs, and two readings of it are what smuggling needs.

use super::{Fault, HEAD_BYTES_MAX};

#[cfg(test)]
mod tests;

/// Where in a chunked body we are.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
    /// Bytes of extensions and trailers so far.
    passed_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Within the digits of a chunk's length.
    Size {
        size_bytes: u64,
        digits: u8,
    },
    /// White space after the digits, and extensions after a semicolon.
    Extension {
        size_bytes: u64,
        is_past_semicolon: bool,
    },
    /// After the CR of the line with the length.
    SizeLf {
        size_bytes: u64,
    },
    /// Within the data.
    Data {
        left_bytes: u64,
    },
    /// After the data.
    DataCr,
    DataLf,
    /// At the start of a trailer, or of the empty line that ends the body.
    Trailer,
    /// Within a trailer.
    TrailerLine,
    TrailerLf,
    /// After the CR of the last, empty line.
    LastLf,
}

impl Default for State {
    fn default() -> State {
        State::Size { size_bytes: 0, digits: 0 }
    }
}

impl Chunked {
    /// Takes bytes up to the end of the body, or all: how many, and whether the body is complete.
    /// Data goes to `on_data`.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        mut on_data: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(usize, bool), Fault> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if let State::Data { left_bytes } = self.state {
                let rest = &input[at..];
                let taken =
                    usize::try_from(left_bytes).map_or(rest.len(), |left| left.min(rest.len()));
                on_data(&rest[..taken])?;
                at += taken;
                let left_bytes = left_bytes - taken as u64;
                self.state =
                    if left_bytes == 0 { State::DataCr } else { State::Data { left_bytes } };
                continue;
            }
            at += 1;
            match self.after(byte)? {
                Some(state) => self.state = state,
                None => return Ok((at, true)),
            }
        }
        Ok((at, false))
    }

    /// The state after a byte that is not data; `None` after the last byte of the body.
    fn after(&mut self, byte: u8) -> Result<Option<State>, Fault> {
        let state = match (self.state, byte) {
            (State::Size { size_bytes, digits: 1.. }, b'\r') => State::SizeLf { size_bytes },
            (State::Size { size_bytes, digits: 1.. }, b';' | b' ' | b'\t') => {
                State::Extension { size_bytes, is_past_semicolon: byte == b';' }
            }
            // 16 digits are 64 bits.
            (State::Size { size_bytes, digits: digits @ ..16 }, _) => {
                let digit = (byte as char).to_digit(16).ok_or(Fault::Chunk)?;
                State::Size { size_bytes: size_bytes << 4 | u64::from(digit), digits: digits + 1 }
            }
            (State::Extension { size_bytes, .. }, b'\r') => State::SizeLf { size_bytes },
            (State::Extension { size_bytes, is_past_semicolon }, _) => {
                self.pass_by(byte)?;
                if !is_past_semicolon && !matches!(byte, b';' | b' ' | b'\t') {
                    return Err(Fault::Chunk);
                }
                State::Extension {
                    size_bytes,
                    is_past_semicolon: is_past_semicolon || byte == b';',
                }
            }
            (State::SizeLf { size_bytes: 0 }, b'\n') => State::Trailer,
            (State::SizeLf { size_bytes }, b'\n') => State::Data { left_bytes: size_bytes },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::default(),
            (State::Trailer, b'\r') => State::LastLf,
            (State::TrailerLine, b'\r') => State::TrailerLf,
            (State::Trailer | State::TrailerLine, _) => {
                self.pass_by(byte)?;
                State::TrailerLine
            }
            (State::TrailerLf, b'\n') => State::Trailer,
            (State::LastLf, b'\n') => return Ok(None),
            _ => return Err(Fault::Chunk),
        };
        Ok(Some(state))
    }

    fn pass_by(&mut self, byte: u8) -> Result<(), Fault> {
        self.passed_bytes += 1;
        if byte == b'\n' || self.passed_bytes > HEAD_BYTES_MAX {
            return Err(Fault::Chunk);
        }
        Ok(())
    }
}
