use super::*;
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_profiler::recording::Sample;

const MS: u64 = 1_000_000;

#[test]
fn samples_are_summed_by_second_and_tag() {
    let sample =
        |kind: Kind, time_ms: u64, duration_ms: u64, activity: Activity, weight_ms: u64| Sample {
            kind,
            time_ns: time_ms * MS,
            duration_ns: duration_ms * MS,
            tag: Tag { activity, stage: Stage::Table },
            weight: weight_ms * MS,
            ..Sample::default()
        };
    let mut recording = Recording::default();
    recording.facts.duration_ns = 2500 * MS;
    recording.samples = vec![
        sample(Kind::Cpu, 0, 50, Activity::Get, 50),
        sample(Kind::Cpu, 100, 50, Activity::Get, 40),
        // It counts where it ends.
        sample(Kind::Cpu, 900, 200, Activity::Range, 60),
        sample(Kind::Alloc, 300, 0, Activity::Get, 1000),
        // After the end of the recording.
        sample(Kind::Cpu, 2990, 20, Activity::Get, 70),
    ];
    let code = |activity: Activity| Tag { activity, stage: Stage::Table }.code();
    let second = |start_ns: u64, length_ms: u64, cpu_ns: Vec<(u16, u64)>| CpuSecond {
        start_ns,
        length_ns: length_ms * MS,
        cpu_ns,
    };
    let expected = [
        second(7, 1000, vec![(code(Activity::Get), 90 * MS)]),
        second(7 + SECOND_NS, 1000, vec![(code(Activity::Range), 60 * MS)]),
        second(7 + 2 * SECOND_NS, 500, Vec::new()),
    ];
    assert_eq!(seconds(7, &recording), expected);
}
