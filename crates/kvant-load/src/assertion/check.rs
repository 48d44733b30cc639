//! Checks assertions on the outcome of a phase.

use super::{Assertion, Bound, Counter, Measure, Series, Statistic};
use crate::histogram::Histogram;
use crate::outcome::Outcome;
use crate::record::OpRecord;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of an assertion; written as JSON under these names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The assertion as given.
    pub text: String,
    /// The measured value with its unit and, for shares and baselines, the value it was compared
    /// with; empty if undecided.
    pub value: String,
    /// Whether it holds; false if undecided.
    pub is_met: bool,
    /// Why it is undecided, if it is.
    pub undecided: Option<String>,
}

impl fmt::Display for Checked {
    /// `p99<5ms: holds (4.21ms)`, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.undecided, self.is_met) {
            (Some(why), _) => write!(f, "{}: not decided: {why}", self.text),
            (None, true) => write!(f, "{}: holds ({})", self.text, self.value),
            (None, false) => write!(f, "{}: broken ({})", self.text, self.value),
        }
    }
}

impl Assertion {
    /// Checks the assertion on a phase. `baseline` is the outcome of an earlier run at the same
    /// rate, from [`crate::compare::baseline`].
    pub fn check(&self, outcome: &Outcome, baseline: Option<&Outcome>) -> Checked {
        let (is_met, value, undecided) = match self.decide(outcome, baseline) {
            Ok((is_met, value)) => (is_met, value, None),
            Err(why) => (false, String::new(), Some(why)),
        };
        Checked { text: self.text.clone(), value, is_met, undecided }
    }

    fn decide(
        &self,
        outcome: &Outcome,
        baseline: Option<&Outcome>,
    ) -> Result<(bool, String), String> {
        let value = self.value(outcome)?;
        match self.bound {
            Bound::Value(bound) => Ok((self.comparison.holds(value, bound), self.shown(value))),
            Bound::Share(bound) => {
                let whole = self.whole(outcome)?;
                let is_met = self.comparison.holds(value, bound * whole);
                let share = self.share(value, whole);
                Ok((is_met, share))
            }
            Bound::Base(factor) => {
                let baseline = baseline.ok_or("there is no baseline of this rate")?;
                let base = self.value(baseline).map_err(|why| format!("in the baseline, {why}"))?;
                let is_met = self.comparison.holds(value, base * factor);
                Ok((is_met, format!("{}, baseline {}", self.shown(value), self.shown(base))))
            }
        }
    }

    /// In the unit of the measure.
    fn value(&self, outcome: &Outcome) -> Result<f64, String> {
        let op = self.kind.as_deref().map(|kind| find(outcome, kind)).transpose()?;
        match self.measure {
            Measure::Latency(series, statistic) => latency_ns(outcome, op, series, statistic),
            Measure::Rate if outcome.measured_ns == 0 => Err("nothing was measured".to_owned()),
            Measure::Rate => Ok(completed(outcome, op) as f64 * 1e9 / outcome.measured_ns as f64),
            Measure::Count(counter) => {
                let count = count(outcome, op, counter);
                // Zero failures mean nothing without a response.
                if count == 0 && counter != Counter::Completed && outcome.total.completed == 0 {
                    return Err("no request was answered".to_owned());
                }
                Ok(count as f64)
            }
        }
    }

    /// The whole of a share, in the unit of the measure.
    fn whole(&self, outcome: &Outcome) -> Result<f64, String> {
        let total = &outcome.total;
        let (what, requests) = match self.measure {
            Measure::Count(Counter::Errors | Counter::Timeouts) => ("sent", total.sent),
            _ => ("planned", total.planned),
        };
        if requests == 0 {
            return Err(format!("no request was {what}"));
        }
        match self.measure {
            Measure::Rate => Ok(requests as f64 * 1e9 / outcome.measured_ns as f64),
            _ => Ok(requests as f64),
        }
    }

    fn share(&self, value: f64, whole: f64) -> String {
        format!("{:.4}%, {} of {}", 100.0 * value / whole, self.shown(value), self.shown(whole))
    }

    fn shown(&self, value: f64) -> String {
        match self.measure {
            Measure::Latency(..) => shown_ns(value),
            Measure::Rate => format!("{value:.2}/s"),
            Measure::Count(_) => format!("{value}"),
        }
    }
}

/// The kind with this name: exactly, or the only one that differs in case.
fn find<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a OpRecord, String> {
    let ops = &outcome.total.ops;
    let only_alike = || {
        let mut alike = ops.iter().filter(|op| op.name.to_lowercase() == name.to_lowercase());
        alike.next().filter(|_| alike.next().is_none())
    };
    let op = outcome.total.op(name).or_else(only_alike).ok_or_else(|| {
        let names: Vec<&str> = ops.iter().map(|op| op.name.as_str()).collect();
        format!("there is no kind of requests {name:?}: there are {names:?}")
    })?;
    if op.response.is_empty() && op.statuses.is_empty() {
        return Err(format!("no request of the kind {name:?} was answered"));
    }
    Ok(op)
}

fn latency_ns(
    outcome: &Outcome,
    op: Option<&OpRecord>,
    series: Series,
    statistic: Statistic,
) -> Result<f64, String> {
    let (ended, is_response) = match (series, op) {
        (Series::Response, Some(op)) => (op.response.clone(), true),
        (Series::Response, None) => (outcome.response(), true),
        (Series::Service, Some(op)) => (op.service.clone(), false),
        (Series::Service, None) => (outcome.service(), false),
        (Series::SendLag, _) => (outcome.total.send_lag.clone(), false),
        (Series::Connect, _) => (outcome.total.connect.clone(), false),
    };
    if ended.is_empty() {
        return Err(match series {
            Series::Response | Series::Service => "no request was answered".to_owned(),
            Series::SendLag => "no request was sent".to_owned(),
            Series::Connect => "no connection was opened".to_owned(),
        });
    }
    let value = statistic_ns(&ended, statistic);
    if !is_response || outcome.unanswered.is_empty() {
        return Ok(value);
    }
    let mut all = ended;
    all.add(&outcome.unanswered);
    Ok(value.max(statistic_ns(&all, statistic)))
}

fn statistic_ns(histogram: &Histogram, statistic: Statistic) -> f64 {
    match statistic {
        Statistic::Percentile(percent) => histogram.percentile_ns(percent) as f64,
        // The highest value of the bucket, as for percentiles: 20.00 ms does not meet `max<20ms`.
        Statistic::Max => histogram.as_hdr().max() as f64,
        Statistic::Min => histogram.min_ns() as f64,
        Statistic::Mean => histogram.mean_ns(),
        Statistic::Stdev => histogram.stdev_ns(),
    }
}

fn completed(outcome: &Outcome, op: Option<&OpRecord>) -> u64 {
    match op {
        Some(op) => op.statuses.iter().map(|(_, count)| count).sum(),
        None => outcome.total.completed,
    }
}

fn count(outcome: &Outcome, op: Option<&OpRecord>, counter: Counter) -> u64 {
    match counter {
        Counter::Errors => outcome.total.errors.total(),
        Counter::Timeouts => outcome.total.errors.timeout,
        Counter::Backlog => outcome.backlog,
        Counter::Completed => completed(outcome, op),
    }
}

/// With more digits than in reports: a bound that is missed by little must not look met.
fn shown_ns(ns: f64) -> String {
    match ns {
        1e9.. => format!("{:.4}s", ns / 1e9),
        1e6.. => format!("{:.3}ms", ns / 1e6),
        _ => format!("{:.1}us", ns / 1e3),
    }
}
