//! Planned rates: `20k`, `80%`, `80% of get`, `100% of subject leveldb`, `70% of least`, and
//! `20k at most 70% of status`.

use crate::plan::{MaximumOf, PlannedRate};
use kvant_load::units;

/// Largest share of a maximum.
const PART_MAX: f64 = 100.0;

/// Parses a rate above 0.
pub(super) fn rate(text: &str) -> Result<PlannedRate, String> {
    match rate_or_0(text)? {
        PlannedRate::Fixed(0.0) => {
            Err("a rate of 0 plans no request: `closed = true` sends when a response is there"
                .into())
        }
        rate => Ok(rate),
    }
}

/// Parses a rate.
pub(super) fn rate_or_0(text: &str) -> Result<PlannedRate, String> {
    if let Some((fixed, share)) = text.split_once(" at most ") {
        let per_s = units::parse_rate(fixed.trim())?;
        let (part, of) = self::share(share.trim())?;
        return Ok(PlannedRate::AtMost { per_s, part, of });
    }
    if text.contains('%') {
        let (part, of) = share(text.trim())?;
        return Ok(PlannedRate::Share { part, of });
    }
    units::parse_rate(text).map(PlannedRate::Fixed).map_err(|_| {
        format!(
            "`{text}` is not a rate: write requests a second (20k) or a share of the maximum (80%)"
        )
    })
}

/// Parses `FROM..TO`.
pub(super) fn ramp(text: &str) -> Result<(PlannedRate, PlannedRate), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is not a ramp: write two rates, such as 0..50k"))?;
    let (from, to) = (rate_or_0(from)?, rate_or_0(to)?);
    if [&from, &to].iter().all(|rate| **rate == PlannedRate::Fixed(0.0)) {
        return Err(format!("`{text}`: a ramp from 0 to 0 plans no request"));
    }
    Ok((from, to))
}

/// Parses `PERCENT [of MAXIMUM]`.
fn share(text: &str) -> Result<(f64, MaximumOf), String> {
    let problem = || {
        format!(
            "`{text}` is no share: write 80%, 80% of WORKLOAD, 80% of subject NAME or 80% of least"
        )
    };
    let (percent, of) = text.split_once('%').ok_or_else(problem)?;
    let percent: f64 = percent.trim().parse().map_err(|_| problem())?;
    let part = percent / 100.0;
    if !(part > 0.0 && part <= PART_MAX) {
        return Err(format!("{percent} % is not within 0 and {} %", PART_MAX * 100.0));
    }
    let words: Vec<&str> = of.split_whitespace().collect();
    let of = match words[..] {
        [] => MaximumOf::Own,
        ["of", "least"] => MaximumOf::Least,
        ["of", workload] => MaximumOf::Workload(workload.to_owned()),
        ["of", "subject", subject] => MaximumOf::Subject(subject.to_owned()),
        _ => return Err(problem()),
    };
    Ok((part, of))
}
