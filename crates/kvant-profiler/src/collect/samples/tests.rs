use super::*;

const STARTED_NS: u64 = 1_000;

fn header(kind: Kind, time_mono_ns: u64) -> Header {
    Header {
        code: kind.code(),
        has_interrupted_frame: kind == Kind::Cpu,
        kernel_frame_count: 0,
        tag: 0,
        time_mono_ns,
        weight: 1,
        duration_ns: 0,
        name: "",
        address: 0,
    }
}

fn finished(samples: Samples) -> Recording {
    let mut recording = Recording::default();
    samples.finish(&mut recording);
    recording
}

#[test]
fn frames_tell_kernel_from_user_and_return_addresses_from_interrupted_ones() {
    let mut samples = Samples::new(STARTED_NS, 10);
    let with_kernel = Header { kernel_frame_count: 2, ..header(Kind::Cpu, STARTED_NS) };
    samples.add(0, &with_kernel, &[1, 2, 3, 4]);
    assert!(samples.has_kernel_frames());
    let recording = finished(samples);
    let of = |address: u64| {
        let frame = recording.frames.iter().find(|frame| frame.address == address);
        let frame = frame.expect("a frame with this address");
        (frame.is_kernel, frame.is_return)
    };
    let seen = [1, 2, 3, 4].map(of);
    assert_eq!(seen, [(true, false), (true, true), (false, false), (false, true)]);
    // The sample's node is the innermost frame.
    let innermost = recording.stacks[recording.samples[0].stack as usize];
    assert_eq!(recording.frames[innermost.frame as usize].address, 1);
}

#[test]
fn records_that_end_before_the_session_are_ignored() {
    let mut samples = Samples::new(STARTED_NS, 10);
    samples.add(0, &header(Kind::Cpu, STARTED_NS - 1), &[]);
    let long_wait =
        Header { duration_ns: 600, ..header(Kind::Wait(WaitKind::Idle), STARTED_NS - 500) };
    samples.add(0, &long_wait, &[]);
    samples.add(0, &header(Kind::Cpu, STARTED_NS + 5), &[]);
    let recording = finished(samples);
    let times: Vec<_> =
        recording.samples.iter().map(|sample| (sample.kind, sample.time_ns)).collect();
    assert_eq!(times, [(Kind::Wait(WaitKind::Idle), 0), (Kind::Cpu, 5)]);
}

#[test]
fn samples_are_sorted_by_time_and_names_stored_once() {
    let mut samples = Samples::new(STARTED_NS, 10);
    for (time_ns, name) in [(30, "b"), (10, "a"), (20, "b"), (40, "")] {
        let named = Header { name, ..header(Kind::Holder, STARTED_NS + time_ns) };
        samples.add(0, &named, &[time_ns]);
    }
    let recording = finished(samples);
    let name = |sample: &Sample| (sample.time_ns, recording.names[sample.name as usize].as_str());
    let named: Vec<_> = recording.samples.iter().map(name).collect();
    assert_eq!(named, [(10, "a"), (20, "b"), (30, "b"), (40, "")]);
    assert_eq!(recording.names, ["", "b", "a"]);
}

#[test]
fn freed_memory_is_not_live_after_any_number_of_thinnings() {
    const COUNT: u64 = 20_000;
    let mut samples = Samples::new(STARTED_NS, 1_000);
    for number in 0..COUNT {
        let allocated = Header {
            weight: 100,
            address: 16 * (1 + number as usize),
            ..header(Kind::Alloc, STARTED_NS + 10 * number)
        };
        samples.add(0, &allocated, &[1]);
        if number % 4 != 0 {
            let freed =
                Header { code: FREE_CODE, time_mono_ns: allocated.time_mono_ns + 1, ..allocated };
            samples.add(0, &freed, &[]);
        }
        if number % 100 == 0 {
            samples.settle(allocated.time_mono_ns);
        }
    }
    let recording = finished(samples);
    assert!(recording.samples.len() <= 1_000);
    let live = recording.samples.iter().filter(|sample| sample.is_live);
    assert!(live.clone().all(|sample| sample.time_ns / 10 % 4 == 0));
    // About 150 samples: the standard deviation is 8 % of the sum.
    let share = live.map(|sample| sample.weight).sum::<u64>() as f64 / (COUNT / 4 * 100) as f64;
    assert!((0.6..1.4).contains(&share), "{share} of the live bytes");
}
