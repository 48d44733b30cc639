//! The format of `go tool pprof`: a gzipped `perftools.profiles.Profile` (`profile.proto` of
//! google/pprof).
//!
//! A sample has a value for each kind that was recorded, and the labels `thread`, `activity`,
//! `stage` and `lock`. Equal ones are added up, so times within the recording are lost. Functions
//! and inlined frames are there; a reader needs no executables. CPU time that no sample stands for
//! is a sample of its own, in the function `[not sampled]`, without labels.
//!
//! Functions have no system name: `go tool pprof` takes one that is the same as the name for
//! mangled C++, and cuts type parameters off.

use super::names;
use crate::recording::{Function, Kind, Recording, Sample};
use flate2::Compression;
use flate2::write::GzEncoder;
use kvant_base::tag::Tag;
use kvant_base::varint::put_u64;
use kvant_base::wait::WaitKind;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// A recording as a `.pb.gz` file.
pub fn pprof(recording: &Recording) -> Vec<u8> {
    let mut profile = Profile {
        recording,
        message: Message::default(),
        texts: HashMap::from([(String::new(), 0)]),
        functions: HashMap::new(),
    };
    profile.write();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(&profile.message.0)
        .and_then(|()| encoder.finish())
        .expect("a vector takes all bytes")
}

/// A value that samples have: its name, its unit, and what a sample adds to it.
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

/// All values; the names are Go's where Go has them.
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
        // A wait that was sampled stands for as many as its weight holds of it.
        of: |sample| sample.weight.checked_div(sample.duration_ns).unwrap_or(1).max(1),
    },
    weight_of("delay", NS, Kind::Wait(WaitKind::Contention)),
    weight_of("idle", NS, Kind::Wait(WaitKind::Idle)),
    weight_of("backpressure", NS, Kind::Wait(WaitKind::Backpressure)),
    weight_of("io", NS, Kind::Wait(WaitKind::Io)),
    weight_of("scheduler", NS, Kind::Wait(WaitKind::Scheduler)),
    weight_of("holder", NS, Kind::Holder),
];

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

struct Profile<'a> {
    recording: &'a Recording,
    message: Message,
    /// The string table.
    texts: HashMap<String, u64>,
    /// Name and file to number, from 1.
    functions: HashMap<(u64, u64), u64>,
}

