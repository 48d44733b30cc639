//! Made-up comparisons with known differences, on a machine whose speed drifts.
//!
//! Response times are not independent: the speed of the machine has a trend, slow waves and steps
//! as a neighbour comes and goes; each process is faster or slower throughout; windows of 100 ms
//! resemble the ones before; flushes slow down all requests of a window.

use kvant_env::rng::Rng;
use kvant_lab::comparison::{intervals, order};
use std::f64::consts::TAU;

const WINDOWS: usize = 100;
const REQUESTS_OF_WINDOW: usize = 40;
/// Figures of an attempt.
pub(crate) const FIGURES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "cpu", "written"];

/// Deviations of the logarithms of times.
const PROCESS: f64 = 0.01;
const WAVE: f64 = 0.03;
const WAVE_KEPT: f64 = 0.7;
const WINDOW: f64 = 0.05;
const WINDOW_KEPT: f64 = 0.85;
/// The trend over a comparison is at most this, in either direction.
const TREND_MAX: f64 = 0.1;
const STEP: f64 = 0.05;
/// Attempts between two steps, on average.
const STEP_ATTEMPTS: f64 = 12.0;
const FLUSH_FACTOR: f64 = 3.0;
const FLUSH_WINDOWS: u64 = 25;
/// Requests that take many times as long, by a cause of their own.
const SLOW_PART: f64 = 0.01;

struct Maker {
    rng: Rng,
}

/// Of an attempt.
type Figures = [f64; FIGURES.len()];

/// The intervals of a comparison of sides of which B needs `factor` times the time of A.
pub(crate) fn compare(seed: u64, blocks: u32, factor: f64) -> Vec<Option<intervals::Interval>> {
    let mut maker = Maker { rng: Rng::new(seed) };
    let repeats = blocks * order::REPEATS_OF_BLOCK;
    let attempt_count = f64::from(2 * repeats);
    let trend = TREND_MAX * (2.0 * maker.uniform() - 1.0) / attempt_count;
    let (mut speed, mut wave, mut attempts) = (0.0, 0.0, 0.0);
    // By side, then repeat.
    let mut of_sides: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for repeat in 1..=repeats {
        let sides = if order::is_b_first(seed, repeat) { [1, 0] } else { [0, 1] };
        for side in sides {
            attempts += 1.0;
            wave = WAVE_KEPT * wave + WAVE * (1.0 - WAVE_KEPT * WAVE_KEPT).sqrt() * maker.normal();
            if maker.uniform() < 1.0 / STEP_ATTEMPTS {
                speed += STEP * maker.normal();
            }
            let side_ln = if side == 1 { factor.ln() } else { 0.0 };
            let measured = maker.attempt(side_ln + speed + wave + trend * attempts);
            of_sides[side].push(measured);
        }
    }
    let ratios: Vec<Vec<Option<f64>>> = (0..FIGURES.len())
        .map(|figure| {
            let of = |side: usize, repeats: [u32; 2]| {
                repeats.map(|repeat| of_sides[side][repeat as usize - 1][figure])
            };
            order::blocks(repeats)
                .map(|repeats| intervals::log_ratio(of(0, repeats), of(1, repeats)))
                .collect()
        })
        .collect();
    intervals::simultaneous(&ratios, seed)
}

impl Maker {
    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// An attempt on a machine of this slowness, as a logarithm.
    fn attempt(&mut self, slowness_ln: f64) -> Figures {
        let slowness_ln = slowness_ln + PROCESS * self.normal();
        let first_flush = self.rng.below(FLUSH_WINDOWS) as usize;
        let mut window_ln = WINDOW * self.normal();
        let mut all = Vec::with_capacity(WINDOWS * REQUESTS_OF_WINDOW);
        let mut flushes = 0.0;
        for window in 0..WINDOWS {
            let fresh = WINDOW * (1.0 - WINDOW_KEPT * WINDOW_KEPT).sqrt();
            window_ln = WINDOW_KEPT * window_ln + fresh * self.normal();
            let is_flush = window % FLUSH_WINDOWS as usize == first_flush;
            flushes += f64::from(u8::from(is_flush));
            let scale = (slowness_ln + window_ln).exp() * if is_flush { FLUSH_FACTOR } else { 1.0 };
            all.extend((0..REQUESTS_OF_WINDOW).map(|_| scale * self.response()));
        }
        all.sort_by(f64::total_cmp);
        let quantile = |part: f64| all[(all.len() as f64 * part) as usize];
        let cpu = (0.5 * slowness_ln + 0.005 * self.normal()).exp();
        let written = flushes + 0.3 * self.uniform();
        [quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999), cpu, written]
    }

    /// A response time with a mean of about 1.
    fn response(&mut self) -> f64 {
        let usual = 0.6 - 0.4 * self.uniform().ln();
        match self.uniform() < SLOW_PART {
            true => 6.0 * usual,
            false => usual,
        }
    }
}
