//! A span of time with a linearly changing rate: the number of requests up to a time, and the
//! inverse.
//!
//! With the rate `a` at the start and the slope `k` per second, `N(t) = a t + k t^2 / 2`. The
//! inverse `t = 2 n / (a + sqrt(a^2 + 2 k n))` has no cancellation; with `k = 0` it is `n / a`
//! exactly.

#[cfg(test)]
mod tests;

const NS_PER_S: f64 = 1e9;

#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    start_ns: u64,
    end_ns: u64,
    /// Requests per second at the start.
    rate: f64,
    /// Change of the rate each second.
    slope: f64,
    /// Requests until the end, with fractions.
    total: f64,
}

impl Curve {
    /// From `rate` at the start to `rate_at_end`, in requests per second. NaN and negative rates
    /// count as 0.
    pub(super) fn new(start_ns: u64, end_ns: u64, rate: f64, rate_at_end: f64) -> Curve {
        let (rate, rate_at_end) = (rate.max(0.0), rate_at_end.max(0.0));
        let length_s = (end_ns - start_ns) as f64 / NS_PER_S;
        let slope = if length_s > 0.0 { (rate_at_end - rate) / length_s } else { 0.0 };
        // The sum first: halving it is exact.
        let total = (rate + rate_at_end) * ((end_ns - start_ns) as f64) / (2.0 * NS_PER_S);
        Curve { start_ns, end_ns, rate, slope, total }
    }

    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// How many positions 0, 1, ... lie before the end.
    pub(super) fn count(&self) -> u64 {
        // 30 s at 0.1 per second are 3 requests, not 4 because of a rounding error.
        let tolerance = 1e-6 + self.total * 1e-13;
        (self.total - tolerance).ceil().max(0.0) as u64
    }

    /// The time of request `n`; at most the last nanosecond.
    pub(super) fn time_of_ns(&self, n: f64) -> u64 {
        let rate_then = (self.rate * self.rate + 2.0 * self.slope * n).max(0.0).sqrt();
        let since_start_ns =
            if n > 0.0 { 2.0 * n * NS_PER_S / (self.rate + rate_then) } else { 0.0 };
        let at_ns = self.start_ns.saturating_add(since_start_ns.round() as u64);
        at_ns.min(self.end_ns.saturating_sub(1))
    }

    /// How many positions have a [`Curve::time_of_ns`] before `before_ns`.
    pub(super) fn positions_before(&self, before_ns: u64) -> u64 {
        let count = self.count();
        if before_ns <= self.start_ns {
            return 0;
        }
        if before_ns >= self.end_ns {
            return count;
        }
        let s = (before_ns - self.start_ns) as f64 / NS_PER_S;
        let estimate = self.rate * s + self.slope * s * s / 2.0;
        // The estimate may be off by rounding.
        let mut position = (estimate as u64).min(count);
        while position > 0 && self.time_of_ns((position - 1) as f64) >= before_ns {
            position -= 1;
        }
        while position < count && self.time_of_ns(position as f64) < before_ns {
            position += 1;
        }
        position
    }
}
