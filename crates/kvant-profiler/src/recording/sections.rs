//! The contents of sections, written and read: the grammar in `docs/formats/recording.md`.
//!
//! Single values are encoded by `postcard`, whose varints, zigzag numbers, texts and options are
//! those of the format.
//!
//! Invariants:
//! 1. What a reading function returns keeps the invariants of the model.
//! 2. Counts are checked before their rows are read, so no input leads to a panic or to more memory
//!    than the format allows.

use super::model::{Facts, Frame, Function, Kind, Module, Recording, Sample, Span, Stack, Thread};
use indexmap::IndexSet;
use kvant_base::tag::{Activity, Stage};
use kvant_base::varint::take_u64;
use serde::{Deserialize, Serialize};

/// The largest count of texts, threads, spans, fields of all spans, and modules.
const SMALL_COUNT_MAX: usize = 1 << 20;
/// The largest count of samples, frames, stacks and functions.
const LARGE_COUNT_MAX: usize = 4 << 20;
const BUILD_ID_BYTES_MAX: usize = 64;
/// The most frames of a stack: more than a sample has.
const DEPTH_MAX: u16 = 512;
/// Total length of the names and files of all frames, each counted as often as it is used.
const SYMBOL_BYTES_MAX: usize = 128 << 20;
const FLAG_KERNEL: u8 = 1;
const FLAG_RETURN: u8 = 2;

/// Appends a value.
pub(super) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    postcard::to_io(value, out).expect("a vector takes all bytes, and all lengths are known");
}

/// Reads a value from the front of `input` and advances it; `None` if the bytes break the grammar.
fn take<'a, T: Deserialize<'a>>(input: &mut &'a [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(input).ok()?;
    *input = rest;
    Some(value)
}

/// Reads a count, of at most `count_max`, and that many values.
fn take_rows<'a, T: Deserialize<'a>>(input: &mut &'a [u8], count_max: usize) -> Option<Vec<T>> {
    take_u64(&mut &**input).filter(|&count| count <= count_max as u64)?;
    take(input)
}

pub(super) fn take_facts(input: &mut &[u8]) -> Option<Facts> {
    take(input)
}

pub(super) fn take_threads(input: &mut &[u8]) -> Option<Vec<Thread>> {
    take_rows(input, SMALL_COUNT_MAX)
}

pub(super) fn put_modules(out: &mut Vec<u8>, modules: &[Module]) {
    let row = |Module { path, start, end, file_offset_bytes, build_id }: &Module| {
        (path.clone(), *start, end - start, *file_offset_bytes, build_id.clone())
    };
    put(out, &modules.iter().map(row).collect::<Vec<_>>());
}

pub(super) fn take_modules(input: &mut &[u8]) -> Option<Vec<Module>> {
    let rows: Vec<(String, u64, u64, u64, &[u8])> = take_rows(input, SMALL_COUNT_MAX)?;
    let module = |(path, start, length, file_offset_bytes, build_id): (_, u64, _, _, &[u8])| {
        let end = start.checked_add(length).filter(|&end| end > start)?;
        (build_id.len() <= BUILD_ID_BYTES_MAX).then(|| Module {
            path,
            start,
            end,
            file_offset_bytes,
            build_id: build_id.to_vec(),
        })
    };
    rows.into_iter().map(module).collect()
}

pub(super) fn put_spans(out: &mut Vec<u8>, spans: &[Span]) {
    let row = |Span { kind, start_ns, end_ns, fields }: &Span| {
        (kind.clone(), *start_ns, end_ns.map(|end_ns| end_ns - start_ns), fields.clone())
    };
    put(out, &spans.iter().map(row).collect::<Vec<_>>());
}

pub(super) fn take_spans(input: &mut &[u8]) -> Option<Vec<Span>> {
    let count = take_u64(input).filter(|&count| count <= SMALL_COUNT_MAX as u64)?;
    let mut fields_left = SMALL_COUNT_MAX;
    let span = |_number| {
        let (kind, start_ns, length_ns): (_, u64, Option<u64>) = take(input)?;
        let end_ns = match length_ns {
            None => None,
            Some(length_ns) => Some(start_ns.checked_add(length_ns)?),
        };
        let fields: Vec<_> = take_rows(input, fields_left)?;
        fields_left -= fields.len();
        Some(Span { kind, start_ns, end_ns, fields })
    };
    (0..count).map(span).collect()
}

