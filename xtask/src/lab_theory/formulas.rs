//! Mean and 99th percentile of the response time of queues with Poisson arrivals, in service times.

/// M/M/1 at a load: response times are exponential with the mean `1 / (1 - load)`.
pub(super) fn exponential(load: f64) -> (f64, f64) {
    let mean = 1.0 / (1.0 - load);
    (mean, mean * 100f64.ln())
}

/// M/D/1 at a load: the mean by Pollaczek and Khinchine, the percentile by Erlang's distribution of
/// the waiting time.
pub(super) fn constant(load: f64) -> (f64, f64) {
    let mean = 1.0 + load / (2.0 * (1.0 - load));
    let (mut low, mut high) = (0.0, 100.0);
    while high - low > 1e-6 {
        let middle = (low + high) / 2.0;
        match waits_at_most(load, middle) < 0.99 {
            true => low = middle,
            false => high = middle,
        }
    }
    (mean, 1.0 + high)
}

/// The probability that a request of M/D/1 waits for at most `t` service times: `(1 - r) sum over k
/// up to t of (r (k - t))^k / k! exp(r (t - k))` for the load `r` (Erlang, 1909; Crommelin, 1932).
///
/// The terms alternate. Above 25 service times their cancellation costs too many digits. The tail
/// is exponential there, and is continued with the ratio of its last two whole steps.
fn waits_at_most(load: f64, t: f64) -> f64 {
    const SUM_MAX: f64 = 25.0;
    if t > SUM_MAX {
        let tail = |t| 1.0 - waits_at_most(load, t);
        let decay = tail(SUM_MAX) / tail(SUM_MAX - 1.0);
        return 1.0 - tail(SUM_MAX) * decay.powf(t - SUM_MAX);
    }
    let mut sum = 0.0;
    for k in 0..=t.floor() as i32 {
        let base = load * (f64::from(k) - t);
        let factorial: f64 = (1..=k).map(f64::from).product();
        sum += base.powi(k) / factorial * (-base).exp();
    }
    (1.0 - load) * sum
}

#[cfg(test)]
mod tests;
