use super::*;

#[test]
fn the_cpu_clock_of_a_thread_id_is_that_threads() {
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let before_ns = own_cpu_ns();
    let by_number_ns = cpu_ns_of(own).expect("this thread lives");
    let after_ns = own_cpu_ns();
    assert!((before_ns..=after_ns).contains(&by_number_ns));
    assert!(process_cpu_ns() >= before_ns);
}

#[test]
fn a_nonexistent_thread_has_no_cpu_clock() {
    // Thread ids of Linux are below 2^22.
    assert_eq!(cpu_ns_of(1 << 23), None);
}
