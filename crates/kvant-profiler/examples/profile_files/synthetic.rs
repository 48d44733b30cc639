//! Synthetic recordings for tests, shaped like those of a loaded server and determined by a seed.
//!
//! First a program is generated: functions, and for each kind of work a call tree that starts like
//! that of a real thread. Samples are then drawn along the time axis; flushes and compactions
//! change what is sampled while they run.

use kvant_base::tag::{Activity, Stage, Tag};
use kvant_base::wait::WaitKind;
use kvant_env::rng::Rng;
use kvant_profiler::recording::{
    CpuSampling, Facts, Frame, Function, Kind, Recording, Sample, Span, Stack, Thread,
};

const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const CPU_PERIOD_NS: u64 = 4 * MS_NS;
const CPU_COUNT: u64 = 2;
/// Depth of calls below a thread's start, without inlined ones.
const DEPTH_MAX: u32 = 24;
/// Per this many nanoseconds of sampled CPU time there is one that no sample accounts for.
const NOT_SAMPLED_PART: u64 = 25;
const ALLOC_MEAN_BYTES: u64 = 512 << 10;

/// What to generate.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    /// Approximate number of code locations of each kind of work.
    pub(crate) places_per_work: u64,
    /// Factor of the compaction rate.
    pub(crate) compaction_factor: u64,
}

impl Plan {
    /// A minute of a loaded server with two processors: about 30,000 samples of CPU time and 20,000
    /// others.
    pub(crate) fn loaded(seed: u64) -> Plan {
        Plan { seed, seconds: 60, places_per_work: 1_100, compaction_factor: 1 }
    }
}

/// The work of some threads.
struct Work {
    threads: Vec<u32>,
    tag: Tag,
    /// Share of CPU samples in per cent while the engine does no background work.
    cpu_share: u64,
    crate_name: &'static str,
    /// Stacks, most frequent first.
    stacks: Vec<u32>,
}

/// Thread, activity, stage, share, crate.
const WORKS: &[(&str, Activity, Stage, u64, &str)] = &[
    ("selector", Activity::Get, Stage::Parse, 16, "kvant_server"),
    ("selector", Activity::Get, Stage::Respond, 18, "kvant_server"),
    ("worker", Activity::Get, Stage::Table, 22, "kvant_engine"),
    ("worker", Activity::Put, Stage::Memtable, 24, "kvant_engine"),
    ("worker", Activity::Put, Stage::Wal, 12, "kvant_engine"),
    ("worker", Activity::Range, Stage::Merge, 6, "kvant_engine"),
    ("flush", Activity::Flush, Stage::Build, 0, "kvant_engine"),
    ("compaction", Activity::Compaction, Stage::Merge, 0, "kvant_engine"),
    ("profiler", Activity::Profiler, Stage::None, 2, "kvant_profiler"),
];
const FLUSH: usize = 6;
const COMPACTION: usize = 7;

/// Locks and queues by kind of wait.
const NAMES: &[&str] = &[
    "",
    "commit queue",
    "memtable list",
    "block cache shard",
    "version set",
    "selector wake-up",
    "worker queue",
    "write stall",
    "fsync",
    "pread",
];

/// Generates a recording.
pub(crate) fn recording(plan: Plan) -> Recording {
    let mut maker = Maker {
        rng: Rng::new(plan.seed),
        recording: Recording {
            facts: facts(plan),
            names: NAMES.iter().map(|name| (*name).to_owned()).collect(),
            stacks: vec![Stack { parent: 0, frame: 0 }],
            ..Recording::default()
        },
    };
    maker.frame(&[("[root]", "", 0)], false);
    let works = maker.program(plan);
    maker.spans(plan);
    maker.cpu(plan, &works);
    maker.allocations(plan, &works);
    maker.waits(plan, &works);
    let mut recording = maker.recording;
    recording.samples.sort_by_key(|sample| sample.time_ns);
    let of_cpu = recording.samples.iter().filter(|sample| sample.kind == Kind::Cpu);
    let sampled_ns: u64 = of_cpu.map(|sample| sample.weight).sum();
    recording.facts.process_cpu_ns = sampled_ns + sampled_ns / NOT_SAMPLED_PART;
    recording
}

