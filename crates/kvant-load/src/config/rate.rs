//! The planned rate of a phase.

use serde::{Deserialize, Serialize};

/// Planned requests per second over all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredRate", from = "StoredRate")]
pub enum Rate {
    /// No plan: each connection sends its next request when it has its response. Response time
    /// equals service time, and a slow server reduces the load (coordinated omission).
    #[default]
    Closed,
    /// A constant rate.
    Constant(f64),
    /// A rate that changes linearly over the phase.
    Ramp {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
    },
}

/// A rate in JSON.
#[derive(Serialize, Deserialize)]
struct StoredRate {
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
