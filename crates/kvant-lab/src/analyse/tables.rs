//! Comparisons of subjects, tables of sweeps, and figures of others beside ours.

use super::directory::Measurement;
use super::sentences::subject_in_cell;
use super::statistics::{measured, median_interval};
use crate::model::{Comparison, Figures, KnownRow, Maximum, Measured, Sweep};
use crate::record::{Case, Run};

/// Nanoseconds in a millisecond.
const NS_PER_MS: f64 = 1e6;

/// What is known of each case.
pub(super) struct Known<'a> {
    pub(super) run: &'a Run,
    pub(super) of_cases: &'a [(&'a Case, Vec<Measurement>)],
    pub(super) maxima: &'a [Maximum],
    pub(super) figures: &'a [Figures],
}

/// A figure that is compared, with its unit and whether more is better.
struct Compared {
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
}

const COMPARED: [Compared; 5] = [
    Compared { name: "rate_max", unit: "/s", more_is_better: true },
    Compared { name: "goodput", unit: "/s", more_is_better: true },
    Compared { name: "cpu_per_request", unit: "ns", more_is_better: false },
    Compared { name: "p99", unit: "ns", more_is_better: false },
    Compared { name: "p99.9", unit: "ns", more_is_better: false },
];

/// The ratio of every other subject to the first one, in each figure that both have.
pub(super) fn comparisons(known: &Known<'_>) -> Vec<Comparison> {
    let Some(base) = known.run.subjects.first() else {
        return Vec::new();
    };
    let mut comparisons = Vec::new();
    for (case, _) in known.of_cases.iter().filter(|(case, _)| case.subject != base.name) {
        let same = |other: &&(&Case, Vec<Measurement>)| {
            let other = other.0;
            other.subject == base.name
                && other.cell == case.cell
                && other.workload == case.workload
                && other.phase == case.phase
        };
        let Some((of_base, _)) = known.of_cases.iter().find(same) else {
            continue;
        };
        for compared in &COMPARED {
            let ratios = known.ratios(of_base.id, case.id, compared.name);
            if let Some(ratio) = measured(ratios.iter().copied()) {
                comparisons.push(Comparison {
                    base: base.name.clone(),
                    other: case.subject.clone(),
                    cell: case.cell.clone(),
                    workload: case.workload.clone(),
                    phase: case.phase.clone(),
                    figure: compared.name.to_owned(),
                    ratio,
                    interval: median_interval(ratios),
                });
            }
        }
    }
    comparisons
}

/// A table for each subject, workload, phase and figure, if there is a sweep.
pub(super) fn sweeps(known: &Known<'_>) -> Vec<Sweep> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    if known.run.sweep.is_empty() {
        return sweeps;
    }
    // A case that no axis concerns is in no table.
    let is_swept = |case: &&Case| case.cell.iter().any(|value| !value.is_empty());
    for case in known.run.cases.iter().filter(is_swept) {
        for compared in &COMPARED {
            let value = known.value(case.id, compared.name);
            let same = |sweep: &&mut Sweep| {
                sweep.subject == case.subject
                    && sweep.workload == case.workload
                    && sweep.phase == case.phase
                    && sweep.figure == compared.name
            };
            match sweeps.iter_mut().find(same) {
                Some(sweep) => sweep.cells.push((case.cell.clone(), value)),
                None => sweeps.push(Sweep {
                    subject: case.subject.clone(),
                    workload: case.workload.clone(),
                    phase: case.phase.clone(),
                    figure: compared.name.to_owned(),
                    unit: compared.unit.to_owned(),
                    more_is_better: compared.more_is_better,
                    axes: known.run.sweep.clone(),
                    cells: vec![(case.cell.clone(), value)],
                    best: None,
                }),
            }
        }
    }
    sweeps.retain(|sweep| sweep.cells.iter().any(|(_, value)| value.is_some()));
    for sweep in &mut sweeps {
        keep_axes_that_concern(sweep);
        let values = sweep.cells.iter().filter_map(|(cell, value)| Some((cell, value.as_ref()?)));
        let least_or_most = |a: &Measured, b: &Measured| match sweep.more_is_better {
            true => a.median.total_cmp(&b.median),
            false => b.median.total_cmp(&a.median),
        };
        sweep.best = values.max_by(|a, b| least_or_most(a.1, b.1)).map(|(cell, _)| cell.clone());
    }
    sweeps
}

