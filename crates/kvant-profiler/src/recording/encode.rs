//! A recording becomes a file: `docs/formats/recording.md`.

use super::layout::{
    FLAG_KERNEL, FLAG_RETURN, MAGIC, METHOD_DEFLATED, METHOD_STORED, SECTION_HEADER_BYTES, Section,
    VERSION, zigzag,
};
use super::{Facts, Frame, Function, Module, Recording, Sample, Span, Stack, Thread};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use kvant_base::checksum::crc32c_masked;
use kvant_base::varint::put_u64;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::Write;

/// The bytes of a file with `recording`, whose invariants must hold. What has more rows than the
/// format allows cannot be decoded again.
pub fn encode(recording: &Recording) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc32c_masked(&[&out]);
    out.extend_from_slice(&crc.to_le_bytes());
    for section in Section::ALL {
        let mut content = Content(Vec::new());
        match section {
            Section::Facts => facts(&mut content, &recording.facts),
            Section::Modules => modules(&mut content, &recording.facts.modules),
            Section::Threads => threads(&mut content, &recording.threads),
            Section::Names => names(&mut content, &recording.names),
            Section::Frames => frames(&mut content, &recording.frames),
            Section::Stacks => stacks(&mut content, &recording.stacks),
            Section::Samples => samples(&mut content, &recording.samples),
            Section::Spans => spans(&mut content, &recording.spans),
            Section::Symbols => symbols(&mut content, recording),
        }
        put_section(&mut out, section, &content.0);
    }
    out
}

fn put_section(out: &mut Vec<u8>, section: Section, content: &[u8]) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let deflated = encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all bytes");
    let is_worthwhile = deflated.len() <= content.len() - content.len() / 8;
    let (method, stored) = if is_worthwhile && deflated.len() < content.len() {
        (METHOD_DEFLATED, &deflated[..])
    } else {
        (METHOD_STORED, content)
    };
    let length = |bytes: &[u8]| {
        u32::try_from(bytes.len()).expect("the limits on counts keep a section below 4 GiB")
    };
    let start = out.len();
    out.extend_from_slice(&[section as u8, method]);
    out.extend_from_slice(&length(content).to_le_bytes());
    out.extend_from_slice(&length(stored).to_le_bytes());
    let crc = crc32c_masked(&[&out[start..], stored]);
    out.extend_from_slice(&crc.to_le_bytes());
    debug_assert_eq!(out.len() - start, SECTION_HEADER_BYTES);
    out.extend_from_slice(stored);
}

/// The content of a section, as it grows.
struct Content(Vec<u8>);

impl Content {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        put_u64(&mut self.0, number);
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// 0, or 1 and what `put` puts.
    fn optional<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Content, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    /// One field of all rows.
    fn column<R>(&mut self, rows: &[R], field: impl Fn(&R) -> u64) {
        for row in rows {
            self.number(field(row));
        }
    }
}

fn facts(out: &mut Content, facts: &Facts) {
    out.number(facts.started_wall_ns);
    out.number(facts.duration_ns);
    out.text(&facts.command);
    out.text(&facts.version);
    out.number(u64::from(facts.process_id));
    out.number(u64::from(facts.cpu_count));
    out.number(facts.process_cpu_ns);
    out.optional(facts.cpu.as_ref(), |out, cpu| {
        out.text(&cpu.engine);
        out.number(cpu.period_ns);
        out.byte(u8::from(cpu.has_kernel_frames));
    });
    out.optional(facts.alloc_mean_bytes, Content::number);
    out.optional(facts.wait_mean_ns, |out, means_ns| out.column(&means_ns, |mean| *mean));
    out.number(facts.dropped_count);
}

fn modules(out: &mut Content, modules: &[Module]) {
    out.count(modules.len());
    for module in modules {
        out.text(&module.path);
        out.number(module.start);
        out.number(module.end - module.start);
        out.number(module.file_offset_bytes);
        out.bytes(&module.build_id);
    }
}

