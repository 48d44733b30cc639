//! Kvant's interface to the environment: file system, clocks, randomness and background threads.
//!
//! The crates above use an [`Env`] instead of the system, so that tests can replace the disk by one
//! that loses unsynced data, and threads by single steps that a seed replays. Some uses stay
//! outside: sockets, the threads and timers of event loops, and the profiler's signal timers, CPU
//! clocks and perf events, which work in signal handlers. `docs/architecture.md` lists them.
//!
//! - [`fs`]: the file-system traits, which [`posix`] implements.
//! - [`clock`]: monotonic and wall time.
//! - [`freed_memory`]: returns memory that the allocator keeps to the system.
//! - [`host`]: memory and CPUs of the machine or container, and files outside the database.
//! - [`rng`]: a small seeded generator.
//! - [`spawner`]: background tasks as steps, each task on its own thread.
//! - `testing` (a cargo feature): disk, clock and spawner for tests.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

#[cfg(not(target_os = "linux"))]
compile_error!("Kvant needs Linux");

#[expect(clippy::disallowed_methods, reason = "the system's clocks")]
pub mod clock;
pub mod freed_memory;
pub mod fs;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files of the machine and of the binary"
)]
pub mod host;
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the system's files")]
#[expect(unsafe_code, reason = "signals, socket queues and mappings have no safe interface")]
pub mod posix;
pub mod rng;
#[expect(clippy::disallowed_types, reason = "the system's threads")]
pub mod spawner;
#[cfg(any(test, feature = "testing"))]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a slow disk sleeps; seeds differ from run to run"
)]
pub mod testing;

use std::sync::Arc;

pub use clock::Clock;
pub use fs::{DirEntry, File, FileLock, Fs, MappedFile};
pub use spawner::{Signal, Spawner, Step, Task, TaskHandle};

/// The environment that components receive. Clones share everything.
#[derive(Clone)]
pub struct Env {
    /// Files and directories.
    pub fs: Arc<dyn Fs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Background work.
    pub spawner: Arc<dyn Spawner>,
}

impl Env {
    /// The operating system.
    pub fn posix() -> Env {
        let clock: Arc<dyn Clock> = Arc::new(clock::SystemClock::new());
        Env {
            fs: Arc::new(posix::PosixFs::new()),
            spawner: Arc::new(spawner::ThreadSpawner::new(Arc::clone(&clock))),
            clock,
        }
    }
}
