//! The queues that a new block may enter, and the largest block of each.

/// The queue of a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The small queue: data blocks.
    Probation,
    /// The main queue: index and filter blocks, each of which serves many reads.
    Main,
}

impl Admission {
    /// Largest block admitted: a larger one would evict too many others.
    pub(super) fn block_bytes_max(self, capacity_bytes: u64) -> u64 {
        match self {
            Admission::Probation => capacity_bytes / 4,
            Admission::Main => capacity_bytes / 2,
        }
    }
}