fn threads(out: &mut Content, threads: &[Thread]) {
    out.count(threads.len());
    for thread in threads {
        out.number(u64::from(thread.id));
        out.text(&thread.name);
    }
}

fn names(out: &mut Content, names: &[String]) {
    let names = names.get(1..).unwrap_or_default();
    out.count(names.len());
    names.iter().for_each(|name| out.text(name));
}

fn frames(out: &mut Content, frames: &[Frame]) {
    out.count(frames.len());
    for frame in frames {
        let kernel = if frame.is_kernel { FLAG_KERNEL } else { 0 };
        let is_return = if frame.is_return { FLAG_RETURN } else { 0 };
        out.byte(kernel | is_return);
    }
    let mut before = 0u64;
    for frame in frames {
        out.number(zigzag(frame.address.wrapping_sub(before) as i64));
        before = frame.address;
    }
}

fn stacks(out: &mut Content, stacks: &[Stack]) {
    let nodes = stacks.get(1..).unwrap_or_default();
    out.count(nodes.len());
    for (number, node) in (1..).zip(nodes) {
        out.number(number - u64::from(node.parent));
    }
    let mut before = 0i64;
    for node in nodes {
        let frame = i64::from(node.frame);
        out.number(zigzag(frame - before));
        before = frame;
    }
}

fn samples(out: &mut Content, samples: &[Sample]) {
    out.count(samples.len());
    samples.iter().for_each(|sample| out.byte(sample.kind.code()));
    let mut before_ns = 0;
    for sample in samples {
        out.number(sample.time_ns - before_ns);
        before_ns = sample.time_ns;
    }
    out.column(samples, |sample| sample.duration_ns);
    out.column(samples, |sample| u64::from(sample.thread));
    samples.iter().for_each(|sample| out.byte(sample.tag.activity as u8));
    samples.iter().for_each(|sample| out.byte(sample.tag.stage as u8));
    out.column(samples, |sample| u64::from(sample.name));
    out.column(samples, |sample| u64::from(sample.stack));
    out.column(samples, |sample| sample.weight);
    samples.iter().for_each(|sample| out.byte(u8::from(sample.is_live)));
}

fn spans(out: &mut Content, spans: &[Span]) {
    out.count(spans.len());
    for span in spans {
        out.text(&span.kind);
        out.number(span.start_ns);
        out.optional(span.end_ns, |out, end_ns| out.number(end_ns - span.start_ns));
        out.count(span.fields.len());
        for (name, value) in &span.fields {
            out.text(name);
            out.text(value);
        }
    }
}

fn symbols(out: &mut Content, recording: &Recording) {
    if recording.needs_symbols() {
        out.byte(0);
        return;
    }
    let mut texts = Table::default();
    let mut functions = Table::default();
    let mut rows = Content(Vec::new());
    for at_frame in &recording.symbols {
        rows.count(at_frame.len());
        for Function { name, file, line } in at_frame {
            let row = (texts.number(&name[..]), texts.number(&file[..]), u64::from(*line));
            rows.number(functions.number(row));
        }
    }
    out.byte(1);
    out.count(texts.rows.len());
    texts.rows.iter().for_each(|text| out.text(text));
    out.count(functions.rows.len());
    for (name, file, line) in functions.rows {
        out.number(name);
        out.number(file);
        out.number(line);
    }
    out.0.append(&mut rows.0);
}

/// Rows, each once, numbered in the order in which they came.
struct Table<R> {
    numbers: HashMap<R, u64>,
    rows: Vec<R>,
}

impl<R> Default for Table<R> {
    fn default() -> Table<R> {
        Table { numbers: HashMap::new(), rows: Vec::new() }
    }
}

impl<R: Copy + Eq + Hash> Table<R> {
    fn number(&mut self, row: R) -> u64 {
        let next = self.rows.len() as u64;
        let number = *self.numbers.entry(row).or_insert(next);
        if number == next {
            self.rows.push(row);
        }
        number
    }
}
