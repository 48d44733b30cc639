//! Successful responses within a part of an attempt: the divisor of CPU time, bytes, waits and
//! context switches a request.
//!
//! Errors do not count: a subject that refuses would seem to work for less. Those of a phase are
//! spread over it, since they are not known by time. A subject works for the load of a case and for
//! the one beside it, so both count. All times are monotonic.

use super::hlog;
use crate::record::Attempt;
use kvant_base::Result;
use kvant_load::report::json::{PhaseResult, ResultFile};
use std::path::Path;

/// Successful responses by interval.
#[derive(Debug, Default)]
pub(super) struct Responses(Vec<Counted>);

#[derive(Debug)]
struct Counted {
    start_ns: u64,
    end_ns: u64,
    count: f64,
}

impl Responses {
    /// Those of the load of an attempt: by second, or by phase for an external generator.
    pub(super) fn of_load(attempt: &Attempt, load: &ResultFile) -> Responses {
        let mut counted = Vec::new();
        for phase in &load.phases {
            let start_ns = begin_ns(attempt, phase);
            let completed = phase.outcome.total.completed;
            let good_part = phase.outcome.good_count() as f64 / completed.max(1) as f64;
            let mut add = |from_ns: u64, to_ns: u64, count: u64| {
                let (from_ns, to_ns) = (start_ns + from_ns, start_ns + to_ns);
                let count = count as f64 * good_part;
                counted.push(Counted { start_ns: from_ns, end_ns: to_ns, count });
            };
            match phase.outcome.seconds.as_slice() {
                [] => add(0, phase.outcome.measured_ns, completed),
                all => all.iter().for_each(|one| add(one.start_ns, one.end_ns, one.completed)),
            }
        }
        Responses(counted)
    }

    /// Adds those of the load beside, by its interval log. A crowd of idle connections has no log:
    /// its requests precede the measured time.
    ///
    /// # Errors
    /// As [`hlog::each_response`].
    pub(super) fn add_beside(&mut self, beside: &ResultFile, log: &Path) -> Result<()> {
        let Some(phase) = beside.phases.first() else { return Ok(()) };
        let Some(begin_ns) = phase.outcome.measure_start_ns else { return Ok(()) };
        let first = self.0.len();
        hlog::each_response(log, &mut |line| {
            self.0.push(Counted {
                start_ns: begin_ns + line.start_ns,
                end_ns: begin_ns + line.end_ns(),
                count: line.histogram.count() as f64,
            });
        })?;
        // The log also has errors, and the requests that missed their deadline.
        let logged: f64 = self.0[first..].iter().map(|one| one.count).sum();
        let part = phase.outcome.good_count() as f64 / logged.max(1.0);
        self.0[first..].iter_mut().for_each(|one| one.count *= part);
        Ok(())
    }

    /// Their number between two times; an interval that is partly within counts in part. `None` if
    /// there are none.
    pub(super) fn within(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let part = |one: &Counted| {
            let overlap_ns = to_ns.min(one.end_ns).saturating_sub(from_ns.max(one.start_ns));
            overlap_ns as f64 / (one.end_ns - one.start_ns).max(1) as f64
        };
        let sum: f64 = self.0.iter().map(|one| one.count * part(one)).sum();
        (sum > 0.0).then_some(sum)
    }
}

/// Begin of the measured time of a phase, monotonic.
pub(super) fn begin_ns(attempt: &Attempt, phase: &PhaseResult) -> u64 {
    phase.outcome.measure_start_ns.unwrap_or(attempt.measure_start_ns)
}
