//! Direct evidence: what slow requests themselves waited for.
//!
//! The phases of a request say where its time went, and some phases say for what: the body for the
//! sender, a long response for the reader, the queue of a write that has a stall reason for that
//! stall, the block reads within storage work for the disk, storage work of a write that ended with
//! an fsync of the log for that fsync. A read waits in the queue until another one is done: of that
//! time, as large a part is the disk's as of the storage work of all reads. Time in the phases
//! `selector` and `queue` without such a reason was spent behind other requests; it is given to
//! them only if no event explains it ([`super::shares`]).
//!
//! For p99 and beyond, phases are those of the slow requests that the server kept: the slowest of
//! each second, however long they are, since a client also counts the time before the server sees a
//! request. Below, they are those of all requests of a window, and kept requests only say what
//! storage work consisted of, if they are of a similar length.
//!
//! Of a client's latency, the time that a request was due and all connections were busy was spent
//! behind other requests. So was, of the time outside of the server, as much as the phase
//! `selector` takes: a request waits as long on average for the turn in progress to end as within
//! its own for the requests before it. The rest of the time outside is unexplained.

use super::evidence::{Evidence, LockWait, OperationWindow, Phase, Request};
use super::level;
use super::model::Cause;
use super::reads::{ReadSums, is_write};
use super::suspects;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// From this percentile on, phases are those of kept requests.
const KEPT_PERCENT_MIN: f64 = 99.0;
/// How far a kept request may be from the window that it speaks for.
const REACH_NS: u64 = 500_000_000;
/// How many times as long as the percentile a kept request may be.
const LENGTH_FACTOR_MAX: f64 = 3.0;
/// Bytes of a response from which on its reader can delay it: less fits into the socket's buffer.
const READER_BYTES_MIN: u64 = 64 << 10;
/// A write that waited for an fsync ends at most so long after it.
const WOKEN_NS_MAX: u64 = 1_000_000;
const PHASES: usize = Phase::ALL.len();

/// Time of a request: its phases, then [`CONNECTION`] and [`OUTSIDE`].
type Times = [f64; PHASES + 2];
/// Waiting for a connection of the client.
const CONNECTION: usize = PHASES;
/// Between client and server, in either direction.
const OUTSIDE: usize = PHASES + 1;

/// What the requests of a window waited for, as parts of their time.
#[derive(Clone, Debug, Default)]
pub(super) struct Waited {
    /// What they evidently waited for.
    pub(super) parts: BTreeMap<Cause, f64>,
    /// Behind other requests.
    pub(super) behind_others: f64,
}

impl Waited {
    /// All evident waits but those behind other requests.
    pub(super) fn direct(&self) -> f64 {
        self.parts.values().sum()
    }

    /// The part that is left without them. Parts of a whole may add up to more by a rounding.
    pub(super) fn left(&self) -> f64 {
        (1.0 - self.direct()).max(0.0)
    }

    /// All waits.
    pub(super) fn all(&self) -> f64 {
        self.direct() + self.behind_others
    }
}

/// Times with what each consists of: time by cause, within that time.
#[derive(Clone, Default)]
struct Split {
    time_ns: Times,
    by_cause: BTreeMap<Cause, Times>,
}

impl Split {
    fn add(&mut self, other: &Split) {
        for (sum, time) in self.time_ns.iter_mut().zip(other.time_ns) {
            *sum += time;
        }
        for (cause, times) in &other.by_cause {
            let sums = self.by_cause.entry(cause.clone()).or_default();
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum += time;
            }
        }
    }

    /// Makes block reads these parts of storage work and of the queue; `None`: as it is. Where
    /// nothing is known of a phase, it takes as long as in `time_ns`.
    fn set_block_reads(&mut self, [storage, queue]: [Option<f64>; 2], time_ns: &Times) {
        for (phase, part) in [(Phase::Storage as usize, storage), (Phase::Queue as usize, queue)] {
            let Some(part) = part else { continue };
            if self.time_ns[phase] == 0.0 {
                self.time_ns[phase] = time_ns[phase];
            }
            let times = self.by_cause.entry(Cause::BlockReads).or_default();
            times[phase] = part * self.time_ns[phase];
        }
    }

    /// The parts of `time_ns`, which is divided as this split's time is.
    fn parts_of(&self, time_ns: &Times) -> Waited {
        let all: f64 = time_ns.iter().sum();
        if all <= 0.0 {
            return Waited::default();
        }
        let mut waited = Waited::default();
        let mut given = Times::default();
        for (cause, times) in &self.by_cause {
            let mut sum = 0.0;
            for phase in 0..PHASES {
                if self.time_ns[phase] > 0.0 {
                    let part = (times[phase] / self.time_ns[phase]).min(1.0) * time_ns[phase];
                    given[phase] += part;
                    sum += part;
                }
            }
            if sum > 0.0 {
                waited.parts.insert(cause.clone(), sum / all);
            }
        }
        // A body is the sender's even where no request was kept.
        let body = Phase::Body as usize;
        let body_ns = (time_ns[body] - given[body]).max(0.0);
        if body_ns > 0.0 {
            *waited.parts.entry(Cause::ClientBody).or_default() += body_ns / all;
        }
        let behind = [Phase::Selector as usize, Phase::Queue as usize, CONNECTION];
        let behind_ns: f64 =
            behind.iter().map(|&at| (time_ns[at] - given[at]).max(0.0)).sum::<f64>();
        waited.behind_others = (behind_ns + before_turn_ns(time_ns)) / all;
        waited
    }
}

