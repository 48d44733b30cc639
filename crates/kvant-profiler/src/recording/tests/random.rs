//! Random recordings.

use crate::recording::{
    CpuSampling, Facts, Frame, Function, Kind, Module, Recording, Sample, Span, Stack, Thread,
};
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_env::rng::Rng;

/// A random recording that keeps the invariants, with numbers of all sizes.
pub(super) fn random_recording(rng: &mut Rng) -> Recording {
    fn number(rng: &mut Rng) -> u64 {
        let bits = rng.below(64);
        rng.next_u64() >> bits
    }
    fn text(rng: &mut Rng) -> String {
        let characters = ["a", "::", "<T>", "é", "\u{1f980}", " ", ";", "\n"];
        let length = rng.below(6);
        (0..length).map(|_| characters[rng.below(8) as usize]).collect()
    }
    let cpu = rng.one_in(2).then(|| CpuSampling {
        engine: text(rng),
        period_ns: number(rng),
        has_kernel_frames: rng.one_in(2),
    });
    let module = |rng: &mut Rng| {
        let start = number(rng) >> 1;
        let id_bytes = rng.below(65) as usize;
        Module {
            path: text(rng),
            start,
            end: start + 1 + (number(rng) >> 2),
            file_offset_bytes: number(rng),
            build_id: rng.bytes(id_bytes),
        }
    };
    let facts = Facts {
        started_wall_ns: number(rng),
        duration_ns: number(rng),
        command: text(rng),
        version: text(rng),
        process_id: number(rng) as u32,
        cpu_count: number(rng) as u32,
        process_cpu_ns: number(rng),
        cpu,
        alloc_mean_bytes: rng.one_in(2).then(|| number(rng)),
        wait_mean_ns: rng.one_in(2).then(|| [0; 5].map(|_: u64| number(rng))),
        dropped_count: number(rng),
        modules: (0..rng.below(4)).map(|_| module(rng)).collect(),
    };
    let threads: Vec<Thread> =
        (0..1 + rng.below(5)).map(|_| Thread { id: number(rng) as u32, name: text(rng) }).collect();
    let mut names = vec![String::new()];
    names.extend((0..rng.below(5)).map(|_| text(rng)));
    let frames: Vec<Frame> = (0..1 + rng.below(50))
        .map(|_| Frame { address: number(rng), is_kernel: rng.one_in(3), is_return: rng.one_in(2) })
        .collect();
    let mut stacks = vec![Stack { parent: 0, frame: 0 }];
    for index in 1..rng.below(100) {
        stacks.push(Stack {
            parent: rng.below(index) as u32,
            frame: rng.below(frames.len() as u64) as u32,
        });
    }
    let mut times_ns: Vec<u64> = (0..rng.below(300)).map(|_| number(rng)).collect();
    times_ns.sort_unstable();
    let samples = times_ns.into_iter().map(|time_ns| Sample {
        kind: Kind::ALL[rng.below(8) as usize],
        time_ns,
        duration_ns: number(rng),
        thread: rng.below(threads.len() as u64) as u32,
        tag: Tag {
            activity: Activity::ALL[rng.below(Activity::ALL.len() as u64) as usize],
            stage: Stage::ALL[rng.below(Stage::ALL.len() as u64) as usize],
        },
        name: rng.below(names.len() as u64) as u32,
        stack: rng.below(stacks.len() as u64) as u32,
        weight: number(rng),
        is_live: rng.one_in(4),
    });
    let samples = samples.collect();
    let span = |rng: &mut Rng| {
        let start_ns = number(rng) >> 1;
        Span {
            kind: text(rng),
            start_ns,
            end_ns: rng.one_in(2).then(|| start_ns + (number(rng) >> 1)),
            fields: (0..rng.below(3)).map(|_| (text(rng), text(rng))).collect(),
        }
    };
    let spans = (0..rng.below(5)).map(|_| span(rng)).collect();
    let function =
        |rng: &mut Rng| Function { name: text(rng), file: text(rng), line: number(rng) as u32 };
    let is_resolved = rng.one_in(2);
    let resolved = frames.iter().filter(|_| is_resolved);
    let symbols = resolved.map(|_| (0..rng.below(4)).map(|_| function(rng)).collect());
    Recording { facts, threads, names, symbols: symbols.collect(), frames, stacks, samples, spans }
}
