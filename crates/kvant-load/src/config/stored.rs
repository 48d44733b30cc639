//! Rates and durations in JSON.

use super::Rate;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredRate {
    kind: RateKind,
    from_per_s: f64,
    to_per_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RateKind {
    Closed,
    Constant,
    Ramp,
}

impl From<Rate> for StoredRate {
    fn from(rate: Rate) -> StoredRate {
        let (kind, from_per_s, to_per_s) = match rate {
            Rate::Closed => (RateKind::Closed, 0.0, 0.0),
            Rate::Constant(rate) => (RateKind::Constant, rate, rate),
            Rate::Ramp { from, to } => (RateKind::Ramp, from, to),
        };
        StoredRate { kind, from_per_s, to_per_s }
    }
}

impl From<StoredRate> for Rate {
    fn from(StoredRate { kind, from_per_s: from, to_per_s: to }: StoredRate) -> Rate {
        match kind {
            RateKind::Closed => Rate::Closed,
            RateKind::Constant => Rate::Constant(from),
            RateKind::Ramp => Rate::Ramp { from, to },
        }
    }
}

/// A duration as a number of nanoseconds.
pub(super) mod duration_ns {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(kvant_base::duration::ns(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}
