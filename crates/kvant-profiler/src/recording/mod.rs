//! What was recorded: samples with time stamps over a tree of stacks.
//!
//! Invariants:
//! 1. Every index is valid: of a thread, a name, a stack, a frame.
//! 2. A stack's parent comes before it in [`Recording::stacks`]; so does that of every node of a
//!    tree that is built in order.
//! 3. Samples are in the order of their times.

use kvant_base::tag::Tag;
use kvant_base::wait::WaitKind;

mod decode;
mod encode;
mod layout;

pub use decode::decode;
pub use encode::encode;

/// One profile of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// When, of what, and how.
    pub facts: Facts,
    /// The threads that were seen.
    pub threads: Vec<Thread>,
    /// Names of locks, queues and system calls that were waited for. The first is empty: samples
    /// that waited for nothing have it.
    pub names: Vec<String>,
    /// The addresses that stacks are made of.
    pub frames: Vec<Frame>,
    /// The nodes of the tree of stacks. The first is the root, which stands for no frame.
    pub stacks: Vec<Stack>,
    /// What was seen.
    pub samples: Vec<Sample>,
    /// Flushes, compactions, stalls, slow fsyncs and times of overload that overlap the recording.
    pub spans: Vec<Span>,
    /// The names of the frames, when they are known: for each of [`Recording::frames`] the
    /// functions at that address, the innermost first (more than one where the compiler inlined).
    /// Empty before symbols were resolved.
    pub symbols: Vec<Vec<Function>>,
}

impl Recording {
    /// Whether there are frames whose names are not known yet.
    pub fn needs_symbols(&self) -> bool {
        self.symbols.len() != self.frames.len()
    }

    /// CPU time of the process that no sample stands for: what the kernel's account has more than
    /// all samples of CPU time together.
    pub fn not_sampled_ns(&self) -> u64 {
        if self.facts.cpu.is_none() {
            return 0;
        }
        let of_cpu = self.samples.iter().filter(|sample| sample.kind == Kind::Cpu);
        let sampled_ns = of_cpu.fold(0u64, |sum, sample| sum.saturating_add(sample.weight));
        self.facts.process_cpu_ns.saturating_sub(sampled_ns)
    }
}

/// The circumstances of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// When it began, in nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The program and its arguments.
    pub command: String,
    /// Kvant's version.
    pub version: String,
    /// The process.
    pub process_id: u32,
    /// Processors that it may use.
    pub cpu_count: u32,
    /// CPU time of the process during the recording, by the kernel's account.
    pub process_cpu_ns: u64,
    /// How CPU time was sampled; `None` when it was not.
    pub cpu: Option<CpuSampling>,
    /// One sample per this many bytes allocated, on average; `None` when allocations were not
    /// sampled.
    pub alloc_mean_bytes: Option<u64>,
    /// One sample per this much time waited, on average, by kind in the order of [`WaitKind::ALL`];
    /// `None` when waits were not sampled.
    pub wait_mean_ns: Option<[u64; WaitKind::ALL.len()]>,
    /// Samples that were lost: no room in a ring, or for their stack.
    pub dropped_count: u64,
    /// What is mapped executable: where addresses come from.
    pub modules: Vec<Module>,
}

/// How CPU time was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSampling {
    /// `perf` (with kernel frames where they are permitted) or `timer`.
    pub engine: String,
    /// CPU time of a thread between two of its samples.
    pub period_ns: u64,
    /// Whether kernel frames were seen.
    pub has_kernel_frames: bool,
}

impl CpuSampling {
    /// A sentence about CPU time that the samples cannot show, and what to do: perf events that may
    /// not see the kernel.
    pub fn blind_spot(&self) -> Option<&'static str> {
        (self.engine == "perf" && !self.has_kernel_frames).then_some(
            "time in the kernel: no perf event was taken there; `sysctl kernel.perf_event_paranoid=1` on the server's machine permits \
             them, and `--engine timer` counts that time for the functions that call the kernel",
        )
    }
}

/// An executable or library in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its file, or a name in brackets such as `[vdso]`.
    pub path: String,
    /// The first address.
    pub start: u64,
    /// After the last address.
    pub end: u64,
    /// Where in the file the first address is.
    pub file_offset_bytes: u64,
    /// The identity that the linker gave it; empty where unknown.
    pub build_id: Vec<u8>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number of it.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The address: of the instruction itself in the innermost frame, of the one after the call in
    /// others.
    pub address: u64,
    /// Whether it is the kernel's.
    pub is_kernel: bool,
    /// Whether it is a return address: the call is before it.
    pub is_return: bool,
}

/// A node of the tree of stacks: its callers, then itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The caller's node. The root's is itself.
    pub parent: u32,
    /// The place, in [`Recording::frames`].
    pub frame: u32,
}

/// What a sample is a sample of, and the unit of its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// CPU time, in nanoseconds.
    Cpu,
    /// Allocations, in bytes.
    Alloc,
    /// Time waited, in nanoseconds, with the stack of the waiter.
    Wait(WaitKind),
    /// Time in which somebody waited for a lock, in nanoseconds, with the stack of who held it.
    Holder,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Cpu,
        Kind::Alloc,
        Kind::Wait(WaitKind::Contention),
        Kind::Wait(WaitKind::Idle),
        Kind::Wait(WaitKind::Backpressure),
        Kind::Wait(WaitKind::Io),
        Kind::Wait(WaitKind::Scheduler),
        Kind::Holder,
    ];

    /// Its name in files and pictures.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Alloc => "alloc",
            Kind::Wait(kind) => kind.name(),
            Kind::Holder => "holder",
        }
    }

    /// Its number in [`Kind::ALL`], which files use.
    pub fn code(self) -> u8 {
        match self {
            Kind::Cpu => 0,
            Kind::Alloc => 1,
            Kind::Wait(kind) => 2 + kind as u8,
            Kind::Holder => 7,
        }
    }
}

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What of.
    pub kind: Kind,
    /// When what it stands for began, in nanoseconds since the recording did. What began before: 0.
    pub time_ns: u64,
    /// How long that lasted: of CPU time that timers sampled, since the last sample. 0 for what is
    /// a moment.
    pub duration_ns: u64,
    /// Which thread, in [`Recording::threads`].
    pub thread: u32,
    /// What the thread was working on.
    pub tag: Tag,
    /// What was waited for, in [`Recording::names`].
    pub name: u32,
    /// Where, in [`Recording::stacks`].
    pub stack: u32,
    /// How much this sample stands for, in the unit of its kind.
    pub weight: u64,
    /// Of an allocation: it was not freed before the end of the recording.
    pub is_live: bool,
}

impl Sample {
    /// A sample of which nothing else is known yet.
    pub(crate) fn of(kind: Kind) -> Sample {
        Sample {
            kind,
            time_ns: 0,
            duration_ns: 0,
            thread: 0,
            tag: Tag::default(),
            name: 0,
            stack: 0,
            weight: 0,
            is_live: false,
        }
    }
}

/// Something that the engine or the server did meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// `flush`, `compaction`, `stall`, `fsync`, `overload`.
    pub kind: String,
    /// When it began, in nanoseconds since the recording did; 0 if before.
    pub start_ns: u64,
    /// When it ended; `None` if it still went on.
    pub end_ns: Option<u64>,
    /// Names and values, for people.
    pub fields: Vec<(String, String)>,
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, demangled; the address in hexadecimal where there is none.
    pub name: String,
    /// The source file, or the library, or `kernel`; may be empty.
    pub file: String,
    /// The line; 0 where unknown.
    pub line: u32,
}

#[cfg(test)]
mod tests;
