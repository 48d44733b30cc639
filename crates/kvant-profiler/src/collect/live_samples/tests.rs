use super::*;
use crate::recording::Kind;

fn samples(count: usize) -> Vec<Sample> {
    vec![Sample::of(Kind::Alloc); count]
}

fn live(samples: &[Sample]) -> Vec<bool> {
    samples.iter().map(|sample| sample.is_live).collect()
}

#[test]
fn a_free_that_arrives_before_its_allocation_ends_it() {
    let mut samples = samples(1);
    let mut changes = LiveSamples::default();
    changes.add_free(20, 0x10);
    changes.settle(30, &mut samples);
    changes.add_allocation(10, 0x10, 0);
    changes.settle(40, &mut samples);
    assert_eq!(live(&samples), [false]);
    changes.settle(u64::MAX, &mut samples);
    assert_eq!(live(&samples), [false]);
}

#[test]
fn a_reused_address_belongs_to_its_last_allocation() {
    let mut samples = samples(3);
    let mut changes = LiveSamples::default();
    changes.add_allocation(1, 0x10, 0);
    changes.add_free(2, 0x10);
    changes.add_allocation(3, 0x10, 1);
    // Its free was dropped.
    changes.add_allocation(5, 0x10, 2);
    changes.settle(u64::MAX, &mut samples);
    assert_eq!(live(&samples), [false, false, true]);
}

#[test]
fn a_change_is_applied_one_drain_after_it_arrived() {
    let mut samples = samples(2);
    let mut changes = LiveSamples::default();
    changes.add_allocation(10, 0x10, 0);
    changes.settle(100, &mut samples);
    assert_eq!(live(&samples), [false, false]);
    changes.add_allocation(110, 0x20, 1);
    changes.settle(200, &mut samples);
    assert_eq!(live(&samples), [true, false]);
    changes.settle(300, &mut samples);
    assert_eq!(live(&samples), [true, true]);
}
