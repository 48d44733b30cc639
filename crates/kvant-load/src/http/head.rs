//! Response heads: how the body is framed, and whether the connection stays open.

use super::collector::Collector;
use super::framing::{HEADERS_MAX, ParseError};
use httparse::{Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Its length, including the empty line.
    pub(super) bytes: usize,
    pub(super) status: u16,
    /// Whether version and `Connection` allow another request.
    pub(super) keeps_alive: bool,
    pub(super) framing: Framing,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// An interim response (1xx): another head follows.
    Interim,
    /// By length; 0 for responses that never have a body.
    Length(u64),
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// Parses a head at the start of `input`; `None` when it is incomplete. `collector` receives the
/// headers of a complete head.
pub(super) fn parse(
    input: &[u8],
    is_head: bool,
    collector: Option<&mut Collector>,
) -> Result<Option<Head>, ParseError> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, input, &mut headers)
        .map_err(ParseError::Head)?;
    let Status::Complete(bytes) = parsed else {
        return Ok(None);
    };
    let status = response.code.expect("a complete head has a status");
    let is_http_1_0 = response.version == Some(0);
    let fields = Fields::of(response.headers)?;
    let framing = match status {
        0..100 => return Err(ParseError::Status),
        101 => return Err(ParseError::Switched),
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

#[derive(Default)]
struct Fields {
    length_bytes: Option<u64>,
    /// Whether the last transfer coding is `chunked`; `None` without `Transfer-Encoding`.
    is_chunked: Option<bool>,
    says_close: bool,
    says_keep_alive: bool,
}

impl Fields {
    fn of(headers: &[Header<'_>]) -> Result<Fields, ParseError> {
        let mut fields = Fields::default();
        for Header { name, value } in headers {
            // Comparing lengths first rules out almost all other headers.
            match name.len() {
                14 if name.eq_ignore_ascii_case("content-length") => fields.add_length(value)?,
                10 if name.eq_ignore_ascii_case("connection") => {
                    for token in tokens(value) {
                        fields.says_close |= token.eq_ignore_ascii_case(b"close");
                        fields.says_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                    let last = tokens(value).last().unwrap_or_default();
                    fields.is_chunked = Some(last.eq_ignore_ascii_case(b"chunked"));
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// A length may be repeated, in a list or in several headers, if it is the same.
    fn add_length(&mut self, value: &[u8]) -> Result<(), ParseError> {
        let mut has_any = false;
        for token in tokens(value) {
            let length_bytes = decimal(token).ok_or(ParseError::Length)?;
            if *self.length_bytes.get_or_insert(length_bytes) != length_bytes {
                return Err(ParseError::Length);
            }
            has_any = true;
        }
        if has_any { Ok(()) } else { Err(ParseError::Length) }
    }

    fn framing(&self, is_http_1_0: bool) -> Result<Framing, ParseError> {
        match (self.is_chunked, self.length_bytes) {
            (Some(_), _) if is_http_1_0 => Err(ParseError::TransferEncoding),
            // Request smuggling depends on such an ambiguity: a server that sends both is broken.
            (Some(_), Some(_)) => Err(ParseError::Length),
            (Some(true), None) => Ok(Framing::Chunked),
            (None, Some(length_bytes)) => Ok(Framing::Length(length_bytes)),
            (Some(false) | None, None) => Ok(Framing::UntilClose),
        }
    }
}

/// The non-empty elements of a comma-separated list.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// A number without a sign.
fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    digits.parse().ok()
}
