//! The world as Kvant sees it: file system, clocks, randomness and background threads.
//!
//! Everything above this crate takes an [`Env`] and touches nothing else, so that a test can
//! replace the disk by one that forgets what was not synced, and threads by single steps that a
//! seed replays.
//!
//! - [`fs`]: the file-system traits; [`posix`], [`memory`] and [`faulty`] implement them.
//! - [`clock`]: monotonic and wall time; a system clock and a mock.
//! - [`host`]: memory and processors of the machine or container.
//! - [`rng`]: a small seeded generator.
//! - [`spawner`]: background tasks as steps; threads in production, one step at a time in tests.
//!
//! The world of a test that replays:
//!
//! ```
//! use kvant_env::{Env, clock::MockClock, faulty::FaultyFs, spawner::DeterministicSpawner};
//! use std::sync::Arc;
//!
//! let seed = 7;
//! let fs = FaultyFs::new(seed);
//! let clock = Arc::new(MockClock::new(0));
//! let spawner = DeterministicSpawner::new(seed, clock.clone());
//! let env = Env { fs: Arc::new(fs.clone()), clock: clock.clone(), spawner: Arc::new(spawner.clone()) };
//! # assert!(env.fs.exists("/".as_ref()).unwrap());
//! ```

pub mod clock;
#[cfg(test)]
mod conformance;
pub mod faulty;
pub mod fs;
pub mod host;
pub mod memory;
#[expect(unsafe_code, reason = "fallocate and statvfs have no safe interface in std")]
pub mod posix;
pub mod rng;
pub mod spawner;
mod tree;

use std::sync::Arc;

pub use clock::Clock;
pub use fs::{DirEntry, File, FileLock, Fs};
pub use spawner::{Signal, Spawner, Step, Task, TaskHandle};

/// The world, handed to every component that needs it. Cheap to clone.
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
    /// The real world.
    pub fn posix() -> Env {
        let clock: Arc<dyn Clock> = Arc::new(clock::SystemClock::new());
        Env {
            fs: Arc::new(posix::PosixFs::new()),
            spawner: Arc::new(spawner::ThreadSpawner::new(Arc::clone(&clock))),
            clock,
        }
    }
}
