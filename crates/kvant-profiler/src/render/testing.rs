//! A small recording for the tests of this module.

use crate::recording::{
    CpuSampling, Facts, Frame, Function, Kind, Module, Recording, Sample, Stack, Thread,
};
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_base::wait::WaitKind;

/// `main` calls `get`, into which `read` is inlined and which calls the kernel; a second thread
/// only waits.
pub(super) fn recording() -> Recording {
    let frame = |address, is_kernel, is_return| Frame { address, is_kernel, is_return };
    let function = |name: &str, line| Function { name: name.into(), file: "main.rs".into(), line };
    let sample = Sample {
        kind: Kind::Cpu,
        time_ns: 0,
        duration_ns: 0,
        thread: 0,
        tag: Tag { activity: Activity::Get, stage: Stage::Table },
        name: 0,
        stack: 3,
        weight: 0,
        is_live: false,
    };
    let samples =
        [(Kind::Cpu, 3, 30), (Kind::Cpu, 2, 7), (Kind::Alloc, 2, 512), (Kind::Cpu, 3, 12)];
    let mut samples: Vec<Sample> = samples
        .map(|(kind, stack, weight)| Sample {
            kind,
            stack,
            weight,
            is_live: kind == Kind::Alloc,
            ..sample
        })
        .to_vec();
    samples.push(Sample {
        kind: Kind::Wait(WaitKind::Contention),
        thread: 1,
        tag: Tag::default(),
        stack: 0,
        name: 1,
        duration_ns: 10,
        weight: 40,
        ..sample
    });
    Recording {
        facts: Facts {
            started_wall_ns: 1_700_000_000_000_000_000,
            duration_ns: 2_000_000_000,
            command: "kvant serve".into(),
            version: "0.1.0".into(),
            cpu: Some(CpuSampling {
                engine: "timer".into(),
                period_ns: 4_000_000,
                has_kernel_frames: false,
            }),
            modules: vec![Module {
                path: "/kvant".into(),
                start: 0x1000,
                end: 0x9000,
                file_offset_bytes: 0x400,
                build_id: vec![0xab, 0xcd],
            }],
            ..Facts::default()
        },
        threads: vec![
            Thread { id: 7, name: "worker;0".into() },
            Thread { id: 8, name: String::new() },
        ],
        names: vec![String::new(), "gate".into()],
        frames: vec![
            frame(0x1100, false, true),
            frame(0x1200, false, true),
            frame(0xffff_ffff_8100_0000, true, false),
        ],
        stacks: vec![
            Stack { parent: 0, frame: 0 },
            Stack { parent: 0, frame: 0 },
            Stack { parent: 1, frame: 1 },
            Stack { parent: 2, frame: 2 },
        ],
        samples,
        spans: Vec::new(),
        symbols: vec![
            vec![function("main", 1)],
            vec![function("read::<[u8; 4]>", 5), function("get", 3)],
            vec![function("copy\nuser", 0)],
        ],
    }
}
