//! Histograms as one line of text: HdrHistogram's V2 encoding, deflated, in base64. Any
//! HdrHistogram library reads it.
//!
//! Invariants:
//! 1. [`decode`] restores the buckets and counts that [`encode`] was given, and with them all
//!    percentiles, the mean and the maximum.
//! 2. [`decode`] inflates at most `INFLATED_BYTES_MAX`, whatever the text says about its size.

#[cfg(test)]
mod tests;

use super::Histogram;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use kvant_base::{Error, Result};
use std::fmt::Display;
use std::io::Read;

/// First bytes of a deflated V2 histogram.
const COOKIE_DEFLATED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
/// First bytes of a V2 histogram that is not deflated, also inside a deflated one.
const COOKIE_PLAIN: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
/// Bytes before the counts of a V2 histogram: cookie, length of counts, normalizing offset, digits,
/// bounds, ratio.
const HEADER_BYTES: usize = 40;
/// More than a histogram with five digits over all of `u64` takes.
const INFLATED_BYTES_MAX: u64 = 64 << 20;

/// Encodes histograms; reuses its buffers.
pub(crate) struct Encoder {
    serializer: V2DeflateSerializer,
    bytes: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { serializer: V2DeflateSerializer::new(), bytes: Vec::new() }
    }

    pub(crate) fn append(&mut self, histogram: &Histogram, text: &mut String) {
        self.bytes.clear();
        self.serializer
            .serialize(histogram.as_hdr(), &mut self.bytes)
            .expect("counts fit, and writing to memory cannot fail");
        STANDARD.encode_string(&self.bytes, text);
    }
}

/// Encodes a histogram.
pub fn encode(histogram: &Histogram) -> String {
    let mut text = String::new();
    Encoder::new().append(histogram, &mut text);
    text
}

/// Decodes a histogram, deflated or not. Values are recorded at this program's resolution and
/// within its bounds.
///
/// # Errors
/// `Invalid`: the text is not base64 or not a V2 histogram.
pub fn decode(text: &str) -> Result<Histogram> {
    let bytes = STANDARD
        .decode(text.trim_end())
        .map_err(|error| invalid(format_args!("is not base64: {error}")))?;
    let plain = match bytes.first_chunk() {
        Some(&COOKIE_DEFLATED) => inflate(&bytes[4..])?,
        Some(&COOKIE_PLAIN) => bytes,
        _ => return Err(invalid("does not start as HdrHistogram's V2 encoding does")),
    };
    let counts_bytes =
        plain.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    if plain.len() < HEADER_BYTES || plain.len() - HEADER_BYTES < counts_bytes as usize {
        return Err(invalid("is cut off"));
    }
    let hdr: Hdr<u64> = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| invalid(format_args!("cannot be read: {error}")))?;
    let mut histogram = Histogram::new();
    for step in hdr.iter_recorded() {
        histogram.record_many_ns(step.value_iterated_to(), step.count_at_value());
    }
    Ok(histogram)
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>> {
    let deflated = bytes
        .split_first_chunk()
        .and_then(|(length, rest)| rest.get(..u32::from_be_bytes(*length) as usize))
        .ok_or_else(|| invalid("is cut off"))?;
    let mut plain = Vec::new();
    ZlibDecoder::new(deflated)
        .take(INFLATED_BYTES_MAX)
        .read_to_end(&mut plain)
        .map_err(|error| invalid(format_args!("cannot be unpacked: {error}")))?;
    if !plain.starts_with(&COOKIE_PLAIN) {
        return Err(Error::invalid(
            "an unpacked histogram does not start as HdrHistogram's V2 encoding does",
        ));
    }
    Ok(plain)
}

fn invalid(problem: impl Display) -> Error {
    Error::invalid(format!("a histogram {problem}"))
}
