use super::*;
use std::thread;

#[test]
fn a_thread_has_one_lane_until_it_has_ended() {
    keep_ready(4).expect("memory");
    let lane = of_this_thread().expect("there are free ones");
    assert!(ptr::eq(lane, of_this_thread().expect("its own")));
    assert!(ptr::eq(lane, take(own_thread_id()).expect("its own")));
    assert_eq!(lane.owner(), own_thread_id());
    assert!(owned().any(|owned| ptr::eq(owned, lane)));

    // It lives.
    lane.release(|| false, || panic!("nobody may look"));
    assert_eq!(lane.owner(), own_thread_id());
}

#[test]
fn the_lane_of_a_thread_that_has_ended_is_used_again_after_a_last_look() {
    keep_ready(4).expect("memory");
    let (lane, id) =
        thread::spawn(|| (of_this_thread().expect("there are free ones"), own_thread_id()))
            .join()
            .expect("it takes one");
    assert_eq!(lane.owner(), id);
    let mut look_count = 0;
    lane.release(|| true, || look_count += 1);
    assert_eq!(look_count, 1);
    assert_ne!(lane.owner(), id);
}

#[test]
fn only_the_address_of_a_lane_leads_to_one() {
    let lane = &LANES[3];
    let address = ptr::from_ref(lane) as usize;
    assert!(ptr::eq(at(address).expect("a lane"), lane));
    for other in [0, 1, address + 8, address - 1, usize::MAX, LANES.as_ptr_range().end as usize] {
        assert!(at(other).is_none(), "{other:#x}");
    }
}
