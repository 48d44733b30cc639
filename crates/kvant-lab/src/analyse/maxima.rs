//! Breaking points: the highest rates that held, with their intervals.

use super::directory::Measurement;
use super::statistics::{measured, median_interval};
use crate::model::Maximum;
use crate::record::Case;
use kvant_load::report::json::FindMaxFacts;

/// The breaking point of a case that searches; `None` without a valid search.
pub(super) fn maximum(case: &Case, measurements: &[Measurement]) -> Option<Maximum> {
    let searches: Vec<&FindMaxFacts> =
        measurements.iter().filter_map(|one| one.load.find_max.as_ref()).collect();
    let rates = || searches.iter().filter_map(|search| search.rate_max_per_s);
    let rate = measured(rates());
    let middle = match rate {
        Some(rate) => searches.iter().min_by(|a, b| {
            let distance = |search: &FindMaxFacts| {
                search.rate_max_per_s.map_or(f64::INFINITY, |found| (found - rate.median).abs())
            };
            distance(a).total_cmp(&distance(b))
        }),
        None => searches.first(),
    }?;
    let of_median = median_interval(rates());
    Some(Maximum {
        case: case.id,
        search_count: searches.len(),
        rate_per_s: rate,
        interval_per_s: of_median.or_else(|| bracket(&searches)),
        is_interval_of_median: of_median.is_some(),
        saturation_per_s: measured(searches.iter().map(|search| search.saturation_per_s)),
        is_confirmed: searches.iter().all(|search| search.is_confirmed),
        limit: middle.limit.clone(),
        reasons: middle.reasons.clone(),
    })
}

/// From the lowest rate that a search found to the lowest higher rate that failed in any search.
fn bracket(searches: &[&FindMaxFacts]) -> Option<(f64, f64)> {
    let found = || searches.iter().filter_map(|search| search.rate_max_per_s);
    let low = found().min_by(f64::total_cmp)?;
    let high = found().max_by(f64::total_cmp)?;
    let failed = searches
        .iter()
        .flat_map(|search| &search.points)
        .filter(|point| !point.is_met && point.disturbance.is_none() && point.rate_per_s > high);
    Some((low, failed.map(|point| point.rate_per_s).min_by(f64::total_cmp)?))
}