/// Of the time outside, what was spent waiting for the turn of the event loop to begin.
fn before_turn_ns(time_ns: &Times) -> f64 {
    time_ns[OUTSIDE].min(time_ns[Phase::Selector as usize])
}

/// The direct evidence of one operation and percentile.
pub(super) struct Direct<'a> {
    windows: Vec<Option<&'a OperationWindow>>,
    /// Of each window, the sums of all reads. Empty for a write.
    reads: Vec<ReadSums>,
    /// Begin and end of each window.
    spans_ns: Vec<(u64, u64)>,
    /// Kept requests of the operation that can speak for the percentile, by end.
    kept: Vec<(&'a Request, Split)>,
    /// By window, the longest first.
    locks: BTreeMap<usize, Vec<&'a LockWait>>,
    is_of_kept: bool,
    /// Whether latencies are a client's.
    is_of_client: bool,
    /// From which latency on requests are the percentile's.
    from_ns: u64,
}

impl<'a> Direct<'a> {
    pub(super) fn new(
        evidence: &'a Evidence,
        operation: &str,
        percent: f64,
        from_ns: u64,
    ) -> Direct<'a> {
        let is_of_kept = percent >= KEPT_PERCENT_MIN;
        let to_ns = (from_ns as f64 * LENGTH_FACTOR_MAX) as u64;
        let mut kept: Vec<(&Request, Split)> = evidence
            .requests
            .iter()
            .filter(|request| request.operation == operation)
            .filter(|request| is_of_kept || (from_ns..=to_ns).contains(&request.total_ns()))
            .map(|request| (request, split(request, evidence)))
            .collect();
        kept.sort_by_key(|(request, _)| request.end_ns);
        let mut locks: BTreeMap<usize, Vec<&LockWait>> = BTreeMap::new();
        for wait in evidence.lock_waits.iter().filter(|wait| wait.operation == operation) {
            locks.entry(wait.window).or_default().push(wait);
        }
        for waits in locks.values_mut() {
            waits.sort_by_key(|wait| Reverse(wait.length_ns));
        }
        let reads_windows = if is_write(operation) { &[][..] } else { &evidence.windows[..] };
        Direct {
            windows: level::windows_of(evidence, operation),
            reads: reads_windows.iter().map(ReadSums::of_window).collect(),
            spans_ns: evidence
                .windows
                .iter()
                .map(|window| (window.start_ns, window.end_ns()))
                .collect(),
            kept,
            locks,
            is_of_kept,
            is_of_client: evidence.is_of_client,
            from_ns,
        }
    }

    /// What the requests of a window waited for, of the time that is above `work_ns`.
    pub(super) fn of_window(&self, at: usize, work_ns: &Times) -> Waited {
        let mut waited = Waited::default();
        if let Some(of) = self.windows[at] {
            let (mut near, count) = self.near(at);
            let time_ns = self.times(&[of], (&near, count));
            self.give_block_reads(&[at], &time_ns, (&mut near, count));
            let beyond = std::array::from_fn(|at| (time_ns[at] - work_ns[at]).max(0.0));
            waited = near.parts_of(&beyond);
        }
        self.add_sums(at, work_ns.iter().sum(), &mut waited);
        waited
    }

    /// The time that is work in calm windows, storage and response without evident waits, and what
    /// lies outside of the server.
    pub(super) fn work_ns(&self, calm: &[bool]) -> (Times, Waited) {
        let calm: Vec<usize> =
            (0..calm.len()).filter(|at| calm[*at] && self.windows[*at].is_some()).collect();
        let mut sum = Split::default();
        let mut kept_count = 0;
        for &at in &calm {
            let (near, near_count) = self.within(self.spans_ns[at]);
            sum.add(&near);
            kept_count += near_count;
        }
        let windows: Vec<&OperationWindow> =
            calm.iter().filter_map(|&at| self.windows[at]).collect();
        let time_ns = self.times(&windows, (&sum, kept_count));
        self.give_block_reads(&calm, &time_ns, (&mut sum, kept_count));
        let mut work_ns = time_ns;
        work_ns[OUTSIDE] -= before_turn_ns(&time_ns);
        work_ns[CONNECTION] = 0.0;
        for phase in [Phase::Selector, Phase::Body, Phase::Queue] {
            work_ns[phase as usize] = 0.0;
        }
        for phase in [Phase::Storage, Phase::Answer].map(|phase| phase as usize) {
            let given: f64 = sum.by_cause.values().map(|times| times[phase]).sum();
            if sum.time_ns[phase] > 0.0 {
                work_ns[phase] *= (1.0 - given / sum.time_ns[phase]).max(0.0);
            }
        }
        let mut waited = sum.parts_of(&time_ns);
        for &at in &calm {
            let mut sums = Waited::default();
            self.add_sums(at, 0.0, &mut sums);
            for (cause, part) in sums.parts {
                *waited.parts.entry(cause).or_default() += part / calm.len() as f64;
            }
        }
        limit(&mut waited);
        // Locks are waited for while storage works.
        let is_lock = |cause: &Cause| matches!(cause, Cause::Lock(_));
        let of_locks = waited.parts.iter().filter(|(cause, _)| is_lock(cause));
        let part: f64 = of_locks.map(|(_, part)| part).sum();
        let storage_ns = &mut work_ns[Phase::Storage as usize];
        *storage_ns = (*storage_ns - part * time_ns.iter().sum::<f64>()).max(0.0);
        (work_ns, waited)
    }

    /// The mean time of a request that speaks for the percentile, in these windows and by the kept
    /// requests near them.
    fn times(&self, windows: &[&OperationWindow], (near, near_count): (&Split, u32)) -> Times {
        let is_of_kept = self.is_of_kept && near_count > 0;
        let mut time_ns = Times::default();
        if is_of_kept {
            time_ns = near.time_ns.map(|ns| ns / f64::from(near_count));
        } else {
            let telling = || windows.iter().filter_map(|of| Some((of.phases_ns?, of.count)));
            let count: u64 = telling().map(|(_, count)| count).sum();
            for (phases_ns, _) in telling() {
                for (mean, ns) in time_ns.iter_mut().zip(phases_ns) {
                    *mean += ns as f64 / count as f64;
                }
            }
        }
        if self.is_of_client {
            let from_ns = if self.is_of_kept { self.from_ns } else { 0 };
            let (mut sum_ns, mut count, mut all_ns, mut connection_ns) = (0.0, 0, 0.0, 0.0);
            for of in windows {
                for (ns, number) in of.values.iter().filter(|(ns, _)| *ns >= from_ns) {
                    sum_ns += *ns as f64 * *number as f64;
                    count += number;
                }
                all_ns += of.sum_ns();
                connection_ns += of.connection_wait_ns as f64;
            }
            let client_ns = sum_ns / count.max(1) as f64;
            time_ns[CONNECTION] = client_ns * connection_ns / all_ns.max(1.0);
            time_ns[OUTSIDE] = (client_ns - time_ns.iter().sum::<f64>()).max(0.0);
        }
        time_ns
    }

    /// Gives block reads their parts of what requests consist of: those of these windows, and for
    /// storage work what the kept requests say if they speak for the percentile.
    fn give_block_reads(
        &self,
        windows: &[usize],
        time_ns: &Times,
        (near, near_count): (&mut Split, u32),
    ) {
        if self.reads.is_empty() {
            return;
        }
        let mut all = ReadSums::default();
        windows.iter().for_each(|&at| all.add(self.reads[at]));
        let own = ReadSums::of(windows.iter().filter_map(|&at| self.windows[at]));
        let is_of_kept = self.is_of_kept && near_count > 0;
        let storage = if is_of_kept { None } else { own.part() };
        near.set_block_reads([storage, all.part()], time_ns);
    }

    /// The kept requests near a window, and how many they are.
    fn near(&self, at: usize) -> (Split, u32) {
        let (from_ns, to_ns) = self.spans_ns[at];
        match self.within((from_ns, to_ns)) {
            (_, 0) => self.within((from_ns.saturating_sub(REACH_NS), to_ns + REACH_NS)),
            found => found,
        }
    }

    fn within(&self, (from_ns, to_ns): (u64, u64)) -> (Split, u32) {
        let first = self.kept.partition_point(|(request, _)| request.end_ns < from_ns);
        let of = self.kept[first..].iter().take_while(|(request, _)| request.end_ns < to_ns);
        let mut sum = Split::default();
        let mut count = 0;
        for (_, split) in of {
            sum.add(split);
            count += 1;
        }
        (sum, count)
    }

    /// Waits for locks, and lateness of the generator as a part of the time of all requests of the
    /// window. What a slow request waits for begins above `work_ns`.
    fn add_sums(&self, at: usize, work_ns: f64, waited: &mut Waited) {
        let Some(of) = self.windows[at] else { return };
        let all = of.sum_ns();
        if let Some(waits) = self.locks.get(&at) {
            self.add_locks(of, waits, work_ns, waited);
        }
        if of.late_ns > 0 {
            let part = of.late_ns as f64 / all.max(1.0);
            *waited.parts.entry(Cause::Generator).or_default() += part;
        }
        limit(waited);
    }

    /// From p99 on, the slow requests of a window are those that waited longest: as many waits as
    /// they are, if a wait is at least half of the percentile. Below, all waits count, and all
    /// requests.
    fn add_locks(
        &self,
        of: &OperationWindow,
        waits: &[&LockWait],
        work_ns: f64,
        waited: &mut Waited,
    ) {
        let from_ns = if self.is_of_kept { self.from_ns } else { 0 };
        let slow = || of.values.iter().filter(|(ns, _)| *ns >= from_ns);
        let slow_count: f64 = slow().map(|(_, count)| *count as f64).sum();
        let mut left = if self.is_of_kept { slow_count } else { f64::INFINITY };
        let time_ns: f64 = slow().map(|(ns, count)| (*ns as f64 - work_ns) * *count as f64).sum();
        for wait in waits {
            if left <= 0.0 || time_ns <= 0.0 || 2 * wait.length_ns < from_ns {
                break;
            }
            let length_ns = wait.length_ns.max(1) as f64;
            let count = (wait.waited_ns as f64 / length_ns).min(left);
            left -= count;
            let cause = Cause::Lock(wait.name.clone());
            *waited.parts.entry(cause).or_default() += count * length_ns / time_ns;
        }
    }
}