/// Removes axes of other parts of the plan, of which the cells have no value.
fn keep_axes_that_concern(sweep: &mut Sweep) {
    let has_value = |at: usize| sweep.cells.iter().any(|(cell, _)| !cell[at].is_empty());
    let concerns: Vec<bool> = (0..sweep.axes.len()).map(has_value).collect();
    let mut of_axes = concerns.iter();
    sweep.axes.retain(|_| of_axes.next() == Some(&true));
    for (cell, _) in &mut sweep.cells {
        let mut of_cell = concerns.iter();
        cell.retain(|_| of_cell.next() == Some(&true));
    }
}

/// Each figure of another report beside those of all subjects.
pub(super) fn known_rows(known: &Known<'_>) -> Vec<KnownRow> {
    let row = |row: &crate::record::Known| {
        let is_rate = matches!(row.figure.as_str(), "rate_max" | "achieved");
        let of_workload = known.run.cases.iter().filter(|case| {
            case.workload == row.workload && (row.phase.is_empty() || case.phase == row.phase)
        });
        let ours = of_workload.filter_map(|case| {
            let value = known.value(case.id, &row.figure)?.median;
            Some((subject_in_cell(case), if is_rate { value } else { value / NS_PER_MS }))
        });
        KnownRow {
            what: row.what.clone(),
            figure: row.figure.clone(),
            unit: if is_rate { "/s" } else { "ms" }.to_owned(),
            theirs: row.value,
            source: row.source.clone(),
            ours: ours.collect(),
        }
    };
    known.run.known.iter().map(row).collect()
}

impl Known<'_> {
    /// A figure of a case by name; of several steps, that of the first. `None` if it has none.
    pub(super) fn value(&self, case: usize, figure: &str) -> Option<Measured> {
        if figure == "rate_max" {
            return self.maxima.iter().find(|maximum| maximum.case == case)?.rate_per_s;
        }
        let figures = self.figures.iter().find(|figures| figures.case == case)?;
        match figure {
            "achieved" => Some(figures.achieved_per_s),
            "goodput" => Some(figures.goodput_per_s),
            "cpu_per_request" => figures.cpu_per_request_ns,
            _ => {
                let named = figures.response_ns.iter().find(|(name, _)| name == figure);
                named.map(|(_, value)| *value)
            }
        }
    }

    /// The ratios of a figure of the same repeats of two cases that have it.
    fn ratios(&self, base: usize, other: usize, figure: &str) -> Vec<f64> {
        if self.value(base, figure).is_none() || self.value(other, figure).is_none() {
            return Vec::new();
        }
        let ratios = self.repeats(other, figure).into_iter().filter_map(|(repeat, value)| {
            let (_, of_base) =
                self.repeats(base, figure).into_iter().find(|(of_base, _)| *of_base == repeat)?;
            (of_base > 0.0).then_some(value / of_base)
        });
        ratios.collect()
    }

    /// A figure of each repeat of a case.
    fn repeats(&self, case: usize, figure: &str) -> Vec<(u32, f64)> {
        let Some((_, measurements)) = self.of_cases.iter().find(|(known, _)| known.id == case)
        else {
            return Vec::new();
        };
        let one = |measurement: &Measurement| {
            let repeat = measurement.attempt.repeat;
            if figure == "rate_max" {
                return Some((repeat, measurement.load.find_max.as_ref()?.rate_max_per_s?));
            }
            let (_, phase) = measurement.steps().next()?;
            let value = match figure {
                "goodput" => phase.result.outcome.rate_good(),
                "p99" => phase.response_ns(99.0)?,
                "p99.9" => phase.response_ns(99.9)?,
                _ => super::figures::cpu_per_request_ns(measurement, &phase)?,
            };
            Some((repeat, value))
        };
        measurements.iter().filter_map(one).collect()
    }
}
