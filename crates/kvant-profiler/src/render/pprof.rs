//! The format of `go tool pprof`: a gzipped `perftools.profiles.Profile` (`profile.proto` of
//! google/pprof).
//!
//! A sample has a value for each recorded kind, and the labels `thread`, `activity`, `stage` and
//! `lock`. Equal samples are added up, so times within the recording are lost. Functions and
//! inlined frames are included: readers need no executables. CPU time that no sample accounts for
//! is a sample of its own, in the function `[not sampled]`, without labels.
//!
//! Functions have no system name: `go tool pprof` takes a system name equal to the name for mangled
//! C++ and cuts type parameters off.
//!
//! The encoder is written by hand: declared for `prost`, the eight messages with their 38 fields
//! would take 100 lines, nearly twice those of [`Message`] and [`field`], and further packages.

use super::names;
use crate::recording::{Function, Kind, Module, Recording, Sample};
use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::IndexSet;
use kvant_base::tag::Tag;
use kvant_base::varint::put_u64;
use kvant_base::wait::WaitKind;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

/// Encodes a recording as a `.pb.gz` file.
pub fn pprof(recording: &Recording) -> Vec<u8> {
    let tables = Tables {
        recording,
        texts: IndexSet::from([Cow::Borrowed("")]),
        functions: IndexSet::new(),
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(&tables.profile().0)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all bytes")
}

/// A value of each sample: its name, its unit, and what a sample of `kind` adds to it.
struct ValueType {
    name: &'static str,
    unit: &'static str,
    kind: Kind,
    of: fn(&Sample) -> u64,
}

const fn weight_of(name: &'static str, unit: &'static str, kind: Kind) -> ValueType {
    ValueType { name, unit, kind, of: |sample| sample.weight }
}

const NS: &str = "nanoseconds";

/// All values, with Go's names where Go has them.
const VALUE_TYPES: [ValueType; 10] = [
    weight_of("cpu", NS, Kind::Cpu),
    weight_of("alloc_space", "bytes", Kind::Alloc),
    ValueType {
        name: "inuse_space",
        unit: "bytes",
        kind: Kind::Alloc,
        of: |sample| if sample.is_live { sample.weight } else { 0 },
    },
    ValueType {
        name: "contentions",
        unit: "count",
        kind: Kind::Wait(WaitKind::Contention),
        // A sampled wait stands for as many waits of its length as its weight holds.
        of: |sample| sample.weight.checked_div(sample.duration_ns).unwrap_or(1).max(1),
    },
    weight_of("delay", NS, Kind::Wait(WaitKind::Contention)),
    weight_of("idle", NS, Kind::Wait(WaitKind::Idle)),
    weight_of("backpressure", NS, Kind::Wait(WaitKind::Backpressure)),
    weight_of("io", NS, Kind::Wait(WaitKind::Io)),
    weight_of("scheduler", NS, Kind::Wait(WaitKind::Scheduler)),
    weight_of("holder", NS, Kind::Holder),
];

fn recorded_types(recording: &Recording) -> Vec<&'static ValueType> {
    let facts = &recording.facts;
    let is_recorded = |kind: Kind| {
        let is_enabled = match kind {
            Kind::Cpu => facts.cpu.is_some(),
            Kind::Alloc => facts.alloc_mean_bytes.is_some(),
            Kind::Wait(_) | Kind::Holder => facts.wait_mean_ns.is_some(),
        };
        is_enabled || recording.samples.iter().any(|sample| sample.kind == kind)
    };
    VALUE_TYPES.iter().filter(|value_type| is_recorded(value_type.kind)).collect()
}

/// Fields of `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// The tables that messages refer to; they are written after all else.
struct Tables<'a> {
    recording: &'a Recording,
    texts: IndexSet<Cow<'a, str>>,
    /// Name and file. The first function has id 1.
    functions: IndexSet<(u64, u64)>,
}

impl<'a> Tables<'a> {
    fn profile(mut self) -> Message {
        let facts = &self.recording.facts;
        let types = recorded_types(self.recording);
        let mut profile = Message::default();
        for value_type in &types {
            profile.message(field::SAMPLE_TYPE, &self.value_type(value_type.name, value_type.unit));
        }
        self.put_samples(&types, &mut profile);
        self.put_mappings(&mut profile);
        self.put_locations(&mut profile);
        profile.number(field::TIME_NANOS, facts.started_wall_ns);
        profile.number(field::DURATION_NANOS, facts.duration_ns);
        if let Some(cpu) = &facts.cpu {
            profile.message(field::PERIOD_TYPE, &self.value_type("cpu", NS));
            profile.number(field::PERIOD, cpu.period_ns);
        }
        let comment = format!("{} (kvant {})", facts.command, facts.version);
        profile.number(field::COMMENT, self.text(comment));
        if let Some(first) = types.first() {
            profile.number(field::DEFAULT_SAMPLE_TYPE, self.text(first.name));
        }
        for (id, &(name, file)) in (1..).zip(&self.functions) {
            profile.message(field::FUNCTION, &Message::of([(1, id), (2, name), (4, file)]));
        }
        for text in &self.texts {
            profile.bytes(field::STRING_TABLE, text.as_bytes());
        }
        profile
    }