/// Parts of a whole are at most the whole.
fn limit(waited: &mut Waited) {
    let direct = waited.direct();
    if direct > 1.0 {
        waited.parts.values_mut().for_each(|part| *part /= direct);
    }
    waited.behind_others = waited.behind_others.min(waited.left());
}

/// What the phases of a request consist of.
fn split(request: &Request, evidence: &Evidence) -> Split {
    let mut split = Split::default();
    for (time, ns) in split.time_ns.iter_mut().zip(request.phases_ns) {
        *time = ns as f64;
    }
    let time_ns = split.time_ns;
    let mut give = |cause: Cause, phase: Phase, ns: f64| {
        let given = &mut split.by_cause.entry(cause).or_default()[phase as usize];
        *given = ns.min(time_ns[phase as usize]);
    };
    if request.sent_bytes >= READER_BYTES_MIN {
        give(Cause::ClientReader, Phase::Answer, time_ns[Phase::Answer as usize]);
    }
    let is_write = is_write(&request.operation);
    if let Some(reason) = &request.stall {
        give(Cause::Stall(reason.clone()), Phase::Queue, time_ns[Phase::Queue as usize]);
    } else if is_write {
        give(Cause::Fsync, Phase::Queue, fsync_ns(request, Phase::Queue, evidence));
    }
    if is_write {
        give(Cause::Fsync, Phase::Storage, fsync_ns(request, Phase::Storage, evidence));
    } else if request.block_read_ns > 0 {
        give(Cause::BlockReads, Phase::Storage, request.block_read_ns as f64);
    }
    split
}

/// Time of a phase during fsyncs of the log that ended within it.
fn fsync_ns(request: &Request, phase: Phase, evidence: &Evidence) -> f64 {
    let (from_ns, to_ns) = request.phase_span_ns(phase);
    let of_log = evidence
        .events
        .iter()
        .filter(|event| suspects::cause_of(event) == Some(Cause::Fsync))
        .map(|event| suspects::span_ns(event, evidence));
    of_log
        .filter(|(_, end_ns)| (from_ns..=to_ns + WOKEN_NS_MAX).contains(end_ns))
        .map(|(start_ns, end_ns)| end_ns.min(to_ns).saturating_sub(start_ns.max(from_ns)) as f64)
        .sum()
}

#[cfg(test)]
mod tests;
