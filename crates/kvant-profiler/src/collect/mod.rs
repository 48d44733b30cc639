//! The samplers, and the session that runs them.
//!
//! ```text
//! thread:  signal handler --> its signal ring -------.
//!          allocator, locks --> its synchronous ring -+--> drain (every 200 ms) --> samples --> Recording
//! ```
//!
//! - [`handler`](self) samples CPU time on the interrupted thread, which a timer or a perf event of
//!   that thread signals.
//! - [`record`] samples allocations and waits, on the thread that allocates or waits.
//! - The drain, a task of the environment's spawner, finds new threads, gives them rings and
//!   timers, and empties the rings.
//!
//! Invariants:
//! 1. Nothing allocates, locks or waits while it takes a sample. A sample that does not fit is
//!    dropped and counted.
//! 2. A process runs one session at a time: the signal, the rings and the allocator are global. One
//!    in the background gives way to any other.
//! 3. Memory that a late signal may touch is never freed.

#[expect(unsafe_code, reason = "a global allocator is an unsafe trait")]
mod alloc;
pub mod anchor;
#[expect(unsafe_code, reason = "registers have no safe interface")]
mod arch;
mod chance;
#[expect(unsafe_code, reason = "CPU clocks of other threads have no safe interface")]
pub mod clock;
mod code;
#[expect(unsafe_code, reason = "a signal handler")]
mod handler;
#[expect(unsafe_code, reason = "maps memory for rings that is never unmapped")]
mod lane;
mod live_samples;
mod options;
mod pace;
#[expect(unsafe_code, reason = "shares memory with the kernel")]
mod perf;
mod profiler;
#[expect(unsafe_code, reason = "walks the caller's stack")]
pub mod record;
#[expect(unsafe_code, reason = "carries static strings as words")]
mod ring;
mod roster;
mod samples;
mod session;
mod spans;
mod stack;
mod stack_tree;
mod thinning;
mod thread_waits;
mod threads;
#[expect(unsafe_code, reason = "timers that signal a thread have no safe interface")]
mod timer;
mod wait;
#[expect(unsafe_code, reason = "follows frame pointers")]
mod walk;

pub use alloc::Allocator;
pub use handler::interrupt_threads;
pub use options::{CpuOptions, Engine, Options};
pub use profiler::{Background, Profiler, StartError};
