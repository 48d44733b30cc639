//! The encodings of the records of a range.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{BufMut, BytesMut};
use http::header::{GetAll, HeaderValue};
use std::cmp::Reverse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordFormat {
    /// `KEY\nVALUE`, a chunk each.
    Plain,
    /// A JSON object a line.
    JsonLines,
    /// Lengths, key and value in binary; an end record closes the stream.
    Binary,
}

impl RecordFormat {
    /// The format that `Accept` headers select: the one of the highest weight, of equal ones the
    /// first that is named; plain when they accept none of these.
    pub(crate) fn accepted(accept: GetAll<'_, HeaderValue>) -> RecordFormat {
        let values = accept.iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<_> = values.flat_map(|value| value.split(',')).map(media_range).collect();
        let weight = |format: RecordFormat| {
            // The most specific range counts (RFC 9110, 12.5.1).
            [format.media_type(), "application/*", "*/*"]
                .into_iter()
                .find_map(|wanted| {
                    let place =
                        ranges.iter().position(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
                    let is_named = wanted == format.media_type();
                    Some((ranges[place].1, is_named, Reverse(place)))
                })
                .filter(|(weight, ..)| *weight > 0)
        };
        // Of formats that a wildcard leaves equal, the last is taken.
        let formats = [RecordFormat::Binary, RecordFormat::JsonLines, RecordFormat::Plain];
        let accepted = formats.into_iter().filter(|&format| weight(format).is_some());
        accepted.max_by_key(|&format| weight(format)).unwrap_or(RecordFormat::Plain)
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            RecordFormat::Plain => "application/octet-stream",
            RecordFormat::JsonLines => "application/x-ndjson",
            RecordFormat::Binary => "application/vnd.kvant.records",
        }
    }

    pub(crate) fn write(self, out: &mut BytesMut, key: &[u8], value: &[u8]) {
        match self {
            RecordFormat::Plain => {
                out.extend_from_slice(key);
                out.put_u8(b'\n');
                out.extend_from_slice(value);
            }
            RecordFormat::JsonLines => {
                out.put_u8(b'{');
                write_json_member(out, "key", key);
                out.put_u8(b',');
                write_json_member(out, "value", value);
                out.extend_from_slice(b"}\n");
            }
            RecordFormat::Binary => {
                // Both are bounded by 1 GiB (`limits`), so neither is the end mark.
                out.put_u32_le(key.len() as u32);
                out.put_u32_le(value.len() as u32);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
        }
    }
}

/// A media range and its weight in thousandths; 1000 without a valid weight.
fn media_range(text: &str) -> (&str, u16) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value: f32 = value.trim().parse().ok()?;
        (name.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&value)).then_some(value)
    });
    (name, (weight.unwrap_or(1.0) * 1000.0).round() as u16)
}

/// Writes text as it is, and other bytes as Base64 under another name.
fn write_json_member(out: &mut BytesMut, name: &str, bytes: &[u8]) {
    out.put_u8(b'"');
    out.extend_from_slice(name.as_bytes());
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(b"\":");
            serde_json::to_writer(out.writer(), text)
                .expect("a string serialises, and memory takes it");
        }
        Err(_) => {
            out.extend_from_slice(b"_base64\":\"");
            out.extend_from_slice(BASE64.encode(bytes).as_bytes());
            out.put_u8(b'"');
        }
    }
}
