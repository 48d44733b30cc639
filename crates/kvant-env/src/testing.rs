//! Test doubles of the environment: a disk that fails and loses power, a clock that the test moves,
//! and tasks without threads, one step at a time. The cargo feature `testing` switches them on; the
//! product does not contain them.
//!
//! An environment that replays from a seed:
//!
//! ```
//! use kvant_env::testing::{DeterministicSpawner, FaultyFs, MockClock};
//! use kvant_env::Env;
//! use std::sync::Arc;
//!
//! let seed = 7;
//! let fs = FaultyFs::new(seed);
//! let clock = Arc::new(MockClock::new(0));
//! let spawner = DeterministicSpawner::new(seed, clock.clone());
//! let env = Env { fs: Arc::new(fs.clone()), clock: clock.clone(), spawner: Arc::new(spawner.clone()) };
//! # assert!(env.fs.exists("/".as_ref()).unwrap());
//! ```

mod clock;
mod deterministic;
mod faulty;
mod rng;
#[expect(unsafe_code, reason = "descriptors of other components have no safe interface")]
mod sockets;

pub use clock::MockClock;
pub use deterministic::DeterministicSpawner;
pub use faulty::{CrashMoment, CrashStyle, FaultOp, FaultyFs};
pub use rng::entropy_seed;
pub use sockets::unread_bytes;
