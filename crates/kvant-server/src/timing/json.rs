//! Times and events in the JSON of `/v0/slow`, `/v0/events` and `/v0/stats`.

use kvant_base::events::Fields;
use kvant_base::timestamp;
use kvant_env::Clock;
use serde::{Serialize, Serializer};

/// Microseconds, to the nanosecond.
pub(crate) fn as_us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// Converts monotonic times to wall times, assuming that the wall clock was not set in between.
pub(crate) struct WallTime {
    now_ns: u64,
    now_wall_ms: u64,
}

impl WallTime {
    pub(crate) fn now(clock: &dyn Clock) -> WallTime {
        WallTime { now_ns: clock.monotonic_ns(), now_wall_ms: clock.wall_ms() }
    }

    /// The monotonic time of [`WallTime::now`].
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The wall time at the monotonic time `ns`, in RFC 3339 format.
    pub(crate) fn at(&self, ns: u64) -> String {
        let wall_ms = match self.now_ns.checked_sub(ns) {
            Some(ago_ns) => self.now_wall_ms.saturating_sub(ago_ns / 1_000_000),
            None => self.now_wall_ms + (ns - self.now_ns) / 1_000_000,
        };
        timestamp::format(wall_ms)
    }
}

pub(crate) struct EventFields<'a>(pub(crate) &'a Fields);

impl Serialize for EventFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}
