use super::{html, html_difference, script};
use crate::recording::{CpuSampling, Frame, Function, Kind, Recording, Sample, Stack, Thread};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use kvant_base::tag::{Activity, Stage, Tag};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;

/// `main` calls `outer`, into which `inner` is inlined, with two addresses at the same line.
fn recording() -> Recording {
    let function = |name: &str, line| Function {
        name: name.to_owned(),
        file: "crates/kvant/src/main.rs".to_owned(),
        line,
    };
    let frame = |address| Frame { address, is_kernel: false, is_return: true };
    let sample = |kind, time_ns, duration_ns, stack, weight| Sample {
        kind,
        time_ns,
        duration_ns,
        thread: 0,
        tag: Tag { activity: Activity::Put, stage: Stage::Wal },
        name: 0,
        stack,
        weight,
        is_live: false,
    };
    Recording {
        threads: vec![Thread { id: 7, name: "</script><script>alert(1)</script>".to_owned() }],
        names: vec![String::new()],
        frames: vec![frame(0), frame(16), frame(32), frame(48)],
        stacks: [(0, 0), (0, 1), (1, 2), (1, 3)]
            .map(|(parent, frame)| Stack { parent, frame })
            .to_vec(),
        samples: vec![
            sample(Kind::Cpu, 1_500, 0, 2, 4_000_000),
            sample(Kind::Cpu, 2_999, 0, 3, 5_000_000),
            sample(
                Kind::Wait(kvant_base::wait::WaitKind::Io),
                1_999,
                2_000,
                1,
                u64::from(u32::MAX) * 8,
            ),
        ],
        symbols: vec![
            Vec::new(),
            vec![function("kvant::main", 1)],
            vec![function("kvant::inner", 9), function("kvant::outer", 5)],
            vec![function("kvant::inner", 9), function("kvant::outer", 5)],
        ],
        ..Recording::default()
    }
}

/// The data of a page: the JSON text, and the columns by name.
fn unpack(page: &str) -> (Value, HashMap<String, Vec<u64>>) {
    let (_, rest) = page.split_once("class=\"recording\">").expect("a recording");
    let (base64, _) = rest.split_once("</script>").expect("its end");
    let packed = BASE64_STANDARD.decode(base64).expect("base64");
    let mut bytes = Vec::new();
    ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("zlib");
    let (length, rest) = bytes.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let (text, mut rest) = rest.split_at(length);
    let meta: Value = serde_json::from_slice(text).expect("JSON");
    let mut columns = HashMap::new();
    for column in meta["columns"].as_array().expect("columns") {
        let count = column[1].as_u64().expect("a count");
        let numbers: Option<Vec<u64>> =
            (0..count).map(|_| kvant_base::varint::take_u64(&mut rest)).collect();
        columns
            .insert(column[0].as_str().expect("a name").to_owned(), numbers.expect("all numbers"));
    }
    assert!(rest.is_empty());
    (meta, columns)
}

#[test]
fn addresses_become_a_tree_of_functions_at_lines() {
    let (meta, columns) = unpack(&html(&recording()));
    let names: Vec<&str> = ["node.function"]
        .iter()
        .flat_map(|name| &columns[*name])
        .map(|&number| meta["functions"][number as usize].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["", "kvant::main", "kvant::outer", "kvant::inner"]);
    assert_eq!(columns["node.distance"], [0, 1, 1, 1]);
    assert_eq!(columns["node.line"], [0, 1, 5, 9]);
    assert_eq!(columns["node.inlined"], [0, 0, 0, 1]);
    // Both addresses are at the same line.
    assert_eq!(columns["cpu.node"], [3, 3]);
}

#[test]
fn samples_are_rounded_to_microseconds_and_keep_their_weight() {
    let (meta, columns) = unpack(&html(&recording()));
    assert_eq!(meta["kinds"], serde_json::json!(["cpu", "io"]));
    assert_eq!(columns["cpu.gap_us"], [1, 1]);
    assert_eq!(columns["cpu.weight"], [4_000_000, 5_000_000]);
    // From 1.999 to 3.999.
    assert_eq!(columns["io.gap_us"], [1]);
    assert_eq!(columns["io.duration_us"], [2]);
    assert_eq!(columns["io.weight"], [u64::from(u32::MAX) * 8]);
    assert_eq!(columns["io.activity"], [Activity::Put as u64]);
    assert_eq!(columns["io.stage"], [Stage::Wal as u64]);
}

#[test]
fn the_whole_range_includes_its_last_microsecond() {
    let range_us = |last_ns: u64| {
        let mut recording = recording();
        recording.facts.duration_ns = 10_500;
        recording.samples.truncate(1);
        recording.samples[0].time_ns = last_ns;
        unpack(&html(&recording)).0["durationUs"].clone()
    };
    assert_eq!(range_us(1_000), 11);
    assert_eq!(range_us(10_400), 11);
    // The range is half open: the eleventh microsecond is inside.
    assert_eq!(range_us(11_000), 12);
}

#[test]
fn without_symbols_modules_stand_for_functions() {
    let mut recording = recording();
    recording.symbols.clear();
    let (meta, columns) = unpack(&html(&recording));
    assert_eq!(meta["functions"], serde_json::json!(["", "[unknown]"]));
    assert_eq!(columns["cpu.weight"], [4_000_000, 5_000_000]);
}

#[test]
fn nothing_in_a_recording_becomes_markup() {
    let page = html(&recording());
    assert!(!page.contains("alert(1)"));
    assert_eq!(page.matches("<script").count(), 2);
}

#[test]
fn a_page_states_unsampled_cpu_time_and_blind_spots() {
    let mut recording = recording();
    recording.facts.process_cpu_ns = 10_000_000;
    recording.facts.cpu =
        Some(CpuSampling { engine: "perf".into(), period_ns: 4_000_000, has_kernel_frames: false });
    let (meta, _) = unpack(&html(&recording));
    assert_eq!(meta["notSampledNs"], 1_000_000);
    let blind_spot = meta["blindSpot"].as_str().expect("a sentence");
    assert!(blind_spot.contains("perf_event_paranoid"), "{blind_spot}");
}

#[test]
fn a_difference_contains_both_recordings() {
    let base = recording();
    let mut other = recording();
    other.samples.clear();
    let page = html_difference(&base, &other, Some([1000.0, 1250.5]));
    assert_eq!(page.matches("class=\"recording\">").count(), 2);
    assert!(page.contains("id=\"rates\">[1000,1250.5]</script>"));
}

#[test]
fn a_page_is_one_script_that_loads_nothing() {
    let script = script();
    for word in ["\nimport ", "\nexport ", "fetch(", "XMLHttpRequest", "WebSocket", "http"] {
        assert!(!script.contains(word), "{word}");
    }
    assert!(html(&recording()).contains("default-src 'none'"));
}
