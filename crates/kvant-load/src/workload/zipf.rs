//! Zipf-distributed ranks in constant time and memory, by rejection-inversion (Hoermann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
//! TOMACS 6(3), 1996).
//!
//! The probability of rank `k` is proportional to `h(k) = k^-s`. A point is drawn below a
//! continuous hat over the histogram of `h`, by inversion of its integral `H`, and rounded to a
//! rank. A point above the bar of its rank is rejected: less than one draw in ten. The bar of the
//! first rank is cut exactly.

use kvant_env::rng::Rng;

/// The exponent, as in YCSB.
pub(super) const EXPONENT: f64 = 0.99;

/// Draws ranks `1..=count`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: f64,
    /// `H` at the left end of the first rank's bar: the integral from there to 3/2 is `h(1)`.
    area_begin: f64,
    /// `H(count + 1/2)`.
    area_end: f64,
    /// A point rounded up by at most this is below its bar, for every rank.
    sure: f64,
}

impl Zipf {
    /// Ranks `1..=count`; `count` is at least 1.
    pub(super) fn new(count: u64) -> Zipf {
        Zipf {
            count: count as f64,
            area_begin: integral(1.5) - 1.0,
            area_end: integral(count as f64 + 0.5),
            sure: 2.0 - integral_inverse(integral(2.5) - height(2.0)),
        }
    }

    #[inline]
    pub(super) fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let area = self.area_end + unit * (self.area_begin - self.area_end);
            let point = integral_inverse(area);
            let rank = point.round().clamp(1.0, self.count);
            if rank - point <= self.sure || area >= integral(rank + 0.5) - height(rank) {
                return rank as u64;
            }
        }
    }
}

/// `h(x)`.
fn height(x: f64) -> f64 {
    (-EXPONENT * x.ln()).exp()
}

/// `H(x)`: the integral of `h` from 1 to `x`, in a form without cancellation for exponents near 1.
fn integral(x: f64) -> f64 {
    ((1.0 - EXPONENT) * x.ln()).exp_m1() / (1.0 - EXPONENT)
}

/// The inverse of `H`.
fn integral_inverse(area: f64) -> f64 {
    (((1.0 - EXPONENT) * area).ln_1p() / (1.0 - EXPONENT)).exp()
}

#[cfg(test)]
mod tests;
