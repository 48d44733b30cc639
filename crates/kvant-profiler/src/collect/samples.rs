//! What a session has collected so far: records from rings become samples.
//!
//! Invariants:
//! 1. Only what reaches into the session is taken: a record that a late producer left in a ring
//!    after the last session is not.
//! 2. Memory is bounded by the greatest counts of samples and of nodes. Samples are thinned out
//!    then, without changing what sums tell; what has no node is counted as dropped.
//!
//! Threads: one, the drain.

use super::intern::Interner;
use super::live::Live;
use super::ring::{FREE_CODE, Header};
use super::thinning::Thinning;
use crate::recording::{Frame, Kind, Recording, Sample};
use kvant_base::tag::Tag;
use kvant_base::wait::WaitKind;
use std::collections::HashMap;

pub(super) struct Samples {
    started_mono_ns: u64,
    samples_max: usize,
    samples: Vec<Sample>,
    thinning: Thinning,
    interner: Interner,
    names: Vec<String>,
    name_indexes: HashMap<&'static str, u32>,
    live: Live,
    dropped_count: u64,
    has_kernel_frames: bool,
}

/// Time that a thread was ready to run and had no processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulerWait {
    pub(super) thread: u32,
    /// When it was looked at last.
    pub(super) since_mono_ns: u64,
    pub(super) until_mono_ns: u64,
    /// How much of the time in between.
    pub(super) waited_ns: u64,
}

impl Samples {
    pub(super) fn new(started_mono_ns: u64, samples_max: usize) -> Samples {
        Samples {
            started_mono_ns,
            samples_max,
            samples: Vec::new(),
            thinning: Thinning::default(),
            interner: Interner::new(),
            names: vec![String::new()],
            name_indexes: HashMap::from([("", 0)]),
            live: Live::default(),
            dropped_count: 0,
            has_kernel_frames: false,
        }
    }

    pub(super) fn count_dropped(&mut self, count: u64) {
        self.dropped_count += count;
    }

    /// Takes a record of a thread; `frames` are the innermost first.
    pub(super) fn add(&mut self, thread: u32, header: &Header, frames: &[u64]) {
        if header.time_mono_ns + header.duration_ns < self.started_mono_ns {
            return;
        }
        if header.code == FREE_CODE {
            self.live.freed(header.time_mono_ns, header.address);
            return;
        }
        let Some(&kind) = Kind::ALL.get(usize::from(header.code)) else {
            return;
        };
        let Some(weight) = self.make_room(kind, header.weight) else {
            return;
        };
        let kernel_frame_count = usize::from(header.kernel_frame_count);
        let frame = |(index, &address): (usize, &u64)| {
            let is_kernel = index < kernel_frame_count;
            let is_interrupted = index == if is_kernel { 0 } else { kernel_frame_count };
            Frame {
                address,
                is_kernel,
                is_return: !(header.has_interrupted_frame && is_interrupted),
            }
        };
        let stack = self.interner.node(frames.iter().enumerate().rev().map(frame));
        self.has_kernel_frames |= kernel_frame_count > 0;
        let Some(stack) = stack else {
            self.dropped_count += 1;
            return;
        };
        if header.address != 0 {
            self.live.allocated(header.time_mono_ns, header.address, self.samples.len());
        }
        let name = self.name(header.name);
        self.samples.push(Sample {
            kind,
            time_ns: self.since_start(header.time_mono_ns),
            duration_ns: header.duration_ns,
            thread,
            tag: Tag::of_code(header.tag),
            name,
            stack,
            weight,
            is_live: false,
        });
    }

    /// Takes a thread's wait for a processor, which has no stack: the kernel only keeps the sum.
    pub(super) fn add_scheduler_wait(&mut self, wait: SchedulerWait) {
        let kind = Kind::Wait(WaitKind::Scheduler);
        let Some(weight) = self.make_room(kind, wait.waited_ns) else {
            return;
        };
        let name = self.name("processor");
        self.samples.push(Sample {
            kind,
            time_ns: self.since_start(wait.since_mono_ns),
            duration_ns: wait.until_mono_ns - wait.since_mono_ns,
            thread: wait.thread,
            tag: Tag::default(),
            name,
            stack: 0,
            weight,
            is_live: false,
        });
    }

    /// Makes room for a sample; what it weighs, if it is kept.
    fn make_room(&mut self, kind: Kind, weight: u64) -> Option<u64> {
        if self.samples.len() >= self.samples_max {
            let places = self.thinning.thin(&mut self.samples);
            self.live.move_samples(&places);
        }
        let kept = self.thinning.keep(kind, weight)?;
        let has_room = self.samples.len() < self.samples_max;
        // Chance may have left out none of a few.
        self.dropped_count += u64::from(!has_room);
        has_room.then_some(kept)
    }

    /// All rings were emptied; all that was written before `mono_ns` was found.
    pub(super) fn settle(&mut self, mono_ns: u64) {
        self.live.settle(mono_ns, &mut self.samples);
    }

    /// Whether frames of the kernel were seen.
    pub(super) fn has_kernel_frames(&self) -> bool {
        self.has_kernel_frames
    }

    /// Puts all that was collected into the recording.
    pub(super) fn finish(mut self, recording: &mut Recording) {
        self.settle(u64::MAX);
        self.samples.sort_by_key(|sample| sample.time_ns);
        let (frames, stacks) = self.interner.finish();
        recording.frames = frames;
        recording.stacks = stacks;
        recording.samples = self.samples;
        recording.names = self.names;
        let facts = &mut recording.facts;
        facts.dropped_count = self.dropped_count;
        // Those who read them ask how much a sample stands for.
        let raise = |mean: &mut u64, kind| *mean = (*mean).max(self.thinning.threshold(kind));
        if let Some(cpu) = &mut facts.cpu {
            raise(&mut cpu.period_ns, Kind::Cpu);
        }
        if let Some(mean_bytes) = &mut facts.alloc_mean_bytes {
            raise(mean_bytes, Kind::Alloc);
        }
        for (mean_ns, kind) in facts.wait_mean_ns.iter_mut().flatten().zip(WaitKind::ALL) {
            raise(mean_ns, Kind::Wait(kind));
        }
    }

    fn since_start(&self, mono_ns: u64) -> u64 {
        mono_ns.saturating_sub(self.started_mono_ns)
    }

    fn name(&mut self, name: &'static str) -> u32 {
        let next = self.names.len() as u32;
        let index = *self.name_indexes.entry(name).or_insert(next);
        if index == next {
            self.names.push(name.to_owned());
        }
        index
    }
}

#[cfg(test)]
mod tests;
