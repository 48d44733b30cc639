//! The contents of sections, written and read: the grammar in `docs/formats/recording.md`.
//!
//! What comes out of a reading function keeps the invariants of the model.

use super::model::{
    CpuSampling, Facts, Frame, Function, Kind, Module, Recording, Sample, Span, Stack, Thread,
};
use super::wire::{LARGE_COUNT_MAX, Wire, put_rows, put_text, take_count, take_rows, wire_struct};
use indexmap::IndexSet;
use kvant_base::tag::{Activity, Stage};
use kvant_base::varint::take_bytes;

const BUILD_ID_BYTES_MAX: usize = 64;
/// Total length of the names and files of all frames, each counted as often as it is used.
const SYMBOL_BYTES_MAX: usize = 128 << 20;
/// Flags of a frame.
const FLAG_KERNEL: u8 = 1;
const FLAG_RETURN: u8 = 2;

wire_struct!(Facts {
    started_wall_ns, duration_ns, command, version, process_id, cpu_count, process_cpu_ns, cpu,
    alloc_mean_bytes, wait_mean_ns, dropped_count; .. modules
});
wire_struct!(CpuSampling { engine, period_ns, has_kernel_frames });
wire_struct!(Thread { id, name });

impl Wire for Module {
    fn put(&self, out: &mut Vec<u8>) {
        self.path.put(out);
        self.start.put(out);
        (self.end - self.start).put(out);
        self.file_offset_bytes.put(out);
        self.build_id.put(out);
    }

    fn read(input: &mut &[u8]) -> Option<Module> {
        let path = Wire::read(input)?;
        let (start, length) = <(u64, u64)>::read(input)?;
        let module = Module {
            path,
            start,
            end: start.checked_add(length)?,
            file_offset_bytes: Wire::read(input)?,
            build_id: Wire::read(input)?,
        };
        (length > 0 && module.build_id.len() <= BUILD_ID_BYTES_MAX).then_some(module)
    }
}

impl Wire for Span {
    fn put(&self, out: &mut Vec<u8>) {
        self.kind.put(out);
        self.start_ns.put(out);
        self.end_ns.map(|end_ns| end_ns - self.start_ns).put(out);
        self.fields.put(out);
    }

    fn read(input: &mut &[u8]) -> Option<Span> {
        let (kind, start_ns) = <(String, u64)>::read(input)?;
        let end_ns = match Option::<u64>::read(input)? {
            None => None,
            Some(length_ns) => Some(start_ns.checked_add(length_ns)?),
        };
        Some(Span { kind, start_ns, end_ns, fields: Wire::read(input)? })
    }
}

pub(super) fn put_names(out: &mut Vec<u8>, names: &[String]) {
    put_rows(out, names.get(1..).unwrap_or_default(), String::put);
}

pub(super) fn take_names(input: &mut &[u8]) -> Option<Vec<String>> {
    let mut names: Vec<String> = Wire::read(input)?;
    names.insert(0, String::new());
    Some(names)
}

pub(super) fn put_frames(out: &mut Vec<u8>, frames: &[Frame]) {
    put_rows(out, frames, |frame, out| {
        let kernel = if frame.is_kernel { FLAG_KERNEL } else { 0 };
        let is_return = if frame.is_return { FLAG_RETURN } else { 0 };
        out.push(kernel | is_return);
    });
    let mut before = 0u64;
    for frame in frames {
        (frame.address.wrapping_sub(before) as i64).put(out);
        before = frame.address;
    }
}

pub(super) fn take_frames(input: &mut &[u8]) -> Option<Vec<Frame>> {
    let count = take_count(input, LARGE_COUNT_MAX)?;
    let flags = take_bytes(input, count)?;
    let mut address = 0u64;
    let frame = |&flags: &u8| {
        address = address.wrapping_add_signed(i64::read(input)?);
        (flags & !(FLAG_KERNEL | FLAG_RETURN) == 0).then_some(Frame {
            address,
            is_kernel: flags & FLAG_KERNEL != 0,
            is_return: flags & FLAG_RETURN != 0,
        })
    };
    flags.iter().map(frame).collect()
}

pub(super) fn put_stacks(out: &mut Vec<u8>, stacks: &[Stack]) {
    let nodes = stacks.get(1..).unwrap_or_default();
    let mut number = 0;
    put_rows(out, nodes, |node, out| {
        number += 1;
        (number - node.parent).put(out);
    });
    let mut before = 0;
    for node in nodes {
        (i64::from(node.frame) - before).put(out);
        before = i64::from(node.frame);
    }
}

pub(super) fn take_stacks(input: &mut &[u8], frame_count: usize) -> Option<Vec<Stack>> {
    let mut stacks = vec![Stack { parent: 0, frame: 0 }];
    let count = take_count(input, LARGE_COUNT_MAX)?;
    for number in 1..=count as u32 {
        let distance = u32::read(input).filter(|&distance| distance > 0)?;
        stacks.push(Stack { parent: number.checked_sub(distance)?, frame: 0 });
    }
    let mut frame = 0i64;
    for node in &mut stacks[1..] {
        frame = frame.checked_add(i64::read(input)?)?;
        node.frame = u32::try_from(frame).ok().filter(|&frame| (frame as usize) < frame_count)?;
    }
    Some(stacks)
}

