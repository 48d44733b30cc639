//! Samples of the kernel's account while an attempt runs: the subject, the generator, the machine.
//!
//! Invariants:
//! 1. Counters of the subject do not decrease when one of its threads or awaited children ends.
//! 2. A sample that is late by more than [`PAUSE_MIN`] says that this program stood still.
//!
//! Threads: one takes the samples.

use crate::record::{Watch, WatchSample};
use kvant_env::Clock;
use kvant_env::host::procfs::{ProcFs, Switches};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time between two samples.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// Samples between two searches for processes of the subject's group.
const SAMPLES_A_SEARCH: usize = 10;
/// A sample this late means that the whole program was paused. A pause of 300 ms that begins right
/// after a sample makes the next one late by 200 ms; a busy machine delays a thread that sleeps by
/// some milliseconds.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(150);

/// The shortest time whose parts mean anything: the kernel counts in ticks of 10 ms.
const TAKEN_TIME_MIN: Duration = Duration::from_millis(500);

/// The processes of a subject.
#[derive(Clone, Debug)]
pub(super) enum Watched {
    /// A process group.
    Group(u32),
    /// These processes.
    Processes(Vec<u32>),
    /// Processes elsewhere, or unknown.
    Nothing,
}

/// Takes samples.
pub(super) struct Sampler {
    proc: ProcFs,
    clock: Arc<dyn Clock>,
    watched: Watched,
    /// Nodes of the subject's cluster on this machine.
    nodes: Vec<u32>,
    pids: Vec<u32>,
    sample_count: usize,
    /// By process and thread, those that have ended too.
    switches: BTreeMap<(u32, u32), Switches>,
    watch: Watch,
    last: (u64, u64),
    /// The longest pause of this program, or jump of the wall clock.
    pause: Option<String>,
}

impl Sampler {
    pub(super) fn new(
        proc: ProcFs,
        clock: Arc<dyn Clock>,
        watched: Watched,
        nodes: Vec<u32>,
    ) -> Sampler {
        Sampler {
            proc,
            last: (clock.monotonic_ns(), clock.wall_ms()),
            clock,
            watched,
            nodes,
            pids: Vec::new(),
            sample_count: 0,
            switches: BTreeMap::new(),
            watch: Watch::default(),
            pause: None,
        }
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self) {
        let now = (self.clock.monotonic_ns(), self.clock.wall_ms());
        if self.sample_count > 0 {
            self.look_for_pause(now);
        }
        self.last = now;
        if self.sample_count.is_multiple_of(SAMPLES_A_SEARCH) {
            self.pids = match &self.watched {
                Watched::Group(leader) => self.proc.group_members(*leader),
                Watched::Processes(pids) => pids.clone(),
                Watched::Nothing => Vec::new(),
            };
        }
        self.sample_count += 1;
        let uses: Vec<_> = self.pids.iter().filter_map(|pid| self.proc.process_use(*pid)).collect();
        for pid in &self.pids {
            for (thread, switches) in self.proc.thread_switches(*pid) {
                self.switches.insert((*pid, thread), switches);
            }
        }
        let is_known = !uses.is_empty();
        let sum = |figure: fn(&Switches) -> u64| {
            is_known.then(|| self.switches.values().map(figure).sum())
        };
        let cpu = self.proc.cpu_times();
        let before = self.watch.samples.last().copied().unwrap_or_default();
        // A child that has ended and is not awaited yet is in no account for a moment.
        let cumulative = |before: Option<u64>, now: Option<u64>| {
            now.map(|now| now.max(before.unwrap_or(0))).or(before)
        };
        let cpu_ns = is_known.then(|| uses.iter().map(|one| one.cpu_ns).sum());
        let read_bytes = uses.iter().map(|one| one.read_bytes).sum::<Option<u64>>();
        let written_bytes = uses.iter().map(|one| one.written_bytes).sum::<Option<u64>>();
        self.watch.samples.push(WatchSample {
            at_ns: now.0,
            server_cpu_ns: cumulative(before.server_cpu_ns, cpu_ns),
            server_rss_bytes: is_known.then(|| uses.iter().map(|one| one.rss_bytes).sum()),
            server_read_bytes: cumulative(
                before.server_read_bytes,
                read_bytes.filter(|_| is_known),
            ),
            server_written_bytes: cumulative(
                before.server_written_bytes,
                written_bytes.filter(|_| is_known),
            ),
            server_voluntary_switches: sum(|switches| switches.voluntary),
            server_involuntary_switches: sum(|switches| switches.involuntary),
            generator_cpu_ns: own_cpu_ns(&self.proc),
            nodes_cpu_ns: cumulative(before.nodes_cpu_ns, nodes_cpu_ns(&self.proc, &self.nodes)),
            all_cpu_ns: cpu.map(|cpu| cpu.tasks_ns),
            stolen_ns: cpu.map(|cpu| cpu.stolen_ns),
            pressure_ns: self.proc.cpu_pressure_ns(),
        });
    }