pub(super) fn put_names(out: &mut Vec<u8>, names: &[String]) {
    put(out, names.get(1..).unwrap_or_default());
}

pub(super) fn take_names(input: &mut &[u8]) -> Option<Vec<String>> {
    let mut names: Vec<String> = take_rows(input, SMALL_COUNT_MAX)?;
    names.insert(0, String::new());
    Some(names)
}

pub(super) fn put_frames(out: &mut Vec<u8>, frames: &[Frame]) {
    let flags = |frame: &Frame| {
        let kernel = if frame.is_kernel { FLAG_KERNEL } else { 0 };
        kernel | if frame.is_return { FLAG_RETURN } else { 0 }
    };
    put(out, &frames.iter().map(flags).collect::<Vec<u8>>());
    let mut before = 0u64;
    for frame in frames {
        put(out, &(frame.address.wrapping_sub(before) as i64));
        before = frame.address;
    }
}

pub(super) fn take_frames(input: &mut &[u8]) -> Option<Vec<Frame>> {
    let flags: Vec<u8> = take_rows(input, LARGE_COUNT_MAX)?;
    let mut address = 0u64;
    let frame = |flags: u8| {
        address = address.wrapping_add_signed(take(input)?);
        (flags & !(FLAG_KERNEL | FLAG_RETURN) == 0).then_some(Frame {
            address,
            is_kernel: flags & FLAG_KERNEL != 0,
            is_return: flags & FLAG_RETURN != 0,
        })
    };
    flags.into_iter().map(frame).collect()
}

pub(super) fn put_stacks(out: &mut Vec<u8>, stacks: &[Stack]) {
    let nodes = stacks.get(1..).unwrap_or_default();
    let distances = (1..).zip(nodes).map(|(number, node)| number - node.parent);
    put(out, &distances.collect::<Vec<u32>>());
    let mut before = 0;
    for node in nodes {
        put(out, &(i64::from(node.frame) - before));
        before = i64::from(node.frame);
    }
}

pub(super) fn take_stacks(input: &mut &[u8], frame_count: usize) -> Option<Vec<Stack>> {
    let distances: Vec<u32> = take_rows(input, LARGE_COUNT_MAX)?;
    let mut frame = 0i64;
    let mut depths: Vec<u16> = vec![0];
    let node = |(number, distance): (u32, u32)| {
        frame = frame.checked_add(take(input)?)?;
        let is_valid = distance > 0 && (0..frame_count as i64).contains(&frame);
        let parent = number.checked_sub(distance).filter(|_| is_valid)?;
        let depth = depths[parent as usize] + 1;
        depths.push(depth);
        (depth <= DEPTH_MAX).then_some(Stack { parent, frame: frame as u32 })
    };
    let root = Some(Stack { parent: 0, frame: 0 });
    std::iter::once(root).chain((1..).zip(distances).map(node)).collect()
}

pub(super) fn put_samples(out: &mut Vec<u8>, samples: &[Sample]) {
    fn column<T: Serialize>(out: &mut Vec<u8>, samples: &[Sample], field: fn(&Sample) -> T) {
        samples.iter().for_each(|sample| put(out, &field(sample)));
    }

    put(out, &samples.iter().map(|sample| sample.kind.code()).collect::<Vec<u8>>());
    let mut before_ns = 0;
    for sample in samples {
        put(out, &(sample.time_ns - before_ns));
        before_ns = sample.time_ns;
    }
    column(out, samples, |sample| sample.duration_ns);
    column(out, samples, |sample| sample.thread);
    column(out, samples, |sample| sample.tag.activity as u8);
    column(out, samples, |sample| sample.tag.stage as u8);
    column(out, samples, |sample| sample.name);
    column(out, samples, |sample| sample.stack);
    column(out, samples, |sample| sample.weight);
    column(out, samples, |sample| sample.is_live);
}

