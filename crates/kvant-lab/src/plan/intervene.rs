//! A plan as an experiment that makes suspects of slow requests happen.
//!
//! Each repeat of a case is a block of the experiment: one attempt with each suspect and its
//! control, for whose length its phase lasts.
//!
//! Invariants:
//! 1. All phases hold a constant rate that the plan says.
//! 2. No suspect happens for another reason of the lab: nothing is recorded.

use super::{PhaseTask, Plan, PlannedRate, Subject, SubjectKind};
use crate::record::{InterventionFacts, Suspect};
use std::time::Duration;

impl Plan {
    /// The suspects that can be made to happen to its subjects.
    pub fn suspects(&self) -> Vec<Suspect> {
        let refused = |suspect: &Suspect| self.why_not(*suspect).is_some();
        Suspect::ALL.into_iter().filter(|suspect| !refused(suspect)).collect()
    }

    /// The plan as an experiment of so many blocks. Phases that search are left out.
    ///
    /// # Errors
    /// Why the plan is none.
    pub fn intervene(
        mut self,
        facts: InterventionFacts,
        block_count: u32,
    ) -> std::result::Result<Plan, String> {
        self.phases.retain(|phase| matches!(phase.task, PhaseTask::Hold(_)));
        if let Some(why) = facts.suspects.iter().find_map(|suspect| self.why_not(*suspect)) {
            return Err(why);
        }
        for phase in &mut self.phases {
            if !matches!(phase.task, PhaseTask::Hold(PlannedRate::Fixed(_))) {
                let name = &phase.name;
                return Err(format!("phase `{name}` holds a share of a maximum: write a rate"));
            }
            phase.duration = Duration::from_nanos(facts.block_ns_max());
            phase.is_profiled = false;
        }
        self.subjects.iter_mut().for_each(|subject| subject.is_profiled = false);
        // Whatever the requests do, the store is another one after these: in the next attempt they
        // would find nothing to do.
        let changes_store = |suspect: &Suspect| {
            matches!(suspect, Suspect::Flush | Suspect::Compaction | Suspect::Checkpoint)
        };
        if facts.suspects.iter().any(changes_store) {
            self.workloads.iter_mut().for_each(|workload| workload.changes_data = true);
        }
        // A run is resumed only with an unchanged text.
        let names: Vec<&str> = facts.suspects.iter().map(|suspect| suspect.name()).collect();
        self.text += &format!("\n# suspects: {}\n# blocks: {block_count}\n", names.join(", "));
        self.title = format!("Interventions: {}", self.title);
        self.repeats = block_count;
        self.known.clear();
        self.intervention = Some(facts);
        match self.cases().is_empty() {
            true => Err("the plan holds no rate: write a phase with a rate".to_owned()),
            false => Ok(self),
        }
    }

    /// Why a suspect cannot be made to happen.
    fn why_not(&self, suspect: Suspect) -> Option<String> {
        let is_url = |subject: &Subject| matches!(subject.kind, SubjectKind::Url(_));
        let (server, generator) = (&self.server_cpus, &self.generator_cpus);
        let is_apart = !server.is_empty()
            && !generator.is_empty()
            && !server.iter().any(|cpu| generator.contains(cpu));
        match suspect {
            Suspect::Checkpoint if self.subjects.iter().any(is_url) => Some(
                "checkpoints would stay at a server that runs already: leave out `checkpoint`"
                    .to_owned(),
            ),
            Suspect::Neighbour if !is_apart => Some(
                "a neighbour's load would slow down the generator: write server-cpus and \
                 generator-cpus without a common CPU, or leave out `neighbour`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
