use super::*;
use std::thread;

#[test]
fn a_thread_keeps_one_lane_until_it_ends() {
    keep_ready(4).expect("memory");
    let lane = of_this_thread().expect("a free lane");
    assert!(ptr::eq(lane, of_this_thread().expect("its own")));
    assert!(ptr::eq(lane, take(own_thread_id()).expect("its own")));
    assert_eq!(lane.owner(), own_thread_id());
    assert!(owned().any(|owned| ptr::eq(owned, lane)));

    // The thread has not ended.
    lane.release(|| false, || panic!("a live thread's lane is not drained"));
    assert_eq!(lane.owner(), own_thread_id());
}

#[test]
fn the_lane_of_an_ended_thread_is_released_after_a_last_drain() {
    keep_ready(4).expect("memory");
    let (lane, id) = thread::spawn(|| (of_this_thread().expect("a free lane"), own_thread_id()))
        .join()
        .expect("it takes a lane");
    assert_eq!(lane.owner(), id);
    let mut drain_count = 0;
    lane.release(|| true, || drain_count += 1);
    assert_eq!(drain_count, 1);
    assert_ne!(lane.owner(), id);
}

#[test]
fn only_the_address_of_a_lane_finds_it() {
    let lane = &LANES[3];
    let address = ptr::from_ref(lane) as usize;
    assert!(ptr::eq(at(address).expect("a lane"), lane));
    for other in [0, 1, address + 8, address - 1, usize::MAX, LANES.as_ptr_range().end as usize] {
        assert!(at(other).is_none(), "{other:#x}");
    }
}