    fn text(&mut self, text: impl Into<Cow<'a, str>>) -> u64 {
        self.texts.insert_full(text.into()).0 as u64
    }

    fn value_type(&mut self, name: &'static str, unit: &'static str) -> Message {
        Message::of([(1, self.text(name)), (2, self.text(unit))])
    }

    fn put_samples(&mut self, types: &[&ValueType], profile: &mut Message) {
        let mut sums: BTreeMap<_, (Tag, Vec<u64>)> = BTreeMap::new();
        for sample in &self.recording.samples {
            let key = (sample.stack, sample.thread, sample.tag.code(), sample.name);
            let (_, values) =
                sums.entry(key).or_insert_with(|| (sample.tag, vec![0u64; types.len()]));
            for (value, value_type) in values.iter_mut().zip(types) {
                if value_type.kind == sample.kind {
                    *value = value.saturating_add((value_type.of)(sample));
                }
            }
        }
        for ((stack, thread, _, name), (tag, values)) in sums {
            let mut sample = Message::default();
            sample.packed(1, names::frames(self.recording, stack).map(location_id));
            sample.packed(2, values);
            let labels = [
                ("thread", names::thread(self.recording, thread)),
                ("activity", tag.activity.name().into()),
                ("stage", tag.stage.name().into()),
                ("lock", Cow::from(&self.recording.names[name as usize])),
            ];
            for (key, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
                sample.message(3, &Message::of([(1, self.text(key)), (2, self.text(value))]));
            }
            profile.message(field::SAMPLE, &sample);
        }
        let not_sampled_ns = self.recording.not_sampled_ns();
        if not_sampled_ns > 0 {
            let is_cpu = |value_type: &&ValueType| value_type.kind == Kind::Cpu;
            let mut sample = Message::default();
            sample.packed(1, [self.not_sampled_location()]);
            sample.packed(2, types.iter().map(|of| if is_cpu(of) { not_sampled_ns } else { 0 }));
            profile.message(field::SAMPLE, &sample);
        }
    }

    /// The location after those of all frames.
    fn not_sampled_location(&self) -> u64 {
        location_id(self.recording.frames.len() as u32)
    }

    fn put_mappings(&mut self, profile: &mut Message) {
        let has_symbols = u64::from(!self.recording.needs_symbols());
        for (id, module) in (1..).zip(&self.recording.facts.modules) {
            let build_id: String =
                module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut mapping = Message::of([
                (1, id),
                (2, module.start),
                (3, module.end),
                (4, module.file_offset_bytes),
                (5, self.text(&module.path)),
                (6, self.text(build_id)),
            ]);
            // has_functions, has_filenames, has_line_numbers, has_inline_frames
            (7..=10).for_each(|field| mapping.number(field, has_symbols));
            profile.message(field::MAPPING, &mapping);
        }
    }

    fn put_locations(&mut self, profile: &mut Message) {
        let recording = self.recording;
        let modules = &recording.facts.modules;
        for (index, frame) in (0..).zip(&recording.frames) {
            let address = frame.lookup_address();
            let is_mapped = |module: &Module| !frame.is_kernel && module.contains(address);
            let mapping_id = modules.iter().position(is_mapped).map_or(0, |index| index as u64 + 1);
            let mut location =
                Message::of([(1, location_id(index)), (2, mapping_id), (3, address)]);
            for function in names::functions(recording, index) {
                location.message(4, &self.line(function));
            }
            profile.message(field::LOCATION, &location);
        }
        if recording.not_sampled_ns() > 0 {
            let mut location = Message::of([(1, self.not_sampled_location())]);
            location.message(4, &self.line(Cow::Owned(Function::new(names::NOT_SAMPLED, ""))));
            profile.message(field::LOCATION, &location);
        }
    }

    fn line(&mut self, function: Cow<'a, Function>) -> Message {
        let line = u64::from(function.line);
        let key = match function {
            Cow::Borrowed(function) => (self.text(&function.name), self.text(&function.file)),
            Cow::Owned(function) => (self.text(function.name), self.text(function.file)),
        };
        let id = self.functions.insert_full(key).0 as u64 + 1;
        Message::of([(1, id), (2, line)])
    }
}

fn location_id(frame: u32) -> u64 {
    u64::from(frame) + 1
}

/// A protocol buffers message under construction. Zeros are left out: absence means 0.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn of(numbers: impl IntoIterator<Item = (u64, u64)>) -> Message {
        let mut message = Message::default();
        numbers.into_iter().for_each(|(field, number)| message.number(field, number));
        message
    }

    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            put_u64(&mut self.0, field << 3);
            put_u64(&mut self.0, number);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        put_u64(&mut self.0, field << 3 | 2);
        put_u64(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, numbers: impl IntoIterator<Item = u64>) {
        let mut packed = Vec::new();
        numbers.into_iter().for_each(|number| put_u64(&mut packed, number));
        if !packed.is_empty() {
            self.bytes(field, &packed);
        }
    }
}

#[cfg(test)]
mod tests;
