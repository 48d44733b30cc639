use super::*;

#[test]
fn the_cpu_clock_of_a_thread_number_is_the_threads_own() {
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let before_ns = own_cpu_ns();
    let by_number_ns = cpu_ns_of(own).expect("this thread lives");
    let after_ns = own_cpu_ns();
    assert!((before_ns..=after_ns).contains(&by_number_ns));
    assert!(process_cpu_ns() >= before_ns);
}

#[test]
fn a_thread_that_never_was_has_no_cpu_clock() {
    // Linux gives numbers below 2^22 only.
    assert_eq!(cpu_ns_of(1 << 23), None);
}
