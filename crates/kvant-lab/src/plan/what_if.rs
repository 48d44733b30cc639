//! A plan as an experiment that asks what faster stages would bring.
//!
//! Each repeat of a case is a block of the experiment. A case has one stage: its attempt has a
//! phase as planned, and one for each part of its time that the stage is spared.
//!
//! Invariants:
//! 1. Phases are closed loops, or hold a constant rate that the plan says: it is slowed down as
//!    the stages are. A load beside has no rate: it would not be slowed down.
//! 2. Nothing is recorded: the profiler would be slowed down with the server.

use super::{PhaseTask, Plan, PlannedRate, Requests, Workload};
use crate::record::WhatIfFacts;
use kvant_base::tag::Stage;
use kvant_load::workload::Kind;

impl Plan {
    /// The stages that its requests may pass.
    pub fn stages(&self) -> Vec<Stage> {
        let writes = self.workloads.iter().any(|workload| workload.changes_data);
        let ranges = self.workloads.iter().any(|workload| match &workload.requests {
            Requests::Native(native) => native.mix.has(Kind::Range),
            _ => true,
        });
        let is_passed = |stage: &Stage| match stage {
            Stage::None => false,
            Stage::Wal | Stage::Sync | Stage::Build => writes,
            Stage::Merge => writes || ranges,
            _ => true,
        };
        Stage::ALL.into_iter().filter(is_passed).collect()
    }

    /// The plan as an experiment of so many blocks. Phases that search or change their rate are
    /// left out.
    ///
    /// # Errors
    /// Why the plan is none.
    pub fn what_if(
        mut self,
        facts: WhatIfFacts,
        block_count: u32,
    ) -> std::result::Result<Plan, String> {
        let is_program = |requests: &Requests| matches!(requests, Requests::Command { .. });
        if let Some(workload) = self.workloads.iter().find(|one| is_program(&one.requests)) {
            let name = &workload.name;
            return Err(format!(
                "`{name}` is a program, which cannot be slowed down: leave it out"
            ));
        }
        let has_rate_beside = |workload: &&Workload| {
            let rate = workload.beside.as_ref().and_then(|beside| beside.rate.as_ref());
            rate.is_some_and(|rate| *rate != PlannedRate::Fixed(0.0))
        };
        if let Some(workload) = self.workloads.iter().find(has_rate_beside) {
            let name = &workload.name;
            return Err(format!(
                "the load beside `{name}` has a rate, which is not slowed down with the server: \
                 leave the rate out"
            ));
        }
        self.phases.retain(|phase| matches!(phase.task, PhaseTask::Hold(_) | PhaseTask::Closed));
        let is_share = |task: &PhaseTask| matches!(task, PhaseTask::Hold(rate) if !matches!(rate, PlannedRate::Fixed(_)));
        if let Some(phase) = self.phases.iter().find(|phase| is_share(&phase.task)) {
            let name = &phase.name;
            return Err(format!("phase `{name}` holds a share of a maximum: write a rate"));
        }
        let with_stages = |name: &String| -> Vec<String> {
            facts.stages.iter().map(|stage| format!("{name} {}", stage.name())).collect()
        };
        for axis in &mut self.sweep {
            axis.phases = axis.phases.iter().flat_map(with_stages).collect();
        }
        let mut phases = Vec::new();
        for phase in &self.phases {
            for (stage, name) in facts.stages.iter().zip(with_stages(&phase.name)) {
                let sped_up = Some(*stage);
                phases.push(super::Phase { name, sped_up, is_profiled: false, ..phase.clone() });
            }
        }
        self.phases = phases;
        self.subjects.iter_mut().for_each(|subject| subject.is_profiled = false);
        // A run is resumed only with an unchanged text.
        let stages: Vec<&str> = facts.stages.iter().map(|stage| stage.name()).collect();
        let percents: Vec<String> = facts.percents.iter().map(u32::to_string).collect();
        let (stages, percents) = (stages.join(", "), percents.join(", "));
        self.text += &format!(
            "\n# what if: {stages}\n# spared per cent: {percents}\n# blocks: {block_count}\n"
        );
        self.title = format!("What if: {}", self.title);
        self.repeats = block_count;
        self.known.clear();
        self.what_if = Some(facts);
        match self.cases().is_empty() {
            true => Err("the plan has no phase with a rate, and none that is closed".to_owned()),
            false => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests;
