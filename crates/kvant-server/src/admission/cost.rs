//! The smoothed cost of a request of one class.

/// The latest measurement weighs 1 in so many: one slow read among fast ones changes little, and a
/// disk that becomes slow shows within a few dozen reads.
const WEIGHT: u64 = 16;

/// A measurement counts as at most so many times the smoothed cost, and the first as at most
/// [`FIRST_NS_MAX`]: a machine that stops for a second says nothing about the work, and work that
/// becomes slow shows after a few more measurements.
const RISE_MAX: u64 = 8;
const FIRST_NS_MAX: u64 = 1_000_000;

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

    /// 0 before the first measurement.
    #[inline]
    pub(crate) fn ns(self) -> u64 {
        self.0
    }
}