/// Implements [`Wire`] for an enum: the index in its `ALL` as a byte.
macro_rules! wire_enum {
    ($($Type:ident by $code:expr),+) => {$(
        impl Wire for $Type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push($code(*self));
            }

            fn read(input: &mut &[u8]) -> Option<$Type> {
                $Type::ALL.get(usize::from(u8::read(input)?)).copied()
            }
        }
    )+};
}
wire_enum!(Kind by Kind::code, Activity by |activity| activity as u8, Stage by |stage| stage as u8);

pub(super) fn put_samples(out: &mut Vec<u8>, samples: &[Sample]) {
    fn column<T: Wire>(out: &mut Vec<u8>, samples: &[Sample], field: impl Fn(&Sample) -> &T) {
        samples.iter().for_each(|sample| field(sample).put(out));
    }

    put_rows(out, samples, |sample, out| sample.kind.put(out));
    let mut before_ns = 0;
    for sample in samples {
        (sample.time_ns - before_ns).put(out);
        before_ns = sample.time_ns;
    }
    column(out, samples, |sample| &sample.duration_ns);
    column(out, samples, |sample| &sample.thread);
    column(out, samples, |sample| &sample.tag.activity);
    column(out, samples, |sample| &sample.tag.stage);
    column(out, samples, |sample| &sample.name);
    column(out, samples, |sample| &sample.stack);
    column(out, samples, |sample| &sample.weight);
    column(out, samples, |sample| &sample.is_live);
}

/// Reads samples. Sections before them have filled the tables of `recording` that they refer to.
pub(super) fn take_samples(input: &mut &[u8], recording: &Recording) -> Option<Vec<Sample>> {
    fn column<T: Wire>(
        input: &mut &[u8],
        samples: &mut [Sample],
        field: impl Fn(&mut Sample) -> &mut T,
    ) -> Option<()> {
        for sample in samples {
            *field(sample) = T::read(input)?;
        }
        Some(())
    }

    let mut samples = take_rows(input, LARGE_COUNT_MAX, |input| Kind::read(input).map(Sample::of))?;
    let mut time_ns = 0u64;
    for sample in &mut samples {
        time_ns = time_ns.checked_add(u64::read(input)?)?;
        sample.time_ns = time_ns;
    }
    column(input, &mut samples, |sample| &mut sample.duration_ns)?;
    column(input, &mut samples, |sample| &mut sample.thread)?;
    column(input, &mut samples, |sample| &mut sample.tag.activity)?;
    column(input, &mut samples, |sample| &mut sample.tag.stage)?;
    column(input, &mut samples, |sample| &mut sample.name)?;
    column(input, &mut samples, |sample| &mut sample.stack)?;
    column(input, &mut samples, |sample| &mut sample.weight)?;
    column(input, &mut samples, |sample| &mut sample.is_live)?;
    let is_valid = |sample: &Sample| {
        (sample.thread as usize) < recording.threads.len()
            && (sample.name as usize) < recording.names.len()
            && (sample.stack as usize) < recording.stacks.len()
    };
    samples.iter().all(is_valid).then_some(samples)
}

pub(super) fn put_symbols(out: &mut Vec<u8>, recording: &Recording) {
    (!recording.needs_symbols()).put(out);
    if recording.needs_symbols() {
        return;
    }
    let (mut texts, mut functions) = (IndexSet::new(), IndexSet::new());
    let mut rows = Vec::new();
    for at_frame in &recording.symbols {
        put_rows(&mut rows, at_frame, |Function { name, file, line }, rows| {
            let mut text = |text| texts.insert_full(text).0 as u32;
            let function = (text(&name[..]), (text(&file[..]), *line));
            (functions.insert_full(function).0 as u32).put(rows);
        });
    }
    let texts: Vec<&str> = texts.into_iter().collect();
    put_rows(out, &texts, |text, out| put_text(out, text));
    functions.into_iter().collect::<Vec<_>>().put(out);
    out.append(&mut rows);
}

pub(super) fn take_symbols(input: &mut &[u8], frame_count: usize) -> Option<Vec<Vec<Function>>> {
    if !bool::read(input)? {
        return Some(Vec::new());
    }
    let texts: Vec<String> = Wire::read(input)?;
    let functions = take_rows(input, LARGE_COUNT_MAX, <(u32, (u32, u32))>::read)?;
    let mut bytes = 0;
    let mut function = |input: &mut &[u8]| {
        let (name, (file, line)) = *functions.get(u32::read(input)? as usize)?;
        let (name, file) = (texts.get(name as usize)?, texts.get(file as usize)?);
        // A short file may refer to a long text often.
        bytes += size_of::<Function>() + name.len() + file.len();
        (bytes <= SYMBOL_BYTES_MAX).then(|| Function {
            name: name.clone(),
            file: file.clone(),
            line,
        })
    };
    (0..frame_count).map(|_| take_rows(input, LARGE_COUNT_MAX, &mut function)).collect()
}
