//! Figures of others beside those of the made-up report.

use super::*;

pub(super) fn known() -> Vec<KnownRow> {
    let row =
        |what: &str, figure: &str, unit: &str, theirs: f64, source: &str, ours: &[f64]| KnownRow {
            what: what.to_owned(),
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            theirs,
            source: source.to_owned(),
            ours: SUBJECTS
                .iter()
                .map(|name| (*name).to_owned())
                .zip(ours.iter().copied())
                .collect(),
        };
    vec![
        row(
            "PUT, random keys: highest rate",
            "rate_max",
            "/s",
            36_400.0,
            "seed 003",
            &[31_700.0, 36_400.0],
        ),
        row("PUT, random keys, 17,000 requests/s", "p99", "ms", 3.93, "seed 003", &[1.31, 1.05]),
        row(
            "GET, existing keys: highest rate",
            "rate_max",
            "/s",
            17_980.0,
            "seed 003",
            &[45_014.0, 51_688.0],
        ),
        row("GET over a range", "p99.9", "ms", 812.0, "seed 002, asynchronous server", &[]),
    ]
}
