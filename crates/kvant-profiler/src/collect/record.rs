//! Samples that a thread takes of itself: allocations and waits, with the caller's stack.
//!
//! Threads: any, outside of signal handlers. Neither function allocates or locks.

use super::anchor;
use super::arch;
use super::clock;
use super::lane;
use super::ring::{FREE_CODE, Header};
use super::walk;
use crate::recording::Kind;
use kvant_base::tag::Tag;

/// Something that the calling thread observed.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The kind of the sample.
    pub kind: Kind,
    /// Start, by [`clock::monotonic_ns`].
    pub time_mono_ns: u64,
    /// Length.
    pub duration_ns: u64,
    /// How much the sample stands for, in the unit of its kind.
    pub weight: u64,
    /// What was waited for.
    pub name: Option<&'static str>,
    /// Address of a sampled allocation, for [`record_free`]; 0 for other kinds.
    pub address: usize,
    /// Number of innermost callers to omit, starting with the caller of [`record`]: functions of
    /// the sampler.
    pub frames_to_skip: usize,
}

/// Records an observation with the caller's stack. Counts it as dropped if there is no room.
#[inline(never)]
pub fn record(observation: &Observation) {
    record_from(arch::frame_pointer(), observation);
}

/// `frame`: what the register has. In a program that was built without frame pointers, that may be
/// anything.
#[inline(always)]
fn record_from(frame: usize, observation: &Observation) {
    let Some(lane) = lane::of_this_thread() else {
        return;
    };
    let header = Header {
        code: observation.kind.code(),
        has_interrupted_frame: false,
        kernel_frame_count: 0,
        tag: Tag::current_code(),
        time_mono_ns: observation.time_mono_ns,
        weight: observation.weight,
        duration_ns: observation.duration_ns,
        name: observation.name.unwrap_or(""),
        address: observation.address,
    };
    let mut entry = lane.synchronous.begin();
    let stack = lane.stack.extent_from(arch::stack_pointer());
    let mut skip_count = observation.frames_to_skip;
    let mut take = |address: usize| {
        if skip_count > 0 {
            skip_count -= 1;
            return true;
        }
        entry.push_frame(address as u64)
    };
    // SAFETY: the lane is that of the calling thread, and this function's frame is on its stack.
    unsafe { walk::from_frame(frame, stack, anchor::innermost(), &mut take) };
    entry.commit(&header);
}

/// Records that the sampled allocation at `address` is freed.
pub fn record_free(address: usize) {
    if let Some(lane) = lane::of_this_thread() {
        lane.synchronous.begin().commit(&Header {
            code: FREE_CODE,
            time_mono_ns: clock::monotonic_ns(),
            address,
            ..Header::default()
        });
    }
}

#[cfg(test)]
mod tests;
