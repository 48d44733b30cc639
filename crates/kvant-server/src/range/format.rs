//! How the records of a range are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{BufMut, BytesMut};
use http::header::{GetAll, HeaderValue};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `KEY\nVALUE`, a chunk each.
    Plain,
    /// A JSON object a line.
    JsonLines,
    /// Lengths, key and value in binary; an end record closes the stream.
    Binary,
}

impl Format {
    /// The format that `Accept` headers ask for; the plain one when they name none of ours.
    pub(crate) fn accepted(accept: GetAll<'_, HeaderValue>) -> Format {
        let ranges = accept
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        let mut media_types = ranges.map(|range| range.split(';').next().unwrap_or("").trim());
        let ours = |media_type: &str| {
            [Format::JsonLines, Format::Binary]
                .into_iter()
                .find(|format| media_type.eq_ignore_ascii_case(format.media_type()))
        };
        media_types.find_map(ours).unwrap_or(Format::Plain)
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::Plain => "application/octet-stream",
            Format::JsonLines => "application/x-ndjson",
            Format::Binary => "application/vnd.kvant.records",
        }
    }

    pub(super) fn write(self, out: &mut BytesMut, key: &[u8], value: &[u8]) {
        match self {
            Format::Plain => {
                out.extend_from_slice(key);
                out.put_u8(b'\n');
                out.extend_from_slice(value);
            }
            Format::JsonLines => {
                out.put_u8(b'{');
                write_json_member(out, "key", key);
                out.put_u8(b',');
                write_json_member(out, "value", value);
                out.extend_from_slice(b"}\n");
            }
            Format::Binary => {
                // Both are bounded by 1 GiB (`limits`), so neither is the end mark.
                out.put_u32_le(key.len() as u32);
                out.put_u32_le(value.len() as u32);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
        }
    }
}

/// Text as it is, other bytes as Base64 under another name.
fn write_json_member(out: &mut BytesMut, name: &str, bytes: &[u8]) {
    out.put_u8(b'"');
    out.extend_from_slice(name.as_bytes());
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(b"\":");
            serde_json::to_writer(out.writer(), text).expect("a string serialises, and memory takes it");
        }
        Err(_) => {
            out.extend_from_slice(b"_base64\":\"");
            out.extend_from_slice(BASE64.encode(bytes).as_bytes());
            out.put_u8(b'"');
        }
    }
}