fn facts(plan: Plan) -> Facts {
    Facts {
        started_wall_ns: 1_790_000_000 * SECOND_NS,
        duration_ns: plan.seconds * SECOND_NS,
        command: "kvant serve --data data --workers 4 --selectors 2".to_owned(),
        version: "0.1.0".to_owned(),
        process_id: 4242,
        cpu_count: u32::try_from(CPU_COUNT).expect("small"),
        // Set when the samples are known.
        process_cpu_ns: 0,
        cpu: Some(CpuSampling {
            engine: "perf".to_owned(),
            period_ns: CPU_PERIOD_NS,
            has_kernel_frames: true,
        }),
        alloc_mean_bytes: Some(ALLOC_MEAN_BYTES),
        wait_mean_ns: Some([MS_NS, 20 * MS_NS, MS_NS, MS_NS, MS_NS]),
        dropped_count: plan.seed % 3 * 17,
        modules: Vec::new(),
    }
}

struct Maker {
    rng: Rng,
    recording: Recording,
}

const VERBS: &[&str] = &[
    "read", "write", "insert", "seek", "next", "push", "decode", "encode", "take", "find",
    "advance", "poll", "fill", "merge", "copy", "check", "reserve", "append", "compare", "finish",
];
const NOUNS: &[&str] = &[
    "block",
    "entry",
    "record",
    "cursor",
    "group",
    "filter",
    "index",
    "header",
    "body",
    "buffer",
    "iterator",
    "level",
    "table",
    "segment",
    "batch",
    "snapshot",
    "version",
    "request",
    "response",
    "connection",
    "chunk",
    "key",
    "value",
    "slot",
    "arena",
    "node",
];
const MODULES: &[&str] = &[
    "memtable", "table", "wal", "commit", "cache", "iter", "version", "codec", "exchange",
    "selector", "body", "route",
];

impl Maker {
    /// Adds an address with functions, innermost first.
    fn frame(&mut self, functions: &[(&str, &str, u32)], is_kernel: bool) -> u32 {
        let number = self.recording.frames.len();
        let base = if is_kernel { 0xffff_ffff_8100_0000 } else { 0x5555_5540_0000 };
        self.recording.frames.push(Frame {
            address: base + number as u64 * 0x47,
            is_kernel,
            is_return: !is_kernel,
        });
        let function = |&(name, file, line): &(&str, &str, u32)| Function {
            name: name.to_owned(),
            file: file.to_owned(),
            line,
        };
        self.recording.symbols.push(functions.iter().map(function).collect());
        u32::try_from(number).expect("few frames")
    }