    /// Compares the time since the last sample with the period, by both clocks: the monotonic one
    /// stands still while the machine is suspended.
    fn look_for_pause(&mut self, now: (u64, u64)) {
        let period_ms = PERIOD.as_millis() as u64;
        let late_ms = |elapsed_ms: u64| elapsed_ms.saturating_sub(period_ms);
        let monotonic_ms = late_ms((now.0 - self.last.0) / 1_000_000);
        let wall_ms = late_ms(now.1.abs_diff(self.last.1));
        let pause_ms = PAUSE_MIN.as_millis() as u64;
        if monotonic_ms >= pause_ms {
            self.pause = Some(format!("the generator stood still for {monotonic_ms} ms"));
        } else if wall_ms >= pause_ms + monotonic_ms {
            self.pause = Some(format!(
                "the wall clock moved by {wall_ms} ms against the monotonic one: it was set, or the machine was suspended"
            ));
        }
    }

    /// The samples, and what paused this program, if anything did.
    pub(super) fn finish(mut self) -> (Watch, Option<String>) {
        self.sample();
        (self.watch, self.pause)
    }
}

/// What the watched processes used, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) cpu_ns: u64,
    /// To disks; 0 if the kernel does not say it.
    pub(super) written_bytes: u64,
}

/// What the watched processes have used until now, if it is known.
pub(super) fn used(proc: &ProcFs, watched: &Watched) -> Option<Used> {
    let pids = match watched {
        Watched::Group(leader) => proc.group_members(*leader),
        Watched::Processes(pids) => pids.clone(),
        Watched::Nothing => Vec::new(),
    };
    let uses: Vec<_> = pids.iter().filter_map(|pid| proc.process_use(*pid)).collect();
    (!uses.is_empty()).then(|| Used {
        cpu_ns: uses.iter().map(|one| one.cpu_ns).sum(),
        written_bytes: uses.iter().filter_map(|one| one.written_bytes).sum(),
    })
}

/// CPU time of nodes of the subject's cluster, if there are any here.
fn nodes_cpu_ns(proc: &ProcFs, nodes: &[u32]) -> Option<u64> {
    let uses = nodes.iter().filter_map(|pid| proc.process_use(*pid));
    (!nodes.is_empty()).then(|| uses.map(|used| used.cpu_ns).sum())
}

/// CPU time of this program, and of the external generators that it has awaited.
fn own_cpu_ns(proc: &ProcFs) -> u64 {
    let with_children = proc.own_pid().and_then(|pid| proc.process_use(pid));
    with_children.map(|used| used.cpu_ns).or_else(|| proc.process_cpu_ns("self")).unwrap_or(0)
}

/// What took CPU time from subject and generator between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taken {
    /// Part of all CPU time that other processes used.
    pub(super) others_part: f64,
    /// Part of all CPU time that the hypervisor took.
    pub(super) stolen_part: f64,
    /// Part of the time in which a task had to wait for a CPU.
    pub(super) pressure_part: Option<f64>,
}

/// What was taken between the first and the last sample; `None` if the kernel does not say it.
pub(super) fn taken(samples: &[WatchSample], cpu_count: u32) -> Option<Taken> {
    let (first, last) = (samples.first()?, samples.last()?);
    let time_ns = last.at_ns.saturating_sub(first.at_ns) as f64;
    if time_ns < TAKEN_TIME_MIN.as_nanos() as f64 {
        return None;
    }
    let cpus_ns = time_ns * f64::from(cpu_count.max(1));
    let between = |figure: fn(&WatchSample) -> Option<u64>| {
        Some(figure(last)?.saturating_sub(figure(first)?) as f64)
    };
    let server_ns = between(|sample| sample.server_cpu_ns).unwrap_or(0.0);
    let own_ns = last.generator_cpu_ns.saturating_sub(first.generator_cpu_ns) as f64;
    let others_ns = between(WatchSample::tasks_cpu_ns)? - server_ns - own_ns;
    Some(Taken {
        others_part: (others_ns / cpus_ns).clamp(0.0, 1.0),
        stolen_part: (between(|sample| sample.stolen_ns)? / cpus_ns).min(1.0),
        pressure_part: between(|sample| sample.pressure_ns).map(|ns| (ns / time_ns).min(1.0)),
    })
}

#[cfg(test)]
mod tests;
