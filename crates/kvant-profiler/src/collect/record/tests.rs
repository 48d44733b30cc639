use super::*;
use crate::collect::lane;
use crate::collect::stack;

#[test]
fn a_program_without_frame_pointers_does_not_fault() {
    lane::keep_ready(4).expect("memory");
    stack::learn();
    let observation = Observation {
        kind: Kind::Cpu,
        name: None,
        time_mono_ns: 1,
        weight: 1,
        duration_ns: 0,
        address: 0,
        frames_to_skip: 0,
    };
    // Any of these would be read if the register were trusted: there is nothing at the first two.
    for frame in [0, 4096, usize::MAX - 7, usize::MAX] {
        record_from(frame, &observation);
    }
}