    fn stack(&mut self, parent: u32, frame: u32) -> u32 {
        self.recording.stacks.push(Stack { parent, frame });
        u32::try_from(self.recording.stacks.len() - 1).expect("few stacks")
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.rng.below(all.len() as u64)).expect("small")]
    }

    /// A random number in which small values are frequent: about 1 / (n + 1).
    fn skewed(&mut self, bound: usize) -> usize {
        let uniform = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (((bound + 1) as f64).powf(uniform) as usize - 1).min(bound - 1)
    }

    fn program(&mut self, plan: Plan) -> Vec<Work> {
        let mut works = Vec::new();
        for &(thread_name, activity, stage, cpu_share, crate_name) in WORKS {
            let threads = self.threads(thread_name);
            let entry = self.entry(thread_name, crate_name);
            let mut work = Work {
                threads,
                tag: Tag { activity, stage },
                cpu_share,
                crate_name,
                stacks: Vec::new(),
            };
            self.grow(&mut work, entry, stage, plan.places_per_work);
            works.push(work);
        }
        works
    }

    /// The threads with a name; adds them if it is new.
    fn threads(&mut self, name: &str) -> Vec<u32> {
        let count = if name == "worker" {
            4
        } else if name == "selector" {
            2
        } else {
            1
        };
        if !self.recording.threads.iter().any(|thread| thread.name.starts_with(name)) {
            for number in 0..count {
                let id = 4243 + self.recording.threads.len() as u32;
                self.recording.threads.push(Thread { id, name: format!("{name}-{number}") });
            }
        }
        let threads = self.recording.threads.iter().enumerate();
        let of_name = threads.filter(|(_, thread)| thread.name.starts_with(name));
        of_name.map(|(index, _)| index as u32).collect()
    }

    /// The outermost frames of every stack of a thread.
    fn entry(&mut self, thread_name: &str, crate_name: &str) -> u32 {
        let run = format!("{crate_name}::{thread_name}::run");
        let file = format!("crates/{}/src/{thread_name}.rs", crate_name.replace('_', "-"));
        let boxed = "<alloc::boxed::Box<F, A> as core::ops::function::FnOnce<Args>>::call_once";
        let chain: [&[(&str, &str, u32)]; 4] = [
            &[("clone3", "libc.so.6", 0)],
            &[("start_thread", "libc.so.6", 0)],
            &[
                (boxed, "/rustc/library/alloc/src/boxed.rs", 1985),
                (
                    "std::sys::thread::unix::Thread::new::thread_start",
                    "/rustc/library/std/src/sys/thread/unix.rs",
                    126,
                ),
            ],
            &[(&run, &file, 41)],
        ];
        chain.into_iter().fold(0, |parent, functions| {
            let frame = self.frame(functions, false);
            self.stack(parent, frame)
        })
    }

    /// Generates a random call tree below `entry`; nodes that end samples become the work's stacks.
    fn grow(&mut self, work: &mut Work, entry: u32, stage: Stage, place_count: u64) {
        let stage = self.function(work.crate_name, stage.name());
        let frame = self.frame(&[(&stage.0, &stage.1, 77)], false);
        let mut nodes = vec![(self.stack(entry, frame), 0)];
        let mut callable = Vec::new();
        for _ in 0..place_count {
            // Most calls start from a recent node, so that stacks become deep.
            let back = if self.rng.one_in(2) {
                self.rng.below(nodes.len() as u64) as usize
            } else {
                self.skewed(nodes.len())
            };
            let (parent, depth) = nodes[nodes.len() - 1 - back];
            if depth == DEPTH_MAX {
                continue;
            }
            let is_kernel = self.rng.one_in(12);
            // Some addresses are called from several places.
            let frame = if !callable.is_empty() && self.rng.one_in(4) {
                self.of(&callable)
            } else if is_kernel {
                let name = format!(
                    "{}_{}",
                    self.of(&["vfs", "ext4", "tcp", "ep", "do", "copy_user"]),
                    self.of(VERBS)
                );
                self.frame(&[(&name, "kernel", 0)], true)
            } else if self.rng.one_in(20) {
                let name = format!("ZSTD_{}{}", self.of(VERBS), self.of(NOUNS));
                self.frame(&[(&name, "zstd/lib/decompress/zstd_decompress.c", 812)], false)
            } else {
                let inlined_count = self.rng.below(4);
                let functions: Vec<_> =
                    (0..=inlined_count).map(|_| self.function(work.crate_name, "")).collect();
                let lines: Vec<u32> =
                    functions.iter().map(|_| 10 + self.rng.below(380) as u32).collect();
                let parts: Vec<_> = functions
                    .iter()
                    .zip(lines)
                    .map(|((name, file), line)| (name.as_str(), file.as_str(), line))
                    .collect();
                self.frame(&parts, false)
            };
            let node = self.stack(parent, frame);
            if is_kernel {
                // The kernel does not call the program.
                work.stacks.push(node);
            } else {
                callable.push(frame);
                nodes.push((node, depth + 1));
                if !self.rng.one_in(3) {
                    work.stacks.push(node);
                }
            }
        }
    }

    /// A name and a file; a third belong to libraries.
    fn function(&mut self, crate_name: &str, verb: &str) -> (String, String) {
        let (module, noun) = (self.of(MODULES), self.of(NOUNS));
        let other = self.of(NOUNS);
        let verb = if verb.is_empty() { self.of(VERBS) } else { verb };
        let number = self.rng.below(40);
        match self.rng.below(6) {
            0 => (
                format!("core::slice::{noun}::<impl [{other}]>::{verb}_{number}"),
                format!("/rustc/library/core/src/slice/{noun}.rs"),
            ),
            1 => (
                format!(
                    "<alloc::vec::Vec<{crate_name}::{module}::{other}> as core::iter::traits::collect::Extend<T>>::{verb}_{number}"
                ),
                "/rustc/library/alloc/src/vec/mod.rs".to_owned(),
            ),
            2 => (
                format!(
                    "<{crate_name}::{module}::{noun}::{other}Reader<R, C> as {crate_name}::{module}::Source>::{verb}_{number}::{{{{closure}}}}"
                ),
                format!("crates/{}/src/{module}/{noun}.rs", crate_name.replace('_', "-")),
            ),
            _ => (
                format!("{crate_name}::{module}::{noun}::{verb}_{other}_{number}"),
                format!("crates/{}/src/{module}/{noun}.rs", crate_name.replace('_', "-")),
            ),
        }
    }

    fn spans(&mut self, plan: Plan) {
        let seconds = plan.seconds;
        let mut add = |kind: &str, start_ns: u64, length_ns: u64, fields: &[(&str, String)]| {
            let end_ns = start_ns + length_ns;
            if start_ns < seconds * SECOND_NS {
                self.recording.spans.push(Span {
                    kind: kind.to_owned(),
                    start_ns,
                    end_ns: (end_ns < seconds * SECOND_NS).then_some(end_ns),
                    fields: fields
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), value.clone()))
                        .collect(),
                });
            }
        };
        let mut second = 3;
        while second < seconds {
            let flush_ns = 300 * MS_NS + second * 37 % 400 * MS_NS;
            add(
                "flush",
                second * SECOND_NS,
                flush_ns,
                &[("memtable_bytes", (64 << 20).to_string())],
            );
            for number in 0..plan.compaction_factor {
                let start_ns = second * SECOND_NS + flush_ns + number * 300 * MS_NS;
                let fields = [
                    ("from_level", (number % 3).to_string()),
                    ("input_bytes", ((200 + second) << 20).to_string()),
                ];
                add("compaction", start_ns, (2_000 + second * 83 % 1_500) * MS_NS, &fields);
            }
            if second % 3 == 0 {
                let start_ns = second * SECOND_NS + 150 * MS_NS;
                add("stall", start_ns, 220 * MS_NS, &[("reason", "l0_files".to_owned())]);
            }
            second += 8;
        }
        for second in (1..seconds).step_by(2) {
            let start_ns = second * SECOND_NS + second * 71 % 900 * MS_NS;
            add(
                "fsync",
                start_ns,
                (12 + second * 7 % 60) * MS_NS,
                &[("file", format!("{:06}.wal", 12 + second / 8))],
            );
        }
        add(
            "overload",
            seconds * 7 / 10 * SECOND_NS,
            900 * MS_NS,
            &[("policy", "reject".to_owned())],
        );
        self.recording.spans.sort_by_key(|span| span.start_ns);
    }

    fn is_during(&self, kind: &str, time_ns: u64) -> bool {
        let mut spans = self.recording.spans.iter().filter(|span| span.kind == kind);
        spans.any(|span| span.start_ns <= time_ns && time_ns < span.end_ns.unwrap_or(u64::MAX))
    }

    fn cpu(&mut self, plan: Plan, works: &[Work]) {
        let shares: u64 = works.iter().map(|work| work.cpu_share).sum();
        for slot in 0..plan.seconds * SECOND_NS / CPU_PERIOD_NS {
            for cpu in 0..CPU_COUNT {
                let time_ns = slot * CPU_PERIOD_NS + self.rng.below(CPU_PERIOD_NS);
                // The load varies slightly.
                if self.rng.one_in(if time_ns / (4 * SECOND_NS) % 3 == 1 { 4 } else { 12 }) {
                    continue;
                }
                // A stall leaves little work.
                if self.is_during("stall", time_ns) && !self.rng.one_in(5) {
                    continue;
                }
                let background =
                    if cpu == 0 && self.is_during("compaction", time_ns) && !self.rng.one_in(3) {
                        Some(COMPACTION)
                    } else if cpu == 1 && self.is_during("flush", time_ns) && !self.rng.one_in(3) {
                        Some(FLUSH)
                    } else {
                        None
                    };
                let work = background.unwrap_or_else(|| {
                    let mut left = self.rng.below(shares);
                    let found = works.iter().position(|work| {
                        let is_it = left < work.cpu_share;
                        left = left.saturating_sub(work.cpu_share);
                        is_it
                    });
                    found.expect("less than the sum of all")
                });
                self.sample(&works[work], Kind::Cpu, time_ns, 0, CPU_PERIOD_NS, 0);
            }
        }
    }

    fn sample(
        &mut self,
        work: &Work,
        kind: Kind,
        time_ns: u64,
        duration_ns: u64,
        weight: u64,
        name: u32,
    ) {
        let thread = self.of(&work.threads);
        let stack = work.stacks[self.skewed(work.stacks.len())];
        let is_live = kind == Kind::Alloc && self.rng.one_in(8);
        self.recording.samples.push(Sample {
            kind,
            time_ns,
            duration_ns,
            thread,
            tag: work.tag,
            name,
            stack,
            weight,
            is_live,
        });
    }

    fn allocations(&mut self, plan: Plan, works: &[Work]) {
        for _ in 0..plan.seconds * 130 {
            let time_ns = self.rng.below(plan.seconds * SECOND_NS);
            let index = if self.is_during("compaction", time_ns) && self.rng.one_in(2) {
                COMPACTION
            } else {
                self.skewed(FLUSH)
            };
            let bytes = 16u64 << self.rng.below(17);
            let part = 1.0 - (-(bytes as f64) / ALLOC_MEAN_BYTES as f64).exp();
            self.sample(&works[index], Kind::Alloc, time_ns, 0, (bytes as f64 / part) as u64, 0);
        }
    }

    fn waits(&mut self, plan: Plan, works: &[Work]) {
        // Kind, number per second, maximum in ms, sampling mean in ms, names.
        let kinds: [(WaitKind, u64, u64, f64, &[u32]); 5] = [
            (WaitKind::Contention, 40, 12, 1.0, &[1, 1, 1, 2, 3, 4]),
            (WaitKind::Idle, 60, 90, 20.0, &[5, 6]),
            (WaitKind::Backpressure, 5, 200, 1.0, &[7]),
            (WaitKind::Io, 30, 20, 1.0, &[8, 9]),
            (WaitKind::Scheduler, 20, 3, 1.0, &[0]),
        ];
        let length_ns = plan.seconds * SECOND_NS;
        for (kind, per_second, longest_ms, mean_ms, names) in kinds {
            for _ in 0..plan.seconds * per_second {
                let time_ns = self.rng.below(length_ns);
                let longest_ns =
                    if self.is_during("flush", time_ns) { 4 } else { 1 } * longest_ms * MS_NS;
                let most_ns = longest_ns.min(length_ns - time_ns) as usize;
                let duration_ns = 1_000
                    + (self.skewed(most_ns.max(1)) as u64)
                        .min(length_ns - time_ns - 1)
                        .saturating_sub(1_000);
                let part = 1.0 - (-(duration_ns as f64) / (mean_ms * MS_NS as f64)).exp();
                let weight = (duration_ns as f64 / part) as u64;
                let name = self.of(names);
                let index = self.skewed(FLUSH);
                self.sample(&works[index], Kind::Wait(kind), time_ns, duration_ns, weight, name);
                if kind == WaitKind::Contention && self.rng.one_in(2) {
                    self.sample(&works[index], Kind::Holder, time_ns, 0, weight, name);
                }
            }
        }
        // Scheduler waits have no stack.
        for sample in &mut self.recording.samples {
            if sample.kind == Kind::Wait(WaitKind::Scheduler) {
                sample.stack = 0;
            }
        }
    }
}
