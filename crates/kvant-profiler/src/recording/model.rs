//! The recording as data.
//!
//! Invariants:
//! 1. Every index into another table is in range.
//! 2. A stack's parent precedes it in [`Recording::stacks`].
//! 3. Samples are ordered by time.

use kvant_base::tag::Tag;
use kvant_base::wait::WaitKind;
use serde::{Deserialize, Serialize};

/// One profile of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What was recorded, when and how.
    pub facts: Facts,
    /// The threads that were seen.
    pub threads: Vec<Thread>,
    /// Names of the locks, queues and system calls that threads waited for. The first is empty, for
    /// samples of other kinds.
    pub names: Vec<String>,
    /// The distinct addresses on stacks.
    pub frames: Vec<Frame>,
    /// The nodes of the stack tree. The first is the root, which has no frame.
    pub stacks: Vec<Stack>,
    /// The samples.
    pub samples: Vec<Sample>,
    /// Flushes, compactions, stalls, slow fsyncs and overload periods that overlap the recording.
    pub spans: Vec<Span>,
    /// For each of [`Recording::frames`] the functions at its address, innermost first; more than
    /// one where the compiler inlined. Empty until symbols are resolved.
    pub symbols: Vec<Vec<Function>>,
}

impl Recording {
    /// Whether symbols have not been resolved yet.
    pub fn needs_symbols(&self) -> bool {
        self.symbols.len() != self.frames.len()
    }

    /// CPU time of the process that no sample accounts for: the kernel's figure minus the weights
    /// of all CPU samples.
    pub fn not_sampled_ns(&self) -> u64 {
        if self.facts.cpu.is_none() {
            return 0;
        }
        let of_cpu = self.samples.iter().filter(|sample| sample.kind == Kind::Cpu);
        let sampled_ns = of_cpu.fold(0u64, |sum, sample| sum.saturating_add(sample.weight));
        self.facts.process_cpu_ns.saturating_sub(sampled_ns)
    }
}

/// The circumstances of a recording. Its order of fields is that of the file format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Start, in nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// Length.
    pub duration_ns: u64,
    /// The program and its arguments.
    pub command: String,
    /// Kvant's version.
    pub version: String,
    /// Process id.
    pub process_id: u32,
    /// Processors available to the process.
    pub cpu_count: u32,
    /// CPU time of the process during the recording, as the kernel accounts it.
    pub process_cpu_ns: u64,
    /// How CPU time was sampled; `None` if it was not.
    pub cpu: Option<CpuSampling>,
    /// Mean number of allocated bytes per sample; `None` if allocations were not sampled.
    pub alloc_mean_bytes: Option<u64>,
    /// Mean waiting time per sample, in the order of [`WaitKind::ALL`]; `None` if waits were not
    /// sampled.
    pub wait_mean_ns: Option<[u64; WaitKind::ALL.len()]>,
    /// Samples lost because a ring or the stack tree was full.
    pub dropped_count: u64,
    /// Executable mappings, by which addresses are resolved.
    #[serde(skip)]
    pub modules: Vec<Module>,
}

/// How CPU time was sampled. Its order of fields is that of the file format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuSampling {
    /// `perf` (with kernel frames where permitted) or `timer`.
    pub engine: String,
    /// CPU time of a thread between two samples.
    pub period_ns: u64,
    /// Whether any sample has kernel frames.
    pub has_kernel_frames: bool,
}

impl CpuSampling {
    /// A sentence about CPU time that these samples cannot show, with a remedy: perf events without
    /// access to the kernel.
    pub fn blind_spot(&self) -> Option<&'static str> {
        (self.engine == "perf" && !self.has_kernel_frames).then_some(
            "time in the kernel: no perf event was taken there; \
             `sysctl kernel.perf_event_paranoid=1` on the server's machine permits them, and \
             `--engine timer` counts that time for the functions that call the kernel",
        )
    }
}

/// An executable mapping of a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its file, or a name in brackets such as `[vdso]`.
    pub path: String,
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// File offset of the first address.
    pub file_offset_bytes: u64,
    /// The linker's build id; empty if unknown.
    pub build_id: Vec<u8>,
}

impl Module {
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// A thread. Its order of fields is that of the file format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The kernel's thread id.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// A code address on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The interrupted instruction, or a return address.
    pub address: u64,
    /// Whether it is kernel code.
    pub is_kernel: bool,
    /// Whether it is a return address: the call precedes it.
    pub is_return: bool,
}

impl Frame {
    /// The address to resolve. A return address may already belong to the next function, so the
    /// byte before it is looked up, which is in the call.
    pub(crate) fn lookup_address(&self) -> u64 {
        self.address.saturating_sub(u64::from(self.is_return))
    }
}

/// A node of the stack tree: a frame and its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The caller's node. The root is its own parent.
    pub parent: u32,
    /// Index into [`Recording::frames`].
    pub frame: u32,
}

/// What a sample measures. This decides the unit of its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// CPU time, in nanoseconds.
    #[default]
    Cpu,
    /// Allocated bytes.
    Alloc,
    /// Time waited, in nanoseconds, with the waiter's stack.
    Wait(WaitKind),
    /// Time others waited for a lock, in nanoseconds, with the holder's stack.
    Holder,
}

impl Kind {
    /// All kinds, in the order of their codes.
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

    /// Its name in files and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Alloc => "alloc",
            Kind::Wait(kind) => kind.name(),
            Kind::Holder => "holder",
        }
    }

    /// Its index in [`Kind::ALL`], which files store.
    pub fn code(self) -> u8 {
        match self {
            Kind::Cpu => 0,
            Kind::Alloc => 1,
            Kind::Wait(kind) => 2 + kind as u8,
            Kind::Holder => 7,
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// What it measures.
    pub kind: Kind,
    /// When the sampled interval began, in nanoseconds since the start of the recording; 0 if
    /// before it.
    pub time_ns: u64,
    /// Length of the interval: of a wait, or since the previous sample of a CPU timer. 0 for an
    /// instant.
    pub duration_ns: u64,
    /// Index into [`Recording::threads`].
    pub thread: u32,
    /// What the thread was working on.
    pub tag: Tag,
    /// What it waited for: index into [`Recording::names`].
    pub name: u32,
    /// Index into [`Recording::stacks`].
    pub stack: u32,
    /// How much the sample stands for, in the unit of its kind.
    pub weight: u64,
    /// Of an allocation: not freed before the end of the recording.
    pub is_live: bool,
}

impl Sample {
    /// A sample with all other fields zero.
    pub(crate) fn of(kind: Kind) -> Sample {
        Sample { kind, ..Sample::default() }
    }
}

/// An activity of the engine or the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// `flush`, `compaction`, `stall`, `fsync` or `overload`.
    pub kind: String,
    /// Start, in nanoseconds since the start of the recording; 0 if before it.
    pub start_ns: u64,
    /// End; `None` if it was still in progress.
    pub end_ns: Option<u64>,
    /// Names and values, for display.
    pub fields: Vec<(String, String)>,
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// The demangled name; the address in hexadecimal if there is none.
    pub name: String,
    /// The source file, the library, or `kernel`; may be empty.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
}

impl Function {
    /// A function without a line.
    pub(crate) fn new(name: impl Into<String>, file: &str) -> Function {
        Function { name: name.into(), file: file.to_owned(), line: 0 }
    }
}
