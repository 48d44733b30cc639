//! The head of an answer: what of it decides how the body is framed and whether the connection
//! stays open.

use super::{Collector, Fault, HEADERS_MAX};
use httparse::{Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// What a head says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Its length, with the empty line.
    pub(super) bytes: usize,
    pub(super) status: u16,
    /// Whether the connection stays open as far as version and `Connection` say.
    pub(super) keeps_alive: bool,
    pub(super) framing: Framing,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Not the answer yet: another head follows (1xx).
    Interim,
    /// So many bytes; 0 for answers that never have a body.
    Length(u64),
    /// Chunks that say their own lengths.
    Chunked,
    /// All that comes until the connection ends.
    UntilClose,
}

/// Parses a head at the start of `input`; `None` when its end is not there. A complete head goes to
/// `collector`.
pub(super) fn parse(
    input: &[u8],
    is_head: bool,
    collector: Option<&mut Collector>,
) -> Result<Option<Head>, Fault> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, input, &mut headers)
        .map_err(Fault::Head)?;
    let Status::Complete(bytes) = parsed else {
        return Ok(None);
    };
    let status = response.code.expect("a complete head has a status");
    let is_http_1_0 = response.version == Some(0);
    let fields = Fields::of(response.headers)?;

    let framing = match status {
        0..100 => return Err(Fault::Status),
        101 => return Err(Fault::Switched),
        100..200 => Framing::Interim,
        204 | 304 => Framing::Length(0),
        _ if is_head => Framing::Length(0),
        _ => fields.framing(is_http_1_0)?,
    };
    if let Some(collector) = collector {
        collector.start(response.headers);
    }
    let keeps_alive = !fields.says_close && (!is_http_1_0 || fields.says_keep_alive);
    Ok(Some(Head { bytes, status, keeps_alive, framing }))
}

/// The headers that matter.
#[derive(Default)]
struct Fields {
    length_bytes: Option<u64>,
    /// The last transfer coding; whether it is `chunked`.
    is_chunked: Option<bool>,
    says_close: bool,
    says_keep_alive: bool,
}

impl Fields {
    fn of(headers: &[Header<'_>]) -> Result<Fields, Fault> {
        let mut fields = Fields::default();
        for header in headers {
            // Lengths differ: one comparison sorts out almost all others.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.add_length(header.value)?
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.add_connection(header.value)
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let last = tokens(header.value).last();
                    fields.is_chunked =
                        Some(last.is_some_and(|last| last.eq_ignore_ascii_case(b"chunked")));
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// A length may be repeated (as a list, or as several headers) if it is the same.
    fn add_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        let mut count = 0;
        for token in tokens(value) {
            let length_bytes = decimal(token).ok_or(Fault::Length)?;
            if *self.length_bytes.get_or_insert(length_bytes) != length_bytes {
                return Err(Fault::Length);
            }
            count += 1;
        }
        if count == 0 { Err(Fault::Length) } else { Ok(()) }
    }

    fn add_connection(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.says_close |= token.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn framing(&self, is_http_1_0: bool) -> Result<Framing, Fault> {
        match (self.is_chunked, self.length_bytes) {
            (Some(_), _) if is_http_1_0 => Err(Fault::TransferEncoding),
            // Which of both holds is what request smuggling plays with: a server that says both is
            // broken.
            (Some(_), Some(_)) => Err(Fault::Length),
            (Some(true), None) => Ok(Framing::Chunked),
            (None, Some(length_bytes)) => Ok(Framing::Length(length_bytes)),
            (Some(false) | None, None) => Ok(Framing::UntilClose),
        }
    }
}

/// The elements of a list, without the white space around them and without empty ones.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// A number of decimal digits alone.
fn decimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}
