//! How long an experiment takes, about.
//!
//! The figures are generous for one machine with two cores. They serve to choose what
//! [`Plan::quick`] shortens, and as the first estimate of progress.

use super::{Data, PhaseTask, Plan, Resolved, SubjectKind};
use std::time::Duration;

/// Keys that a fill stores per second ...
const FILL_KEYS_PER_S: f64 = 60_000.0;
/// ... and bytes of keys and values.
const FILL_BYTES_PER_S: f64 = 40e6;
/// Restoring data, starting a subject and stopping it.
const START_S: f64 = 0.8;
/// The same for another server.
const START_OTHER_S: f64 = 1.2;
/// A build that has been made before.
const PREPARE_S: f64 = 5.0;
/// The report.
const REPORT_S: f64 = 3.0;
/// What an attempt takes beside its load: connecting, writing its files.
const ATTEMPT_S: f64 = 0.3;
/// Steps of a search, of which [`SEARCH_LONG`] take three times as long.
const SEARCH_STEPS: f64 = 11.0;
const SEARCH_LONG: f64 = 2.0;
/// The time at half of the maximum after each factor beyond it.
const RECOVERY_S: f64 = 3.0;

impl Plan {
    /// How long it takes, without builds that were never made and without repeats of disturbed
    /// attempts.
    pub fn expected_duration(&self) -> Duration {
        let mut total_s = REPORT_S;
        for subject in &self.subjects {
            if let SubjectKind::Command { prepare, .. } = &subject.kind {
                // `nginx -v` is no build.
                total_s +=
                    PREPARE_S * prepare.iter().filter(|words| words.len() > 2).count() as f64;
            }
        }
        let mut fills: Vec<(String, String)> = Vec::new();
        for resolved in self.cases().iter().filter_map(|case| self.resolve(case).ok()) {
            total_s += f64::from(self.repeats) * attempt_s(&resolved);
            if let Some(data) = &resolved.data {
                let fill =
                    (resolved.subject.name.clone(), format!("{:?}", data.workload.value_bytes));
                if !fills.contains(&fill) {
                    total_s += fill_s(data);
                    fills.push(fill);
                }
            }
        }
        Duration::from_secs_f64(total_s)
    }
}

fn fill_s(data: &Data) -> f64 {
    let config = &data.workload;
    let bytes = (config.key_bytes.max + config.value_bytes.max() / 2) as f64;
    let keys = config.key_count as f64;
    (keys / FILL_KEYS_PER_S).max(keys * bytes / FILL_BYTES_PER_S) * (1.0 + data.deleted_part)
}

/// A case with its start, once.
fn attempt_s(resolved: &Resolved) -> f64 {
    let phase = &resolved.phase;
    let (warmup_s, duration_s) = (phase.warmup.as_secs_f64(), phase.duration.as_secs_f64());
    let load_s = match &phase.task {
        PhaseTask::Hold(_) | PhaseTask::Ramp { .. } | PhaseTask::Closed => warmup_s + duration_s,
        PhaseTask::FindMax => {
            let steps = SEARCH_STEPS + SEARCH_LONG;
            steps * warmup_s + (SEARCH_STEPS + 3.0 * SEARCH_LONG) * duration_s
        }
        PhaseTask::Steps(rates) => warmup_s + rates.len() as f64 * duration_s,
        PhaseTask::Factors(factors) => {
            let beyond = factors.iter().filter(|factor| **factor > 1.0).count();
            factors.len() as f64 * (warmup_s + duration_s) + beyond as f64 * RECOVERY_S
        }
    };
    let is_kvant = matches!(resolved.subject.kind, SubjectKind::Kvant { .. });
    load_s + ATTEMPT_S + if is_kvant { START_S } else { START_OTHER_S }
}
