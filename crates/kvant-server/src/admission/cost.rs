//! What a request of some class costs, smoothed.

/// Weight of the latest measurement: 1 in so many. One slow read among fast ones changes little, a
/// disk that has become slow shows within a few dozen reads.
const WEIGHT: u64 = 16;

/// A measurement counts as at most so many times what is known, or as this before anything is: a
/// machine that stands still for a second says nothing of the work, and work that has really become
/// slow shows all the same after a few more.
const RISE_MAX: u64 = 8;
const FIRST_NS_MAX: u64 = 1_000_000;

/// A smoothed cost in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost(u64);

impl Cost {
    /// Notes a measurement. The first one counts in full, up to a millisecond.
    #[inline]
    pub(crate) fn note(&mut self, cost_ns: u64) {
        self.0 = match self.0 {
            0 => cost_ns.min(FIRST_NS_MAX),
            smoothed_ns => {
                let cost_ns = cost_ns.min(RISE_MAX * smoothed_ns.max(RISE_MAX * WEIGHT));
                smoothed_ns - smoothed_ns / WEIGHT + cost_ns / WEIGHT
            }
        };
    }

    /// 0 as long as nothing has been measured.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        self.0
    }
}
