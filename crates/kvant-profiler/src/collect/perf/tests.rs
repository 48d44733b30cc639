use super::*;
use crate::collect::{clock, lane};

/// Samples of the calling thread while it spends this much CPU time: how many, their weights, and
/// how many have frames of the kernel.
fn sample(cpu_ns: u64, with_kernel: bool) -> io::Result<(u64, u64, u64)> {
    handler::install()?;
    lane::keep_ready(4)?;
    let lane = lane::of_this_thread().expect("there are free ones");
    lane.signal.clear();
    let start_ns = clock::own_cpu_ns();
    lane.sampled_cpu_ns.store(start_ns, Ordering::Relaxed);
    let event = Event::start(lane, 1_000_000, with_kernel)?;
    handler::switch(true);
    while clock::own_cpu_ns() - start_ns < cpu_ns {}
    drop(event);
    handler::switch(false);
    let (mut count, mut weight_ns, mut kernel_count) = (0, 0, 0);
    lane.signal.drain(&mut Vec::new(), |header, _| {
        count += 1;
        weight_ns += header.weight;
        kernel_count += u64::from(header.kernel_frame_count > 0);
    });
    Ok((count, weight_ns, kernel_count))
}

#[test]
fn samples_stand_for_the_time_that_was_sampled() {
    let cpu_ns = 200_000_000;
    // Reading the clock is work of the kernel.
    if let Ok((count, weight_ns, kernel_count)) = sample(cpu_ns, true) {
        assert!(count > 20 && kernel_count > 0, "{count} {kernel_count}");
        assert!(weight_ns > cpu_ns * 9 / 10 && weight_ns < cpu_ns * 11 / 10, "{weight_ns}");
    }
    // Of the time outside of the kernel, each stands for a period.
    if let Ok((count, weight_ns, kernel_count)) = sample(cpu_ns, false) {
        assert!(count > 0 && weight_ns < cpu_ns, "{count} {weight_ns}");
        assert_eq!((weight_ns, kernel_count), (count * 1_000_000, 0));
    }
}

#[test]
fn memory_that_is_gone_is_not_used() {
    lane::keep_ready(4).expect("memory");
    let lane = lane::take(u32::MAX - 1).expect("there are free ones");
    with_page(lane, |_| panic!("there is none"));
    assert!(!lane.is_page_in_use.load(Ordering::SeqCst));
    lane.release(|| true, || {});
}

#[test]
fn a_refusal_says_which_setting_and_what_to_do() {
    let error = io::Error::from_raw_os_error(libc::EACCES);
    let text = refusal_text(&error, "4");
    for part in [
        "perf events: Permission denied",
        "kernel.perf_event_paranoid is 4",
        "sysctl kernel.perf_event_paranoid=1",
        "--engine timer",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // Where there are no perf events at all there is no such setting.
    assert!(!refusal_text(&error, "").contains("paranoid is"));
    assert_eq!(refusal(&error).kind(), io::ErrorKind::PermissionDenied);
}
