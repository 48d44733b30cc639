//! What a request of some class costs, smoothed.

/// Weight of the latest measurement: 1 in so many. One slow read among fast ones changes little, a disk that has become slow shows
/// within a few dozen reads.
const WEIGHT: u64 = 16;

/// A smoothed cost in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost(u64);

impl Cost {
    /// Notes a measurement. The first one counts in full.
    #[inline]
    pub(crate) fn note(&mut self, cost_ns: u64) {
        self.0 = match self.0 {
            0 => cost_ns,
            smoothed_ns => smoothed_ns - smoothed_ns / WEIGHT + cost_ns / WEIGHT,
        };
    }

    /// 0 as long as nothing has been measured.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        self.0
    }
}
