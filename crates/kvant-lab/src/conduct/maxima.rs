//! The maxima that planned rates are shares of.

use crate::plan::{MaximumOf, Plan, PlannedRate};
use crate::record::Case;

/// Maxima that were found, by case and repeat.
#[derive(Debug, Default)]
pub(super) struct Maxima {
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    case: usize,
    repeat: u32,
    per_s: f64,
    /// Whether the attempt was disturbed. Its maximum is in no figure, but a rate may be planned
    /// by it if there is no better one.
    is_disturbed: bool,
}

/// A case and its repeat within a plan.
pub(super) struct OfCase<'a> {
    pub(super) plan: &'a Plan,
    /// All cases of the plan.
    pub(super) cases: &'a [Case],
    pub(super) case: &'a Case,
    pub(super) repeat: u32,
}

impl Maxima {
    /// Adds what an attempt found: 0 if no rate holds.
    pub(super) fn add(&mut self, case: usize, repeat: u32, per_s: f64, is_disturbed: bool) {
        self.found.push(Found { case, repeat, per_s, is_disturbed });
    }

    /// Requests per second of a planned rate of `case`; otherwise why it is unknown.
    pub(super) fn rate(&self, planned: &PlannedRate, of_case: &OfCase<'_>) -> Result<f64, String> {
        match planned {
            PlannedRate::Fixed(per_s) => Ok(*per_s),
            PlannedRate::Share { part, of } => Ok(round(part * self.maximum(of, of_case)?)),
            PlannedRate::AtMost { per_s, part, of } => {
                Ok(per_s.min(round(part * self.maximum(of, of_case)?)))
            }
        }
    }

    /// The maximum; the least, if there are several. Otherwise why there is none.
    pub(super) fn maximum(&self, of: &MaximumOf, of_case: &OfCase<'_>) -> Result<f64, String> {
        let OfCase { plan, cases, case, repeat } = of_case;
        let found = plan.maximum_cases(case, of, cases).into_iter().map(|id| {
            self.of(id, *repeat).ok_or_else(|| {
                let Case { subject, workload, .. } = &cases[id];
                format!("there is no maximum of {subject} with {workload}")
            })
        });
        let least = found.reduce(|least, next| Ok(least?.min(next?)));
        least.unwrap_or_else(|| Err("no phase before it finds a maximum".to_owned()))
    }

    /// Of the same repeat, else the median of all; of disturbed attempts only if there are no
    /// others. Repeats without a rate that holds count in the median: if most are, there is none.
    fn of(&self, case: usize, repeat: u32) -> Option<f64> {
        let of = |is_disturbed: bool| {
            let is_of =
                move |found: &&Found| found.case == case && found.is_disturbed == is_disturbed;
            let found = || self.found.iter().filter(is_of);
            let same = found().rfind(|found| found.repeat == repeat).map(|found| found.per_s);
            let same = same.filter(|per_s| *per_s > 0.0);
            let without = found().filter(|found| found.per_s <= 0.0).count();
            let all = || median(found().map(|found| found.per_s));
            same.or_else(|| {
                if without > 0 && without * 2 >= found().count() { Some(0.0) } else { all() }
            })
        };
        of(false).or_else(|| of(true)).filter(|per_s| *per_s > 0.0)
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count.is_multiple_of(2) => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

/// A rate as a whole number, unless it is small.
fn round(per_s: f64) -> f64 {
    if per_s >= 100.0 { per_s.round() } else { per_s }
}

#[cfg(test)]
mod tests;
