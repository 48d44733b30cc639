//! The size of files.

use crate::recording::{Frame, Function, Kind, Recording, Sample, Stack, Thread, decode, encode};
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_base::wait::WaitKind;
use kvant_env::rng::Rng;

/// A minute of two busy processors: 30,000 samples of CPU time and 20,000 others over 5,000 stacks
/// of depth 25, with names.
#[test]
fn a_minute_of_a_busy_server_is_a_small_file() {
    let mut rng = Rng::new(1);
    let mut recording = Recording {
        names: vec![String::new(), "gate".into(), "commit_queue".into(), "fdatasync".into()],
        threads: (0..12)
            .map(|number| Thread { id: 4000 + number, name: format!("worker-{number}") })
            .collect(),
        stacks: vec![Stack { parent: 0, frame: 0 }],
        ..Recording::default()
    };
    let words = [
        "kvant_engine",
        "table",
        "reader",
        "Block",
        "tokio",
        "runtime",
        "poll",
        "{closure#0}",
        "impl",
        "read_at",
    ];
    for number in 0..4000 {
        recording.frames.push(Frame {
            address: 0x5555_5555_0000 + rng.below(8 << 20),
            is_kernel: false,
            is_return: number % 4 != 0,
        });
        let name = |rng: &mut Rng| {
            (0..5).map(|_| words[rng.below(10) as usize]).collect::<Vec<_>>().join("::")
        };
        let functions = (0..1 + rng.below(3)).map(|_| Function {
            name: format!("{}_{}", name(&mut rng), rng.below(1000)),
            file: format!("crates/kvant-engine/src/table/part_{}.rs", rng.below(200)),
            line: rng.below(500) as u32,
        });
        recording.symbols.push(functions.collect::<Vec<_>>());
    }
    // Stacks branch off each other: most of a stack is shared.
    let mut leaves = vec![0u32];
    for _ in 0..5000 {
        let mut node = leaves[rng.below(leaves.len() as u64) as usize];
        for _ in 0..1 + rng.below(8) {
            recording.stacks.push(Stack { parent: node, frame: rng.below(4000) as u32 });
            node = recording.stacks.len() as u32 - 1;
        }
        leaves.push(node);
    }
    let mut times_ns: Vec<u64> = (0..50_000).map(|_| rng.below(60_000_000_000)).collect();
    times_ns.sort_unstable();
    for time_ns in times_ns {
        // Some stacks are much more frequent than others.
        let rank = rng.below(5000).min(rng.below(5000)).min(rng.below(5000));
        let (kind, duration_ns, name, weight) = match rng.below(5) {
            0 => (Kind::Alloc, 0, 0, (512 << 10) + rng.below(64) * 1000),
            1 => {
                let duration_ns = rng.below(3_000_000);
                let name = 1 + rng.below(3) as u32;
                (
                    Kind::Wait(WaitKind::ALL[rng.below(5) as usize]),
                    duration_ns,
                    name,
                    duration_ns + rng.below(1_000_000),
                )
            }
            _ => (Kind::Cpu, 0, 0, 5_025_125),
        };
        recording.samples.push(Sample {
            kind,
            time_ns,
            duration_ns,
            thread: rng.below(12) as u32,
            tag: Tag {
                activity: Activity::ALL[rng.below(6) as usize],
                stage: Stage::ALL[rng.below(8) as usize],
            },
            name,
            stack: leaves[rank as usize],
            weight,
            is_live: kind == Kind::Alloc && rng.one_in(3),
        });
    }
    let file = encode(&recording);
    assert!(file.len() < 800_000, "{} bytes", file.len());
    assert_eq!(decode(&file).unwrap(), recording);
}
