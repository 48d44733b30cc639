use super::*;
use kvant_base::ErrorKind;
use kvant_base::checksum::crc32c_masked;
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_base::wait::WaitKind;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

mod random;
mod size;

use random::random_recording;

const PAGE: &str = include_str!("../../../../docs/formats/recording.md");

/// The bytes of the worked example: lines of offset and hexadecimal bytes.
fn worked_example() -> Vec<u8> {
    let example = PAGE.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let bytes = example.lines().flat_map(|line| line.split_whitespace().skip(1));
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn example() -> Recording {
    let sample = Sample {
        kind: Kind::Cpu,
        time_ns: 1_000_000,
        duration_ns: 0,
        thread: 0,
        tag: Tag { activity: Activity::Get, stage: Stage::Table },
        name: 0,
        stack: 2,
        weight: 4_000_000,
        is_live: false,
    };
    Recording {
        facts: Facts {
            started_wall_ns: 1_700_000_000_000_000_000,
            duration_ns: 2_000_000_000,
            command: "kvant serve".into(),
            version: "0.1.0".into(),
            process_id: 42,
            cpu_count: 2,
            process_cpu_ns: 1_000_000_000,
            cpu: Some(CpuSampling {
                engine: "timer".into(),
                period_ns: 4_000_000,
                has_kernel_frames: false,
            }),
            alloc_mean_bytes: Some(512 << 10),
            wait_mean_ns: None,
            dropped_count: 0,
            modules: vec![Module {
                path: "/kvant".into(),
                start: 0x10000,
                end: 0x20000,
                file_offset_bytes: 0x1000,
                build_id: vec![0xab, 0xcd],
            }],
        },
        threads: vec![Thread { id: 43, name: "worker-0".into() }],
        names: vec![String::new(), "gate".into()],
        frames: vec![
            Frame { address: 0x10040, is_kernel: false, is_return: true },
            Frame { address: 0x10010, is_kernel: false, is_return: false },
        ],
        stacks: vec![
            Stack { parent: 0, frame: 0 },
            Stack { parent: 0, frame: 0 },
            Stack { parent: 1, frame: 1 },
        ],
        samples: vec![
            sample,
            Sample {
                kind: Kind::Alloc,
                time_ns: 1_500_000,
                weight: 512 << 10,
                is_live: true,
                ..sample
            },
            Sample {
                kind: Kind::Wait(WaitKind::Contention),
                time_ns: 1_500_000,
                duration_ns: 3_000_000,
                name: 1,
                stack: 1,
                weight: 5_000_000,
                ..sample
            },
        ],
        spans: vec![Span {
            kind: "flush".into(),
            start_ns: 0,
            end_ns: Some(1_000_000_000),
            fields: vec![("bytes".into(), "4096".into())],
        }],
        symbols: vec![
            vec![Function { name: "main".into(), file: "main.rs".into(), line: 7 }],
            vec![
                Function { name: "read".into(), file: "main.rs".into(), line: 3 },
                Function { name: "get".into(), file: "main.rs".into(), line: 5 },
            ],
        ],
    }
}

#[test]
fn the_worked_example_is_written_and_read_byte_for_byte() {
    let encoded = encode(&example());
    let hex: String =
        (0..).step_by(16).zip(encoded.chunks(16)).fold(String::new(), |text, (offset, line)| {
            let line: String = line.iter().map(|byte| format!(" {byte:02x}")).collect();
            format!("{text}{offset:04x} {line}\n")
        });
    assert!(worked_example() == encoded, "the example should be:\n{hex}");
    assert_eq!(decode(&encoded).unwrap(), example());
}

#[test]
fn an_empty_recording_is_read_with_its_root() {
    let nothing = decode(&encode(&Recording::default())).unwrap();
    assert_eq!(nothing.names, [""]);
    assert_eq!(nothing.stacks, [Stack { parent: 0, frame: 0 }]);
    assert_eq!(decode(&encode(&nothing)).unwrap(), nothing);
}

#[test]
fn random_recordings_survive_a_round_trip() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..300 {
        let recording = random_recording(&mut rng);
        assert_eq!(decode(&encode(&recording)).unwrap(), recording);
    }
}

/// Corrects the checksums of a damaged file, as far as its sections can be found.
fn mend_checksums(file: &mut [u8]) {
    if file.len() < 16 {
        return;
    }
    let crc = crc32c_masked(&[&file[..12]]);
    file[12..16].copy_from_slice(&crc.to_le_bytes());
    let mut at = 16;
    while file.len() >= at + 14 {
        let stored_bytes = u32::from_le_bytes(file[at + 6..at + 10].try_into().unwrap()) as usize;
        let Some(end) = (at + 14).checked_add(stored_bytes).filter(|&end| end <= file.len()) else {
            return;
        };
        let crc = crc32c_masked(&[&file[at..at + 10], &file[at + 14..end]]);
        file[at + 10..at + 14].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
}

fn assert_valid(recording: &Recording) {
    let Recording { threads, names, frames, stacks, samples, symbols, .. } = recording;
    assert_eq!(names[0], "");
    for (index, stack) in stacks.iter().enumerate().skip(1) {
        assert!((stack.parent as usize) < index && (stack.frame as usize) < frames.len());
    }
    for sample in samples {
        assert!((sample.thread as usize) < threads.len());
        assert!((sample.name as usize) < names.len());
        assert!((sample.stack as usize) < stacks.len());
    }
    assert!(samples.is_sorted_by_key(|sample| sample.time_ns));
    assert!(symbols.is_empty() || symbols.len() == frames.len());
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (mut refused_count, mut read_count) = (0, 0);
    for round in 0..1200 {
        let recording = random_recording(&mut rng);
        let mut file = encode(&recording);
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(file.len() as u64) as usize;
            match rng.below(4) {
                0 => file[at] ^= 1 << rng.below(8),
                1 => file[at] = rng.next_u64() as u8,
                2 => file.truncate(at.max(1)),
                _ => file.insert(at, rng.next_u64() as u8),
            }
        }
        // In every other round the damage passes the checksums and reaches the grammar.
        let is_mended = round % 2 == 0;
        if is_mended {
            mend_checksums(&mut file);
        }
        match decode(&file) {
            Ok(read) if is_mended => {
                assert_valid(&read);
                read_count += 1;
            }
            Ok(read) => assert_eq!(read, recording, "damage that cancels itself"),
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported),
                    "{error}"
                );
                refused_count += 1;
            }
        }
    }
    assert!(refused_count > 400 && read_count > 0, "{refused_count} {read_count}");
}

