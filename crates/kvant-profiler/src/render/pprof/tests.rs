use super::super::testing::recording;
use super::*;
use flate2::read::GzDecoder;
use kvant_base::varint::{take_bytes, take_u64};
use std::collections::HashMap;
use std::io::Read;

/// The fields of a message: field numbers with values.
struct Fields(Vec<(u64, Value)>);

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Fields {
    fn of(mut bytes: &[u8]) -> Fields {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take_u64(&mut bytes).unwrap();
            let value = take_u64(&mut bytes).unwrap();
            let value = match key & 7 {
                0 => Value::Number(value),
                2 => Value::Bytes(take_bytes(&mut bytes, value as usize).unwrap().to_vec()),
                wire_type => panic!("wire type {wire_type}"),
            };
            fields.push((key >> 3, value));
        }
        Fields(fields)
    }

    fn bytes(&self, field: u64) -> Vec<&[u8]> {
        let values = self.0.iter().filter(|(number, _)| *number == field);
        values
            .map(|(_, value)| match value {
                Value::Bytes(bytes) => &bytes[..],
                Value::Number(_) => panic!("field {field} is a number"),
            })
            .collect()
    }

    fn messages(&self, field: u64) -> Vec<Fields> {
        self.bytes(field).into_iter().map(Fields::of).collect()
    }

    /// 0 if absent.
    fn number(&self, field: u64) -> u64 {
        match self.0.iter().find(|(number, _)| *number == field) {
            Some((_, Value::Number(number))) => *number,
            Some(_) => panic!("field {field} is no number"),
            None => 0,
        }
    }

    fn packed(&self, field: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for mut bytes in self.bytes(field) {
            while !bytes.is_empty() {
                numbers.push(take_u64(&mut bytes).unwrap());
            }
        }
        numbers
    }
}

fn profile(recording: &Recording) -> (Fields, Vec<String>) {
    let mut raw = Vec::new();
    GzDecoder::new(&pprof(recording)[..]).read_to_end(&mut raw).unwrap();
    let profile = Fields::of(&raw);
    let texts = profile.bytes(field::STRING_TABLE);
    let texts = texts.into_iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
    (profile, texts)
}

#[test]
fn samples_have_values_labels_and_stacks_with_inlined_functions() {
    let (profile, texts) = profile(&recording());
    let text = |number: u64| &texts[number as usize][..];
    assert_eq!(text(0), "");
    let types: Vec<_> = profile
        .messages(field::SAMPLE_TYPE)
        .iter()
        .map(|t| (text(t.number(1)), text(t.number(2))))
        .collect();
    let expected = [
        ("cpu", "nanoseconds"),
        ("alloc_space", "bytes"),
        ("inuse_space", "bytes"),
        ("contentions", "count"),
        ("delay", "nanoseconds"),
    ];
    assert_eq!(types, expected);
    let functions: HashMap<u64, &str> = profile
        .messages(field::FUNCTION)
        .iter()
        .map(|function| (function.number(1), text(function.number(2))))
        .collect();
    // The address, and for each function its name and line.
    type Location<'a> = (u64, Vec<(&'a str, u64)>);
    let locations: HashMap<u64, Location> = profile
        .messages(field::LOCATION)
        .iter()
        .map(|location| {
            let lines = location.messages(4);
            let lines = lines.iter().map(|line| (functions[&line.number(1)], line.number(2)));
            (location.number(1), (location.number(2), lines.collect()))
        })
        .collect();
    let samples: Vec<_> = profile
        .messages(field::SAMPLE)
        .iter()
        .map(|sample| {
            let stack: Vec<_> = sample.packed(1).iter().map(|id| locations[id].clone()).collect();
            let labels = sample.messages(3);
            let labels: Vec<_> =
                labels.iter().map(|label| (text(label.number(1)), text(label.number(2)))).collect();
            (stack, sample.packed(2), labels)
        })
        .collect();
    let tags = vec![("thread", "worker;0"), ("activity", "get"), ("stage", "table")];
    let get = (1, vec![("read::<[u8; 4]>", 5), ("get", 3)]);
    let main = (1, vec![("main", 1)]);
    let kernel = (0, vec![("copy\nuser", 0)]);
    let expected = vec![
        (
            vec![],
            vec![0, 0, 0, 4, 40],
            vec![("thread", "thread 8"), ("activity", "none"), ("stage", "none"), ("lock", "gate")],
        ),
        (vec![get.clone(), main.clone()], vec![7, 512, 512, 0, 0], tags.clone()),
        (vec![kernel, get, main], vec![42, 0, 0, 0, 0], tags),
    ];
    assert_eq!(samples, expected);
}

#[test]
fn times_and_programs_are_included() {
    let (profile, texts) = profile(&recording());
    let text = |number: u64| &texts[number as usize][..];
    assert_eq!(profile.number(field::TIME_NANOS), 1_700_000_000_000_000_000);
    assert_eq!(profile.number(field::DURATION_NANOS), 2_000_000_000);
    assert_eq!(profile.number(field::PERIOD), 4_000_000);
    assert_eq!(text(profile.number(field::DEFAULT_SAMPLE_TYPE)), "cpu");
    assert_eq!(text(profile.number(field::COMMENT)), "kvant serve (kvant 0.1.0)");
    let mapping = &profile.messages(field::MAPPING)[0];
    let numbers: Vec<u64> = [1, 2, 3, 4, 7, 10].map(|field| mapping.number(field)).to_vec();
    assert_eq!(numbers, [1, 0x1000, 0x9000, 0x400, 1, 1]);
    assert_eq!((text(mapping.number(5)), text(mapping.number(6))), ("/kvant", "abcd"));
    // A return address is moved into the call.
    assert_eq!(profile.messages(field::LOCATION)[0].number(3), 0x10ff);
}

#[test]
fn without_symbols_readers_may_resolve_addresses() {
    let mut recording = recording();
    recording.symbols.clear();
    let (profile, texts) = profile(&recording);
    assert_eq!(profile.messages(field::MAPPING)[0].number(7), 0);
    assert!(texts.contains(&"0x1200".to_owned()), "{texts:?}");
}

#[test]
fn cpu_time_without_samples_is_a_sample_of_its_own() {
    let mut recording = recording();
    recording.facts.process_cpu_ns = 60;
    let (profile, texts) = profile(&recording);
    let samples = profile.messages(field::SAMPLE);
    let last = samples.last().unwrap();
    assert_eq!(last.packed(2), [11, 0, 0, 0, 0]);
    assert!(last.messages(3).is_empty());
    let locations = profile.messages(field::LOCATION);
    let location = locations.iter().find(|location| location.number(1) == last.packed(1)[0]);
    let function = location.unwrap().messages(4)[0].number(1);
    let functions = profile.messages(field::FUNCTION);
    let function = functions.iter().find(|found| found.number(1) == function).unwrap();
    assert_eq!(texts[function.number(2) as usize], "[not sampled]");
}

/// Go's reader takes a system name equal to the name for mangled C++, and cuts type parameters off.
#[test]
fn functions_have_whole_names_and_no_system_names() {
    let (profile, texts) = profile(&recording());
    let functions = profile.messages(field::FUNCTION);
    let names: Vec<&str> =
        functions.iter().map(|function| &texts[function.number(2) as usize][..]).collect();
    assert!(names.contains(&"read::<[u8; 4]>"), "{names:?}");
    assert!(functions.iter().all(|function| function.number(3) == 0));
}