/// Reads samples. Sections before them have filled the tables of `recording` that they refer to.
pub(super) fn take_samples(input: &mut &[u8], recording: &Recording) -> Option<Vec<Sample>> {
    fn column<'a, T: Deserialize<'a>>(
        input: &mut &'a [u8],
        samples: &mut [Sample],
        set: impl Fn(&mut Sample, T),
    ) -> Option<()> {
        samples.iter_mut().try_for_each(|sample| take(input).map(|value| set(sample, value)))
    }
    fn variant<T: Copy>(all: &[T], code: u8) -> Option<T> {
        all.get(usize::from(code)).copied()
    }

    let kinds: Vec<u8> = take_rows(input, LARGE_COUNT_MAX)?;
    let mut samples = kinds
        .into_iter()
        .map(|code| variant(&Kind::ALL, code).map(Sample::of))
        .collect::<Option<Vec<Sample>>>()?;
    let mut time_ns = 0u64;
    for sample in &mut samples {
        time_ns = time_ns.checked_add(take(input)?)?;
        sample.time_ns = time_ns;
    }
    column(input, &mut samples, |sample, ns| sample.duration_ns = ns)?;
    column(input, &mut samples, |sample, thread| sample.thread = thread)?;
    for sample in &mut samples {
        sample.tag.activity = variant(&Activity::ALL, take(input)?)?;
    }
    for sample in &mut samples {
        sample.tag.stage = variant(&Stage::ALL, take(input)?)?;
    }
    column(input, &mut samples, |sample, name| sample.name = name)?;
    column(input, &mut samples, |sample, stack| sample.stack = stack)?;
    column(input, &mut samples, |sample, weight| sample.weight = weight)?;
    column(input, &mut samples, |sample, is_live| sample.is_live = is_live)?;
    let is_valid = |sample: &Sample| {
        (sample.thread as usize) < recording.threads.len()
            && (sample.name as usize) < recording.names.len()
            && (sample.stack as usize) < recording.stacks.len()
    };
    samples.iter().all(is_valid).then_some(samples)
}

pub(super) fn put_symbols<'a>(out: &mut Vec<u8>, recording: &'a Recording) {
    put(out, &!recording.needs_symbols());
    if recording.needs_symbols() {
        return;
    }
    let (mut texts, mut functions) = (IndexSet::new(), IndexSet::new());
    let mut function = |Function { name, file, line }: &'a Function| {
        let mut text = |text| texts.insert_full(text).0 as u32;
        functions.insert_full((text(name), text(file), *line)).0 as u32
    };
    let mut rows = Vec::new();
    for at_frame in &recording.symbols {
        put(&mut rows, &at_frame.iter().map(&mut function).collect::<Vec<u32>>());
    }
    put(out, &texts.iter().collect::<Vec<_>>());
    put(out, &functions.iter().collect::<Vec<_>>());
    out.append(&mut rows);
}

pub(super) fn take_symbols(input: &mut &[u8], frame_count: usize) -> Option<Vec<Vec<Function>>> {
    if !take::<bool>(input)? {
        return Some(Vec::new());
    }
    let texts: Vec<&str> = take_rows(input, SMALL_COUNT_MAX)?;
    let functions: Vec<(u32, u32, u32)> = take_rows(input, LARGE_COUNT_MAX)?;
    let mut bytes = 0;
    let mut function = |number: u32| {
        let &(name, file, line) = functions.get(number as usize)?;
        let (name, file) = (texts.get(name as usize)?, texts.get(file as usize)?);
        // A short file may refer to a long text often.
        bytes += size_of::<Function>() + name.len() + file.len();
        (bytes <= SYMBOL_BYTES_MAX).then(|| Function { line, ..Function::new(*name, file) })
    };
    let at_frame = |_| {
        let numbers: Vec<u32> = take_rows(input, LARGE_COUNT_MAX)?;
        numbers.into_iter().map(&mut function).collect()
    };
    (0..frame_count).map(at_frame).collect()
}