impl Profile<'_> {
    fn write(&mut self) {
        let types = self.value_types();
        for value_type in &types {
            let message = self.value_type(value_type.name, value_type.unit);
            self.message.message(field::SAMPLE_TYPE, &message);
        }
        self.samples(&types);
        self.mappings();
        self.locations();
        let facts = &self.recording.facts;
        self.message.number(field::TIME_NANOS, facts.started_wall_ns);
        self.message.number(field::DURATION_NANOS, facts.duration_ns);
        if let Some(cpu) = &facts.cpu {
            let message = self.value_type("cpu", NS);
            self.message.message(field::PERIOD_TYPE, &message);
            self.message.number(field::PERIOD, cpu.period_ns);
        }
        let comment = self.text(&format!("{} (kvant {})", facts.command, facts.version));
        self.message.number(field::COMMENT, comment);
        if let Some(first) = types.first() {
            let name = self.text(first.name);
            self.message.number(field::DEFAULT_SAMPLE_TYPE, name);
        }
        // The first text is the empty one; the others follow in the order of their numbers.
        let mut texts: Vec<(&String, &u64)> = self.texts.iter().collect();
        texts.sort_unstable_by_key(|(_, number)| **number);
        for (text, _) in texts {
            self.message.bytes(field::STRING_TABLE, text.as_bytes());
        }
    }

    /// The values of kinds that were recorded.
    fn value_types(&self) -> Vec<&'static ValueType> {
        let facts = &self.recording.facts;
        let is_recorded = |kind: Kind| {
            let is_switched_on = match kind {
                Kind::Cpu => facts.cpu.is_some(),
                Kind::Alloc => facts.alloc_mean_bytes.is_some(),
                Kind::Wait(_) | Kind::Holder => facts.wait_mean_ns.is_some(),
            };
            is_switched_on || self.recording.samples.iter().any(|sample| sample.kind == kind)
        };
        let recorded = VALUE_TYPES.iter().filter(|value_type| is_recorded(value_type.kind));
        recorded.collect()
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.text(name));
        message.number(2, self.text(unit));
        message
    }

    fn samples(&mut self, types: &[&ValueType]) {
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
            let mut message = Message::default();
            let locations = names::frames(self.recording, stack).map(|frame| u64::from(frame) + 1);
            message.packed(1, locations);
            message.packed(2, values.into_iter());
            let thread = names::thread(self.recording, thread);
            let lock = self.recording.names[name as usize].clone();
            let labels = [
                ("thread", &thread[..]),
                ("activity", tag.activity.name()),
                ("stage", tag.stage.name()),
                ("lock", &lock),
            ];
            for (key, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
                let mut label = Message::default();
                label.number(1, self.text(key));
                label.number(2, self.text(value));
                message.message(3, &label);
            }
            self.message.message(field::SAMPLE, &message);
        }
        let not_sampled_ns = self.recording.not_sampled_ns();
        if not_sampled_ns > 0 {
            let values = types.iter().map(|value_type| match value_type.kind {
                Kind::Cpu => not_sampled_ns,
                _ => 0,
            });
            let mut message = Message::default();
            message.packed(1, std::iter::once(self.not_sampled_location()));
            message.packed(2, values);
            self.message.message(field::SAMPLE, &message);
        }
    }

    /// The location after those of all frames.
    fn not_sampled_location(&self) -> u64 {
        self.recording.frames.len() as u64 + 1
    }

    fn mappings(&mut self) {
        let is_resolved = !self.recording.needs_symbols();
        for (number, module) in (1..).zip(&self.recording.facts.modules) {
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, module.start);
            message.number(3, module.end);
            message.number(4, module.file_offset_bytes);
            message.number(5, self.text(&module.path));
            let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            message.number(6, self.text(&id));
            // has_functions, has_filenames, has_line_numbers, has_inline_frames
            (7..=10).for_each(|field| message.number(field, u64::from(is_resolved)));
            self.message.message(field::MAPPING, &message);
        }
    }

    fn locations(&mut self) {
        for (index, frame) in (0..).zip(&self.recording.frames) {
            let address = frame.address.saturating_sub(u64::from(frame.is_return));
            let modules = &self.recording.facts.modules;
            let module = modules.iter().position(|module| {
                !frame.is_kernel && (module.start..module.end).contains(&address)
            });
            let mut message = Message::default();
            message.number(1, u64::from(index) + 1);
            message.number(2, module.map_or(0, |module| module as u64 + 1));
            message.number(3, address);
            for function in names::functions(self.recording, index).iter() {
                let mut line = Message::default();
                line.number(1, self.function(function));
                line.number(2, u64::from(function.line));
                message.message(4, &line);
            }
            self.message.message(field::LOCATION, &message);
        }
        if self.recording.not_sampled_ns() > 0 {
            let function =
                Function { name: names::NOT_SAMPLED.to_owned(), file: String::new(), line: 0 };
            let (mut message, mut line) = (Message::default(), Message::default());
            line.number(1, self.function(&function));
            message.number(1, self.not_sampled_location());
            message.message(4, &line);
            self.message.message(field::LOCATION, &message);
        }
    }

    /// The number of a function, which is written when it is new.
    fn function(&mut self, function: &Function) -> u64 {
        let key = (self.text(&function.name), self.text(&function.file));
        let next = self.functions.len() as u64 + 1;
        let number = *self.functions.entry(key).or_insert(next);
        if number == next {
            let (name, file) = key;
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, name);
            message.number(4, file);
            self.message.message(field::FUNCTION, &message);
        }
        number
    }
}

/// A message of protocol buffers, as it grows. What is 0 is left out, as its absence means 0.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
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

    fn packed(&mut self, field: u64, numbers: impl Iterator<Item = u64>) {
        let mut packed = Vec::new();
        numbers.for_each(|number| put_u64(&mut packed, number));
        if !packed.is_empty() {
            self.bytes(field, &packed);
        }
    }
}

#[cfg(test)]
mod tests;
