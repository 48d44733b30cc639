//! What a session has collected: records from rings become samples.
//!
//! Invariants:
//! 1. Records that end before the session started are ignored: a late producer left them.
//! 2. Memory is bounded by the maximum numbers of samples and nodes. Surplus samples are thinned
//!    out, which keeps sums unbiased; samples without a node are counted as dropped.
//!
//! Threads: one, the drain.

use super::live_samples::LiveSamples;
use super::ring::{FREE_CODE, Header};
use super::stack_tree::StackTree;
use super::thinning::Thinning;
use crate::recording::{Frame, Kind, Recording, Sample};
use indexmap::IndexSet;
use kvant_base::tag::Tag;
use kvant_base::wait::WaitKind;
use std::ops::Range;

pub(super) struct Samples {
    started_mono_ns: u64,
    samples_max: usize,
    samples: Vec<Sample>,
    thinning: Thinning,
    stacks: StackTree,
    names: IndexSet<&'static str>,
    live: LiveSamples,
    dropped_count: u64,
    has_kernel_frames: bool,
}

impl Samples {
    pub(super) fn new(started_mono_ns: u64, samples_max: usize) -> Samples {
        Samples {
            started_mono_ns,
            samples_max,
            samples: Vec::new(),
            thinning: Thinning::default(),
            stacks: StackTree::new(),
            names: IndexSet::from([""]),
            live: LiveSamples::default(),
            dropped_count: 0,
            has_kernel_frames: false,
        }
    }

    pub(super) fn count_dropped(&mut self, count: u64) {
        self.dropped_count += count;
    }

    /// Adds a record of a thread, with its frames innermost first.
    pub(super) fn add(&mut self, thread: u32, header: &Header, frames: &[u64]) {
        if header.time_mono_ns + header.duration_ns < self.started_mono_ns {
            return;
        }
        if header.code == FREE_CODE {
            self.live.add_free(header.time_mono_ns, header.address);
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
        let stack = self.stacks.node(frames.iter().enumerate().rev().map(frame));
        self.has_kernel_frames |= kernel_frame_count > 0;
        let Some(stack) = stack else {
            self.dropped_count += 1;
            return;
        };
        if header.address != 0 {
            self.live.add_allocation(header.time_mono_ns, header.address, self.samples.len());
        }
        self.samples.push(Sample {
            kind,
            time_ns: self.since_start(header.time_mono_ns),
            duration_ns: header.duration_ns,
            thread,
            tag: Tag::of_code(header.tag),
            name: self.names.insert_full(header.name).0 as u32,
            stack,
            weight,
            is_live: false,
        });
    }

    /// Adds the time that a thread was ready in an interval and had no processor. It has no stack:
    /// the kernel keeps only a sum.
    pub(super) fn add_scheduler_wait(
        &mut self,
        thread: u32,
        interval_mono_ns: Range<u64>,
        waited_ns: u64,
    ) {
        let kind = Kind::Wait(WaitKind::Scheduler);
        if let Some(weight) = self.make_room(kind, waited_ns) {
            self.samples.push(Sample {
                time_ns: self.since_start(interval_mono_ns.start),
                duration_ns: interval_mono_ns.end - interval_mono_ns.start,
                thread,
                name: self.names.insert_full("processor").0 as u32,
                weight,
                ..Sample::of(kind)
            });
        }
    }

    /// Makes room for a sample. Returns its weight if it is kept.
    fn make_room(&mut self, kind: Kind, weight: u64) -> Option<u64> {
        if self.samples.len() >= self.samples_max {
            let indices = self.thinning.thin(&mut self.samples);
            self.live.move_samples(&indices);
        }
        let kept = self.thinning.keep(kind, weight)?;
        let has_room = self.samples.len() < self.samples_max;
        // Thinning is random: of a few samples it may have removed none.
        self.dropped_count += u64::from(!has_room);
        has_room.then_some(kept)
    }

    /// All rings were emptied: every record written before `mono_ns` has been added.
    pub(super) fn settle(&mut self, mono_ns: u64) {
        self.live.settle(mono_ns, &mut self.samples);
    }

    pub(super) fn has_kernel_frames(&self) -> bool {
        self.has_kernel_frames
    }

    pub(super) fn finish(mut self, recording: &mut Recording) {
        self.settle(u64::MAX);
        self.samples.sort_by_key(|sample| sample.time_ns);
        (recording.frames, recording.stacks) = self.stacks.finish();
        recording.samples = self.samples;
        recording.names = self.names.into_iter().map(str::to_owned).collect();
        let facts = &mut recording.facts;
        facts.dropped_count = self.dropped_count;
        // The facts state the mean per sample after thinning.
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
}

#[cfg(test)]
mod tests;
