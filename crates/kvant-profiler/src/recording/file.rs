//! Recordings as files: a header and nine sections, each with a checksum
//! (`docs/formats/recording.md`).

use super::model::Recording;
use super::sections::{
    put, put_frames, put_modules, put_names, put_samples, put_spans, put_stacks, put_symbols,
    take_facts, take_frames, take_modules, take_names, take_samples, take_spans, take_stacks,
    take_symbols, take_threads,
};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"KVANTPRF";
/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
const SECTION_HEADER_BYTES: usize = 14;
const METHOD_STORED: u8 = 0;
const METHOD_DEFLATED: u8 = 1;
/// The longest content of a section, and of all sections together.
const SECTION_BYTES_MAX: u64 = 256 << 20;
const CONTENT_BYTES_MAX: u64 = 512 << 20;

/// Encodes `recording`, whose invariants must hold. A recording with more rows than the format
/// allows cannot be decoded again.
pub fn encode(recording: &Recording) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&crc32c_masked(&[&file]).to_le_bytes());
    put_section(&mut file, 1, |out| put(out, &recording.facts));
    put_section(&mut file, 2, |out| put_modules(out, &recording.facts.modules));
    put_section(&mut file, 3, |out| put(out, &recording.threads));
    put_section(&mut file, 4, |out| put_names(out, &recording.names));
    put_section(&mut file, 5, |out| put_frames(out, &recording.frames));
    put_section(&mut file, 6, |out| put_stacks(out, &recording.stacks));
    put_section(&mut file, 7, |out| put_samples(out, &recording.samples));
    put_section(&mut file, 8, |out| put_spans(out, &recording.spans));
    put_section(&mut file, 9, |out| put_symbols(out, recording));
    file
}

fn put_section(out: &mut Vec<u8>, number: u8, put: impl FnOnce(&mut Vec<u8>)) {
    let mut content = Vec::new();
    put(&mut content);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let deflated = encoder
        .write_all(&content)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all bytes");
    let is_worthwhile = deflated.len() <= content.len() - content.len() / 8;
    let (method, stored) = if is_worthwhile && deflated.len() < content.len() {
        (METHOD_DEFLATED, &deflated[..])
    } else {
        (METHOD_STORED, &content[..])
    };
    let length = |bytes: &[u8]| {
        u32::try_from(bytes.len()).expect("the limits on counts keep a section below 4 GiB")
    };
    let start = out.len();
    out.extend_from_slice(&[number, method]);
    out.extend_from_slice(&length(&content).to_le_bytes());
    out.extend_from_slice(&length(stored).to_le_bytes());
    let crc = crc32c_masked(&[&out[start..], stored]);
    out.extend_from_slice(&crc.to_le_bytes());
    debug_assert_eq!(out.len() - start, SECTION_HEADER_BYTES);
    out.extend_from_slice(stored);
}

/// Decodes the bytes of a file.
///
/// # Errors
/// `Corruption` with the offset of the damaged section; `Unsupported` for a file of a newer
/// version.
pub fn decode(file: &[u8]) -> Result<Recording> {
    check_header(file)?;
    let mut sections = Sections { file, at: HEADER_BYTES, number: 0, content_bytes: 0 };
    let mut recording =
        Recording { facts: sections.next("facts", take_facts)?, ..Recording::default() };
    recording.facts.modules = sections.next("modules", take_modules)?;
    recording.threads = sections.next("threads", take_threads)?;
    recording.names = sections.next("names", take_names)?;
    recording.frames = sections.next("frames", take_frames)?;
    let frame_count = recording.frames.len();
    recording.stacks = sections.next("stacks", |input| take_stacks(input, frame_count))?;
    recording.samples = sections.next("samples", |input| take_samples(input, &recording))?;
    recording.spans = sections.next("spans", take_spans)?;
    recording.symbols = sections.next("symbols", |input| take_symbols(input, frame_count))?;
    if sections.at != file.len() {
        return Err(corrupt(sections.at, "the file continues after the last section"));
    }
    Ok(recording)
}

fn corrupt(offset: usize, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corruption, message).with_offset(offset as u64)
}

fn check_header(file: &[u8]) -> Result<()> {
    if !file.starts_with(MAGIC) {
        return Err(corrupt(0, "this is not a recording: it does not begin with KVANTPRF"));
    }
    let Some(header) = file.get(..HEADER_BYTES) else {
        return Err(corrupt(0, "the header is cut short"));
    };
    if crc32c_masked(&[&header[..12]]) != u32_at(header, 12) {
        return Err(corrupt(0, "the header fails its checksum"));
    }
    match u32_at(header, 8) {
        VERSION => Ok(()),
        0 => Err(corrupt(8, "there is no version 0")),
        newer => {
            let message = format!(
                "the recording has format version {newer}; this Kvant reads versions up to \
                 {VERSION}"
            );
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

struct Sections<'a> {
    file: &'a [u8],
    /// Offset of the next section.
    at: usize,
    /// Number of the section before it.
    number: u8,
    content_bytes: u64,
}

impl<'a> Sections<'a> {
    /// Reads the next section. `take` gets its content and must consume all of it.
    fn next<T>(&mut self, name: &str, take: impl FnOnce(&mut &[u8]) -> Option<T>) -> Result<T> {
        let error = |at, problem: &str| corrupt(at, format!("the section of {name} {problem}"));
        let start = self.at;
        let content = self.content().map_err(|problem| error(start, problem))?;
        let mut input = &content[..];
        let value = take(&mut input).filter(|_| input.is_empty());
        value.ok_or_else(|| error(start, "breaks its grammar"))
    }

    /// The content of the next section, or what is wrong with it.
    fn content(&mut self) -> std::result::Result<Cow<'a, [u8]>, &'static str> {
        let rest = self.file[self.at..].split_at_checked(SECTION_HEADER_BYTES);
        let (header, rest) = rest.ok_or("is missing or cut short")?;
        let (raw_bytes, stored_bytes) = (u32_at(header, 2), u32_at(header, 6));
        let stored = rest.get(..stored_bytes as usize).ok_or("is cut short")?;
        if crc32c_masked(&[&header[..10], stored]) != u32_at(header, 10) {
            return Err("fails its checksum");
        }
        self.number += 1;
        if header[0] != self.number {
            return Err("is out of order");
        }
        self.content_bytes += u64::from(raw_bytes);
        if u64::from(raw_bytes) > SECTION_BYTES_MAX || self.content_bytes > CONTENT_BYTES_MAX {
            return Err("is larger than the format allows");
        }
        let content = match header[1] {
            METHOD_STORED => Cow::Borrowed(stored),
            METHOD_DEFLATED => {
                let mut raw = Vec::new();
                // One byte more than the length, to see that the stream ends there.
                let mut inflater = DeflateDecoder::new(stored).take(u64::from(raw_bytes) + 1);
                inflater.read_to_end(&mut raw).map_err(|_invalid| "cannot be inflated")?;
                Cow::Owned(raw)
            }
            _ => return Err("has an unknown compression method"),
        };
        if content.len() != raw_bytes as usize {
            return Err("does not have the length that it states");
        }
        self.at += SECTION_HEADER_BYTES + stored.len();
        Ok(content)
    }
}
