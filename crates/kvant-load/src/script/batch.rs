//! Finds the boundaries of requests in a script's text.
//!
//! Most scripts return one request from `wrk.format`, which needs no parsing. Other text (pipelined
//! or with its own formatting) is parsed as a server does: a head up to an empty line, and a body
//! with the length of its `Content-Length`, or in chunks.

use std::fmt::Write as _;

const INVALID_METHOD: &str = "invalid method";

/// A syntax error in the text of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// In words.
    pub(super) what: &'static str,
    /// The place of the error.
    pub(super) offset_bytes: usize,
}

impl Malformed {
    /// The error with line and column of `text`, each from 1.
    pub(super) fn describe(&self, text: &[u8]) -> String {
        let before = &text[..self.offset_bytes.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        let mut sentence =
            format!("{} at {line}:{column} of the text that request() returned", self.what);
        if self.what == INVALID_METHOD
            && let Some(name) = last_header(before)
        {
            write!(
                sentence,
                "; the head before it ends behind the header `{name}`: is there a line break in its value?"
            )
            .expect("writing to a string cannot fail");
        }
        sentence
    }
}

/// Calls `each` with the offset and the bytes, head and body, of every request in `text`. Empty
/// lines before and after requests belong to none, as in wrk2 and in servers.
pub(super) fn for_each_request<'a>(
    text: &'a [u8],
    mut each: impl FnMut(usize, &'a [u8]),
) -> Result<(), Malformed> {
    let mut start = after_line_breaks(text, 0);
    if start == text.len() {
        return Err(Malformed { what: "no request", offset_bytes: 0 });
    }
    while start < text.len() {
        let end = end_of_request(text, start)?;
        each(start, &text[start..end]);
        start = after_line_breaks(text, end);
    }
    Ok(())
}

/// The offset after the line breaks at `start`.
pub(super) fn after_line_breaks(text: &[u8], start: usize) -> usize {
    let is_break = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    start + text[start..].iter().take_while(is_break).count()
}

/// The first header of the first head with a control character, and that character. A bare line
/// feed is one if other lines end with CRLF.
pub(super) fn odd_header(text: &[u8]) -> Option<(String, char)> {
    let start = after_line_breaks(text, 0);
    let mut lines = text[start..].split(|&byte| byte == b'\n');
    let ends_with_both = lines.next()?.ends_with(b"\r");
    for line in lines {
        let (line, has_return) = match line.strip_suffix(b"\r") {
            Some(line) => (line, true),
            None => (line, false),
        };
        if line.is_empty() {
            return None;
        }
        let odd = match line.iter().find(|byte| byte.is_ascii_control() && **byte != b'\t') {
            Some(&byte) => char::from(byte),
            None if ends_with_both && !has_return => '\n',
            None => continue,
        };
        return Some((header_name(line), odd));
    }
    None
}

fn header_name(line: &[u8]) -> String {
    let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
    String::from_utf8_lossy(name).escape_debug().collect()
}

/// Checks the request line of HTTP/1: a method, a path without spaces, the version.
pub(super) fn check_first_line(request: &[u8]) -> Result<(), Malformed> {
    let line = request.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let malformed = |what, offset_bytes| Err(Malformed { what, offset_bytes });
    let method_len =
        line.iter().take_while(|byte| byte.is_ascii_alphabetic() || b"-_".contains(byte)).count();
    if method_len == 0 || line.get(method_len) != Some(&b' ') {
        return malformed(INVALID_METHOD, method_len);
    }
    let path_start = method_len + 1;
    let path_len =
        line[path_start..].iter().take_while(|&&byte| byte > b' ' && byte != 0x7f).count();
    if path_len == 0 {
        return malformed("no path", path_start);
    }
    let version_start = path_start + path_len;
    match &line[version_start..] {
        b" HTTP/1.1" | b" HTTP/1.0" => Ok(()),
        b"" => malformed("no HTTP version", version_start),
        _ => malformed(
            "neither HTTP/1.1 nor HTTP/1.0 after the path (a space in the path?)",
            version_start,
        ),
    }
}

fn end_of_request(text: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut content_length = 0;
    let mut is_chunked = false;
    let mut line_start = start;
    loop {
        let Some(line_len) = text[line_start..].iter().position(|&byte| byte == b'\n') else {
            return Err(Malformed {
                what: "incomplete request: no empty line after the headers",
                offset_bytes: text.len(),
            });
        };
        let line = &text[line_start..line_start + line_len];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let next_start = line_start + line_len + 1;
        if line.is_empty() {
            line_start = next_start;
            break;
        }
        if let Some(value) = value_of(line, b"content-length") {
            let parsed = std::str::from_utf8(value)
                .ok()
                .and_then(|value| value.trim().parse::<usize>().ok());
            let Some(parsed) = parsed else {
                return Err(Malformed { what: "invalid Content-Length", offset_bytes: line_start });
            };
            content_length = parsed;
        } else if let Some(value) = value_of(line, b"transfer-encoding") {
            is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
        }
        line_start = next_start;
    }
    let end = if is_chunked {
        end_of_chunks(text, line_start)?
    } else {
        line_start.saturating_add(content_length)
    };
    if end > text.len() {
        return Err(Malformed {
            what: "incomplete request: the body is shorter than its Content-Length",
            offset_bytes: text.len(),
        });
    }
    Ok(end)
}

fn end_of_chunks(text: &[u8], mut start: usize) -> Result<usize, Malformed> {
    let incomplete =
        Malformed { what: "incomplete request: no last chunk", offset_bytes: text.len() };
    loop {
        let line_len = text[start..].iter().position(|&byte| byte == b'\n').ok_or(incomplete)?;
        let digits: Vec<u8> = text[start..start + line_len]
            .iter()
            .copied()
            .take_while(u8::is_ascii_hexdigit)
            .collect();
        let digits = String::from_utf8(digits).unwrap_or_default();
        let Ok(chunk_len) = usize::from_str_radix(&digits, 16) else {
            return Err(Malformed { what: "invalid length of a chunk", offset_bytes: start });
        };
        start += line_len + 1;
        if chunk_len == 0 {
            break;
        }
        start = start.saturating_add(chunk_len).saturating_add(2);
        if start > text.len() {
            return Err(incomplete);
        }
    }
    // Trailers, up to an empty line.
    loop {
        let line_len = text[start..].iter().position(|&byte| byte == b'\n').ok_or(incomplete)?;
        let is_empty = matches!(&text[start..start + line_len], b"" | b"\r");
        start += line_len + 1;
        if is_empty {
            return Ok(start);
        }
    }
}

/// The value of the header `line` if its name is `name`.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    if rest.first() != Some(&b':') || !found.eq_ignore_ascii_case(name) {
        return None;
    }
    Some(&rest[1..])
}

/// The name of the last header of a head without a body right before the last line of `text`.
fn last_header(text: &[u8]) -> Option<String> {
    let mut lines = text.rsplit(|&byte| byte == b'\n').skip(1);
    let (empty, header) = (lines.next()?, lines.next()?);
    let is_header = header.contains(&b':') && lines.next().is_some();
    (matches!(empty, b"" | b"\r") && is_header).then(|| header_name(header))
}
