//! A file becomes a recording again, if all of it is in order: `docs/formats/recording.md`.
//!
//! Invariants:
//! 1. What comes out keeps the invariants of the model.
//! 2. No bytes lead to a panic, nor to more memory than the format's limits allow.

use super::layout::{
    BUILD_ID_BYTES_MAX, CONTENT_BYTES_MAX, FLAG_KERNEL, FLAG_RETURN, HEADER_BYTES, LARGE_COUNT_MAX,
    MAGIC, METHOD_DEFLATED, METHOD_STORED, SECTION_BYTES_MAX, SECTION_HEADER_BYTES,
    SMALL_COUNT_MAX, SYMBOL_BYTES_MAX, Section, VERSION, unzigzag,
};
use super::{
    CpuSampling, Facts, Frame, Function, Kind, Module, Recording, Sample, Span, Stack, Thread,
};
use flate2::read::DeflateDecoder;
use kvant_base::checksum::crc32c_masked;
use kvant_base::tag::{Activity, Stage};
use kvant_base::varint::{take_bytes, take_u32, take_u64};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::io::Read;

/// The recording in the bytes of a file.
///
/// # Errors
/// `Corruption` with the offset of the section that is wrong; `Unsupported` for a file of a newer
/// version.
pub fn decode(file: &[u8]) -> Result<Recording> {
    check_header(file)?;
    let mut at = HEADER_BYTES;
    let mut content_bytes = 0;
    let mut recording = Recording::default();
    for section in Section::ALL {
        let (content, end) = read_section(file, at, section, &mut content_bytes)?;
        let mut reader = Reader(&content);
        let read = recording.read_section(section, &mut reader).filter(|()| reader.0.is_empty());
        if read.is_none() {
            let what = format!("the section of {} breaks its grammar", section.name());
            return Err(corrupt(at, what));
        }
        at = end;
    }
    if at != file.len() {
        return Err(corrupt(at, "the recording goes on after its last section"));
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
        return Err(corrupt(0, "the header's checksum does not match"));
    }
    match u32_at(header, 8) {
        VERSION => Ok(()),
        0 => Err(corrupt(8, "there is no version 0")),
        newer => {
            let message = format!(
                "the recording has format version {newer}, and this Kvant reads versions up to {VERSION}"
            );
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

/// The number at `at`, where four bytes are.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The content of `section`, which has to stand at `at`, and where it ends.
fn read_section<'a>(
    file: &'a [u8],
    at: usize,
    section: Section,
    content_bytes: &mut u64,
) -> Result<(Cow<'a, [u8]>, usize)> {
    let name = section.name();
    let error = |what: &str| corrupt(at, format!("the section of {name} {what}"));
    let rest = &file[at..];
    let Some((header, rest)) = rest.split_at_checked(SECTION_HEADER_BYTES) else {
        return Err(error("is missing or cut short"));
    };
    let [number, method, ..] = *header else {
        unreachable!("a section's header is longer than two bytes");
    };
    let (raw_bytes, stored_bytes) = (u32_at(header, 2), u32_at(header, 6));
    let Some(stored) = rest.get(..stored_bytes as usize) else {
        return Err(error("is cut short"));
    };
    if crc32c_masked(&[&header[..10], stored]) != u32_at(header, 10) {
        return Err(error("fails its checksum"));
    }
    if number != section as u8 {
        return Err(error("is not where it belongs"));
    }
    *content_bytes += u64::from(raw_bytes);
    if u64::from(raw_bytes) > SECTION_BYTES_MAX || *content_bytes > CONTENT_BYTES_MAX {
        return Err(error("is larger than the format allows"));
    }
    let content = match method {
        METHOD_STORED => Cow::Borrowed(stored),
        METHOD_DEFLATED => {
            let mut raw = Vec::new();
            // One byte more than there may be: whether the stream ends is checked with it.
            let mut inflating = DeflateDecoder::new(stored).take(u64::from(raw_bytes) + 1);
            if inflating.read_to_end(&mut raw).is_err() {
                return Err(error("cannot be inflated"));
            }
            Cow::Owned(raw)
        }
        _ => return Err(error("has an unknown method")),
    };
    if content.len() != raw_bytes as usize {
        return Err(error("has another length than it says"));
    }
    Ok((content, at + SECTION_HEADER_BYTES + stored.len()))
}

impl Recording {
    /// Reads the content of one section; `None` when it breaks the grammar.
    fn read_section(&mut self, section: Section, reader: &mut Reader<'_>) -> Option<()> {
        match section {
            Section::Facts => self.facts = reader.facts()?,
            Section::Modules => {
                self.facts.modules = reader.rows(SMALL_COUNT_MAX, 5, Reader::module)?
            }
            Section::Threads => self.threads = reader.rows(SMALL_COUNT_MAX, 2, Reader::thread)?,
            Section::Names => {
                self.names = vec![String::new()];
                self.names.extend(reader.rows(SMALL_COUNT_MAX, 1, Reader::text)?);
            }
            Section::Frames => self.frames = reader.frames()?,
            Section::Stacks => self.stacks = reader.stacks(self.frames.len())?,
            Section::Samples => {
                let counts = [self.threads.len(), self.names.len(), self.stacks.len()];
                self.samples = reader.samples(counts)?;
            }
            Section::Spans => self.spans = reader.rows(SMALL_COUNT_MAX, 4, Reader::span)?,
            Section::Symbols => self.symbols = reader.symbols(self.frames.len())?,
        }
        Some(())
    }
}

/// The rest of a section's content. Everything is `None` where the grammar is broken.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        take_u64(&mut self.0)
    }

    fn number_32(&mut self) -> Option<u32> {
        take_u32(&mut self.0)
    }

    /// The number of a row in a table of `count` rows.
    fn index(&mut self, count: usize) -> Option<u32> {
        self.number_32().filter(|&index| (index as usize) < count)
    }

    /// How many rows follow, each of at least `row_bytes_min`.
    fn count(&mut self, max: u64, row_bytes_min: u64) -> Option<usize> {
        let count = self.number().filter(|&count| count <= max)?;
        (count * row_bytes_min <= self.0.len() as u64).then_some(count as usize)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        let bytes = take_bytes(&mut self.0, usize::try_from(length).ok()?)?;
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    fn optional<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.flag()? {
            false => Some(None),
            true => take(self).map(Some),
        }
    }

    fn rows<T>(
        &mut self,
        count_max: u64,
        row_bytes_min: u64,
        mut row: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count(count_max, row_bytes_min)?;
        (0..count).map(|_| row(self)).collect()
    }

    fn facts(&mut self) -> Option<Facts> {
        Some(Facts {
            started_wall_ns: self.number()?,
            duration_ns: self.number()?,
            command: self.text()?,
            version: self.text()?,
            process_id: self.number_32()?,
            cpu_count: self.number_32()?,
            process_cpu_ns: self.number()?,
            cpu: self.optional(|reader| {
                Some(CpuSampling {
                    engine: reader.text()?,
                    period_ns: reader.number()?,
                    has_kernel_frames: reader.flag()?,
                })
            })?,
            alloc_mean_bytes: self.optional(Reader::number)?,
            wait_mean_ns: self.optional(|reader| {
                let mut means_ns = [0; WaitKind::ALL.len()];
                for mean_ns in &mut means_ns {
                    *mean_ns = reader.number()?;
                }
                Some(means_ns)
            })?,
            dropped_count: self.number()?,
            modules: Vec::new(),
        })
    }

    fn module(&mut self) -> Option<Module> {
        let path = self.text()?;
        let start = self.number()?;
        let length = self.number().filter(|&length| length > 0)?;
        let end = start.checked_add(length)?;
        let file_offset_bytes = self.number()?;
        let id_bytes = self.number().filter(|&bytes| bytes <= BUILD_ID_BYTES_MAX)?;
        Some(Module {
            path,
            start,
            end,
            file_offset_bytes,
            build_id: take_bytes(&mut self.0, id_bytes as usize)?.to_vec(),
        })
    }

    fn thread(&mut self) -> Option<Thread> {
        Some(Thread { id: self.number_32()?, name: self.text()? })
    }

    fn frames(&mut self) -> Option<Vec<Frame>> {
        let count = self.count(LARGE_COUNT_MAX, 2)?;
        let flags = take_bytes(&mut self.0, count)?;
        let mut address = 0u64;
        flags
            .iter()
            .map(|&flags| {
                address = address.wrapping_add_signed(unzigzag(self.number()?));
                (flags & !(FLAG_KERNEL | FLAG_RETURN) == 0).then_some(Frame {
                    address,
                    is_kernel: flags & FLAG_KERNEL != 0,
                    is_return: flags & FLAG_RETURN != 0,
                })
            })
            .collect()
    }

    fn stacks(&mut self, frame_count: usize) -> Option<Vec<Stack>> {
        let count = self.count(LARGE_COUNT_MAX, 2)?;
        let mut stacks = Vec::with_capacity(count + 1);
        stacks.push(Stack { parent: 0, frame: 0 });
        for number in 1..=count as u32 {
            let distance = self.number_32().filter(|&distance| distance > 0)?;
            stacks.push(Stack { parent: number.checked_sub(distance)?, frame: 0 });
        }
        let mut frame = 0u32;
        for node in &mut stacks[1..] {
            let difference = unzigzag(self.number()?);
            let next = i64::from(frame).checked_add(difference)?;
            frame = u32::try_from(next).ok()?;
            node.frame = Some(frame).filter(|&frame| (frame as usize) < frame_count)?;
        }
        Some(stacks)
    }

    fn samples(
        &mut self,
        [thread_count, name_count, stack_count]: [usize; 3],
    ) -> Option<Vec<Sample>> {
        let count = self.count(LARGE_COUNT_MAX, 10)?;
        let mut samples = Vec::with_capacity(count);
        for &kind in take_bytes(&mut self.0, count)? {
            samples.push(Sample::of(*Kind::ALL.get(usize::from(kind))?));
        }
        let mut time_ns = 0u64;
        for sample in &mut samples {
            time_ns = time_ns.checked_add(self.number()?)?;
            sample.time_ns = time_ns;
        }
        for sample in &mut samples {
            sample.duration_ns = self.number()?;
        }
        for sample in &mut samples {
            sample.thread = self.index(thread_count)?;
        }
        for sample in &mut samples {
            sample.tag.activity = *Activity::ALL.get(usize::from(self.byte()?))?;
        }
        for sample in &mut samples {
            sample.tag.stage = *Stage::ALL.get(usize::from(self.byte()?))?;
        }
        for sample in &mut samples {
            sample.name = self.index(name_count)?;
        }
        for sample in &mut samples {
            sample.stack = self.index(stack_count)?;
        }
        for sample in &mut samples {
            sample.weight = self.number()?;
        }
        for sample in &mut samples {
            sample.is_live = self.flag()?;
        }
        Some(samples)
    }

    fn span(&mut self) -> Option<Span> {
        let kind = self.text()?;
        let start_ns = self.number()?;
        let end_ns = self.optional(|reader| start_ns.checked_add(reader.number()?))?;
        let fields =
            self.rows(SMALL_COUNT_MAX, 2, |reader| Some((reader.text()?, reader.text()?)))?;
        Some(Span { kind, start_ns, end_ns, fields })
    }

    fn symbols(&mut self, frame_count: usize) -> Option<Vec<Vec<Function>>> {
        if !self.flag()? {
            return Some(Vec::new());
        }
        let texts = self.rows(SMALL_COUNT_MAX, 1, Reader::text)?;
        let functions = self.rows(LARGE_COUNT_MAX, 3, |reader| {
            let name = reader.index(texts.len())?;
            let file = reader.index(texts.len())?;
            Some((name, file, reader.number_32()?))
        })?;
        let mut bytes = 0;
        let mut symbols = Vec::with_capacity(frame_count.min(self.0.len()));
        for _ in 0..frame_count {
            symbols.push(self.rows(LARGE_COUNT_MAX, 1, |reader| {
                let (name, file, line) = functions[reader.index(functions.len())? as usize];
                let (name, file) = (&texts[name as usize], &texts[file as usize]);
                // A short file may name a long text often.
                bytes += size_of::<Function>() + name.len() + file.len();
                (bytes <= SYMBOL_BYTES_MAX).then(|| Function {
                    name: name.clone(),
                    file: file.clone(),
                    line,
                })
            })?);
        }
        Some(symbols)
    }
}