#[test]
fn a_newer_version_is_refused_with_its_number() {
    let mut file = encode(&example());
    file[8] = 9;
    mend_checksums(&mut file);
    let error = decode(&file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("version 9"), "{error}");
}

#[test]
fn errors_have_offsets() {
    let file = encode(&example());
    let error = decode(b"<!DOCTYPE html>").unwrap_err();
    assert!(error.message().contains("not a recording"), "{error}");
    let mut damaged = file.clone();
    damaged[35] ^= 1;
    let error = decode(&damaged).unwrap_err();
    assert_eq!((error.kind(), error.offset_bytes()), (ErrorKind::Corruption, Some(16)));
    assert!(error.message().contains("facts"), "{error}");
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(decode(&longer).unwrap_err().offset_bytes(), Some(file.len() as u64));
}

/// A section that inflates to 200 MiB of zeros is inflated only up to its stated length.
#[test]
fn a_decompression_bomb_is_refused() {
    use std::io::Write;
    let file = encode(&Recording::default());
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..200).for_each(|_| encoder.write_all(&zeros).unwrap());
    let bomb = encoder.finish().unwrap();
    for raw_bytes in [100, 300 << 20] {
        let mut file = file[..16].to_vec();
        file.extend([1, 1]);
        file.extend(u32::to_le_bytes(raw_bytes));
        file.extend((bomb.len() as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend(&bomb);
        mend_checksums(&mut file);
        let error = decode(&file).unwrap_err();
        assert!(error.message().contains("l"), "{error}");
        assert_eq!((error.kind(), error.offset_bytes()), (ErrorKind::Corruption, Some(16)));
    }
}

/// A short file with one long name that all frames use.
#[test]
fn repeated_names_are_limited() {
    let mut recording = example();
    recording.symbols = vec![Vec::new(), Vec::new()];
    let function = Function { name: "x".repeat(4 << 20), file: String::new(), line: 0 };
    recording.symbols[0] = vec![function; 33];
    let file = encode(&recording);
    assert!(file.len() < 100 << 10, "{}", file.len());
    assert_eq!(decode(&file).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn not_sampled_cpu_time_is_the_kernels_figure_minus_the_samples() {
    let mut recording = Recording::default();
    recording.facts.process_cpu_ns = 241;
    let sample = |kind, weight| Sample { weight, ..Sample::of(kind) };
    recording.samples =
        vec![sample(Kind::Cpu, 100), sample(Kind::Alloc, 4096), sample(Kind::Cpu, 58)];
    // If CPU time was not sampled, none is missing.
    assert_eq!(recording.not_sampled_ns(), 0);
    recording.facts.cpu =
        Some(CpuSampling { engine: "timer".into(), period_ns: 1, has_kernel_frames: false });
    assert_eq!(recording.not_sampled_ns(), 83);
    recording.samples.push(sample(Kind::Cpu, 200));
    assert_eq!(recording.not_sampled_ns(), 0);
}

#[test]
fn perf_events_without_the_kernel_state_their_blind_spot() {
    let blind_spot = |engine: &str, has_kernel_frames| {
        CpuSampling { engine: engine.into(), period_ns: 1, has_kernel_frames }.blind_spot()
    };
    let text = blind_spot("perf", false).unwrap();
    for part in ["time in the kernel", "sysctl kernel.perf_event_paranoid=1", "--engine timer"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(blind_spot("perf", true), None);
    assert_eq!(blind_spot("timer", false), None);
}

/// Stacks that are one chain would make each sample as long as the chain.
#[test]
fn stacks_deeper_than_those_of_samples_are_refused() {
    let chain = |depth: u32| {
        let mut recording = example();
        let node = |number: u32| Stack { parent: number.saturating_sub(1), frame: 0 };
        recording.stacks = (0..=depth).map(node).collect();
        decode(&encode(&recording))
    };
    assert!(chain(512).is_ok());
    assert_eq!(chain(513).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn fields_of_spans_are_counted_together() {
    const FIELDS_MAX: usize = 1 << 20;
    let with_fields = |counts: [usize; 2]| {
        let fields = |count| vec![(String::new(), String::new()); count];
        let span =
            |count| Span { kind: String::new(), start_ns: 0, end_ns: None, fields: fields(count) };
        decode(&encode(&Recording { spans: counts.map(span).to_vec(), ..Recording::default() }))
    };
    assert!(with_fields([FIELDS_MAX - 1, 1]).is_ok());
    assert_eq!(with_fields([FIELDS_MAX, 1]).unwrap_err().kind(), ErrorKind::Corruption);
}
