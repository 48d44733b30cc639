use super::*;
use crate::recording::Kind;

fn samples(count: usize) -> Vec<Sample> {
    vec![Sample::of(Kind::Alloc); count]
}

fn live(samples: &[Sample]) -> Vec<bool> {
    samples.iter().map(|sample| sample.is_live).collect()
}

#[test]
fn an_end_that_is_found_before_its_beginning_still_is_its_end() {
    let mut samples = samples(1);
    let mut changes = Live::default();
    changes.freed(20, 0x10);
    changes.settle(30, &mut samples);
    changes.allocated(10, 0x10, 0);
    changes.settle(40, &mut samples);
    assert_eq!(live(&samples), [false]);
    changes.settle(u64::MAX, &mut samples);
    assert_eq!(live(&samples), [false]);
}

#[test]
fn an_address_that_is_used_again_belongs_to_its_last_user() {
    let mut samples = samples(3);
    let mut changes = Live::default();
    changes.allocated(1, 0x10, 0);
    changes.freed(2, 0x10);
    changes.allocated(3, 0x10, 1);
    // Its end was dropped.
    changes.allocated(5, 0x10, 2);
    changes.settle(u64::MAX, &mut samples);
    assert_eq!(live(&samples), [false, false, true]);
}

#[test]
fn what_may_still_be_preceded_waits_for_the_next_drain() {
    let mut samples = samples(2);
    let mut changes = Live::default();
    changes.allocated(10, 0x10, 0);
    changes.settle(100, &mut samples);
    assert_eq!(live(&samples), [false, false]);
    changes.allocated(110, 0x20, 1);
    changes.settle(200, &mut samples);
    assert_eq!(live(&samples), [true, false]);
    changes.settle(300, &mut samples);
    assert_eq!(live(&samples), [true, true]);
}
