//! Facts of an experiment that makes suspects of slow requests happen.

use serde::{Deserialize, Serialize};

kvant_base::named_enum! {
    /// What can be made to happen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Suspect {
        /// All memtables are written to tables.
        Flush = "flush",
        /// Everything is merged into the last level.
        Compaction = "compaction",
        /// A consistent copy is made.
        Checkpoint = "checkpoint",
        /// Flushes and compactions rest for 200 ms.
        Pause = "pause",
        /// The server is recorded for the length of the window.
        Profiler = "profiler",
        /// Others use the server's CPUs for the length of the window.
        Neighbour = "neighbour",
    }
}

/// What is made to happen, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterventionFacts {
    /// Each once in a block, with a control.
    pub suspects: Vec<Suspect>,
    /// Requests that are due within this time after a moment are measured.
    pub window_ns: u64,
    /// Least time between the end of a window, and of what was made to happen, and the next
    /// moment ...
    pub gap_min_ns: u64,
    /// ... and its greatest.
    pub gap_max_ns: u64,
}

/// A moment at which a suspect was made to happen or, as its control, nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which suspect.
    pub suspect: Suspect,
    /// Whether it was made to happen.
    pub is_treated: bool,
    /// The moment, monotonic.
    pub at_ns: u64,
    /// When what was made to happen was over, monotonic; that of a control is its moment.
    pub end_ns: u64,
    /// Why it did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl InterventionFacts {
    /// These suspects, in windows of a second.
    pub fn new(suspects: Vec<Suspect>) -> InterventionFacts {
        InterventionFacts {
            suspects,
            window_ns: 1_000_000_000,
            gap_min_ns: 300_000_000,
            gap_max_ns: 700_000_000,
        }
    }

    /// How long a block takes if each suspect outlasts its window by no more than its length.
    pub fn block_ns_max(&self) -> u64 {
        let trial_ns = self.window_ns + self.gap_max_ns;
        self.suspects.len() as u64 * (2 * trial_ns + self.window_ns)
    }
}
