//! What a fill stores, and how.

use crate::workload::config::{Kind, Mix, WorkloadConfig};
use std::time::Duration;

/// Most requests in one write.
pub const PIPELINE_MAX: usize = 1_024;
/// Most keys of a thread that wait for a retry; at this number it sends no unsent key.
pub const WAITING_MAX: usize = 1 << 16;

/// Configuration of a fill.
#[derive(Clone, Debug, PartialEq)]
pub struct FillConfig {
    /// Keys, values and seed; mix, distribution and hit ratio have no effect.
    pub workload: WorkloadConfig,
    /// Requests in one write.
    pub pipeline: usize,
    /// Most tries of a key.
    pub tries_max: u32,
    /// Longest time of the fill.
    pub time_max: Duration,
}

impl FillConfig {
    /// A fill with the keys and values of `workload`: 16 requests in a write, 100 tries, one hour.
    pub fn new(workload: WorkloadConfig) -> FillConfig {
        FillConfig {
            workload: WorkloadConfig { mix: Mix::only(Kind::Put), ..workload },
            pipeline: 16,
            tries_max: 100,
            time_max: Duration::from_secs(3_600),
        }
    }

    /// Every problem of this fill, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.workload.problems();
        if !(1..=PIPELINE_MAX).contains(&self.pipeline) {
            problems.push(format!(
                "{} pipelined requests are not within 1 and {PIPELINE_MAX}",
                self.pipeline
            ));
        }
        if self.tries_max == 0 {
            problems.push("0 tries store nothing".into());
        }
        if self.time_max.is_zero() {
            problems.push("a fill needs time".into());
        }
        problems
    }
}
