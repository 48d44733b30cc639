use super::*;

/// On a thread of its own, whose slice ends with it.
fn on_a_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn a_slice_changes_neither_policy_nor_niceness() {
    let (before, after) = on_a_thread(|| {
        let niceness = rustix::process::getpriority_process(None).unwrap();
        rustix::process::setpriority_process(None, (niceness + 3).min(19)).unwrap();
        let before = attributes().unwrap();
        set_time_slice(Duration::from_micros(300)).unwrap();
        (before, attributes().unwrap())
    });
    let shares = |attributes: &libc::sched_attr| (attributes.sched_policy, attributes.sched_nice);
    assert_eq!(shares(&after), shares(&before));
    // Older kernels report no slice.
    assert!([0, 300_000].contains(&after.sched_runtime), "{}", after.sched_runtime);
}
