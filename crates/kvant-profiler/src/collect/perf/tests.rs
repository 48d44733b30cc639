use super::*;
use crate::collect::{clock, handler};

/// Samples the calling thread while it uses this much CPU time: the number of samples, their
/// weight, and how many have kernel frames.
fn sample(cpu_ns: u64, with_kernel: bool) -> io::Result<(u64, u64, u64)> {
    handler::install()?;
    lane::keep_ready(4)?;
    let lane = lane::of_this_thread().expect("a free lane");
    lane.signal.clear();
    let start_ns = clock::own_cpu_ns();
    lane.sampled_cpu_ns.store(start_ns, Ordering::Relaxed);
    let event = Event::start(lane, 1_000_000, with_kernel)?;
    handler::set_sampling(true);
    while clock::own_cpu_ns() - start_ns < cpu_ns {}
    drop(event);
    handler::set_sampling(false);
    let (mut count, mut weight_ns, mut kernel_count) = (0, 0, 0);
    lane.signal.drain(&mut Vec::new(), |header, _| {
        count += 1;
        weight_ns += header.weight;
        kernel_count += u64::from(header.kernel_frame_count > 0);
    });
    Ok((count, weight_ns, kernel_count))
}

#[test]
fn weights_add_up_to_the_sampled_time() {
    let cpu_ns = 200_000_000;
    // Reading the clock is kernel work.
    if let Ok((count, weight_ns, kernel_count)) = sample(cpu_ns, true) {
        assert!(count > 20 && kernel_count > 0, "{count} {kernel_count}");
        assert!(weight_ns > cpu_ns * 9 / 10 && weight_ns < cpu_ns * 11 / 10, "{weight_ns}");
    }
    // Without the kernel each sample stands for a period of user time.
    if let Ok((count, weight_ns, kernel_count)) = sample(cpu_ns, false) {
        assert!(count > 0 && weight_ns < cpu_ns, "{count} {weight_ns}");
        assert_eq!((weight_ns, kernel_count), (count * 1_000_000, 0));
    }
}

#[test]
fn unmapped_memory_is_not_used() {
    lane::keep_ready(4).expect("memory");
    let lane = lane::take(u32::MAX - 1).expect("a free lane");
    with_page(lane, |_| panic!("nothing is mapped"));
    assert!(!lane.is_page_in_use.load(Ordering::SeqCst));
    lane.release(|| true, || {});
}

#[test]
fn a_refusal_names_the_setting_and_the_remedies() {
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
    // Without perf events there is no such setting.
    assert!(!refusal_text(&error, "").contains("paranoid is"));
    assert_eq!(refusal(&error).kind(), io::ErrorKind::PermissionDenied);
}
