//! Durations in nanoseconds, in memory and in JSON.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

/// A duration in nanoseconds, at most `u64::MAX` (584 years).
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(ns(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_nanos)
}
