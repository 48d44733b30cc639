//! A plan as a comparison of two sides: its subjects are replaced by A and B.
//!
//! A side is `[SERVER][,OPTION=VALUE]...`. `SERVER` is a program with a `/` in its path, a URL, the
//! name of a subject of the plan, or `this`, which is also what a side without it is: the plan's
//! first Kvant, or this program with default settings. Options are added to those of `serve`.
//!
//! Invariants:
//! 1. Both sides are held at one rate: shares of a server's own maximum become shares of the lesser
//!    one.
//! 2. Nothing in the plan refers to its former subjects.

use super::{MaximumOf, PhaseTask, Plan, PlannedRate, Subject, SubjectKind, parse};
use crate::comparison::order::REPEATS_OF_BLOCK;
use crate::record::{ComparisonFacts, SIDES};
use std::path::Path;

/// The word for this program.
const THIS: &str = "this";
/// Options of Kvant that decide about the bytes of a store.
pub(crate) const STORE_OPTIONS: [&str; 4] = ["compaction", "compression", "engine", "memory"];

impl Plan {
    /// The plan that compares two sides, with so many blocks of four attempts a case.
    ///
    /// # Errors
    /// What is wrong with a side, or why the plan compares nothing.
    pub fn compare(
        mut self,
        facts: ComparisonFacts,
        block_count: u32,
    ) -> std::result::Result<Plan, String> {
        let [a, b] = [&facts.a, &facts.b];
        let subjects = [(SIDES[0], a), (SIDES[1], b)].map(|(name, text)| self.side(name, text));
        let [a_subject, b_subject] = subjects;
        self.refuse_references()?;
        for phase in &mut self.phases {
            phase.task.hold_both_at_one_rate(&phase.name)?;
        }
        for workload in &mut self.workloads {
            let rate = workload.beside.as_mut().and_then(|beside| beside.rate.as_mut());
            rate.map_or(Ok(()), |rate| rate.hold_both_at_one_rate(&workload.name))?;
        }
        // A run is resumed only with an unchanged text.
        self.text += &format!("\n# A: {a}\n# B: {b}\n# blocks: {block_count}\n");
        self.title = format!("{b} against {a}: {}", self.title);
        self.subjects = vec![a_subject?, b_subject?];
        self.repeats = block_count * REPEATS_OF_BLOCK;
        self.known.clear();
        self.comparison = Some(facts);
        let cases = self.cases();
        cases.iter().try_for_each(|case| self.refuse_full_store(case))?;
        match cases.is_empty() {
            true => Err("neither side serves a workload of the plan".to_owned()),
            false => Ok(self),
        }
    }

    /// Whether the sides of a comparison begin on copies of one store. Stores that were filled
    /// apart differ in the shape of their trees, which would be part of every attempt.
    pub(crate) fn shares_stores(&self) -> bool {
        let stores = self.subjects.iter().map(|subject| match &subject.kind {
            SubjectKind::Kvant { program, options } => {
                let of_store =
                    |(name, _): &&(String, String)| STORE_OPTIONS.contains(&name.as_str());
                let of_store = options.iter().filter(of_store).collect::<Vec<_>>();
                Some((program, subject.elsewhere(), of_store))
            }
            SubjectKind::Command { .. } | SubjectKind::Url(_) => None,
        });
        let stores: Vec<_> = stores.collect();
        self.comparison.is_some()
            && stores[0].is_some()
            && stores.iter().all(|one| *one == stores[0])
    }

    fn side(&self, name: &str, text: &str) -> std::result::Result<Subject, String> {
        let mut parts = text.split(',').map(str::trim).peekable();
        let server = parts.next_if(|part| !part.contains('=') || part.contains("://"));
        let is_kvant = |subject: &&Subject| matches!(subject.kind, SubjectKind::Kvant { .. });
        let kvant = || match self.subjects.iter().find(is_kvant) {
            Some(kvant) => kvant.clone(),
            None => parse::kvant(name),
        };
        let mut subject = match server {
            None | Some("" | THIS) => kvant(),
            Some(url) if url.contains("://") => parse::running(name, url)?,
            Some(path) if path.contains('/') => {
                let mut subject = kvant();
                let program = std::path::absolute(Path::new(path))
                    .map_err(|error| format!("{path}: {error}"))?;
                if !kvant_env::host::is_file(&program) {
                    return Err(format!("there is no program {path}"));
                }
                if let SubjectKind::Kvant { program: of_plan, .. } = &mut subject.kind {
                    *of_plan = Some(program);
                }
                subject
            }
            Some(known) => {
                let found = self.subjects.iter().find(|subject| subject.name == known);
                let names: Vec<&str> = self.subjects.iter().map(|one| one.name.as_str()).collect();
                let names = names.join(", ");
                found.cloned().ok_or_else(|| {
                    format!(
                        "`{known}` is neither a program (write a path with a /) nor a URL, nor \
                         `{THIS}`, nor a subject of the plan, which has {names}"
                    )
                })?
            }
        };
        for part in parts {
            let Some((option, value)) = part.split_once('=') else {
                return Err(format!("`{part}` is no option of serve: write OPTION=VALUE"));
            };
            let SubjectKind::Kvant { options, .. } = &mut subject.kind else {
                return Err(format!("`{option}` is an option of Kvant, and `{text}` is none"));
            };
            options.retain(|(known, _)| known != option);
            options.push((option.to_owned(), value.to_owned()));
        }
        subject.name = name.to_owned();
        Ok(subject)
    }

    fn refuse_references(&self) -> std::result::Result<(), String> {
        match self.sweep.iter().find(|axis| !axis.subjects.is_empty()) {
            Some(axis) => Err(format!(
                "the plan sweeps `{}` for some of its subjects, and a comparison replaces them",
                axis.name
            )),
            None => Ok(()),
        }
    }
}

impl PhaseTask {
    fn hold_both_at_one_rate(&mut self, phase: &str) -> std::result::Result<(), String> {
        let rates: Vec<&mut PlannedRate> = match self {
            PhaseTask::Hold(rate) => vec![rate],
            PhaseTask::Steps(rates) => rates.iter_mut().collect(),
            PhaseTask::Ramp { from, to } => vec![from, to],
            PhaseTask::Factors(_) => {
                return Err(format!(
                    "phase `{phase}` loads each side by its own maximum: hold rates instead"
                ));
            }
            PhaseTask::FindMax | PhaseTask::Closed => Vec::new(),
        };
        rates.into_iter().try_for_each(|rate| rate.hold_both_at_one_rate(phase))
    }
}

impl PlannedRate {
    fn hold_both_at_one_rate(&mut self, what: &str) -> std::result::Result<(), String> {
        let (PlannedRate::Share { of, .. } | PlannedRate::AtMost { of, .. }) = self else {
            return Ok(());
        };
        match of {
            MaximumOf::Own => *of = MaximumOf::Least,
            MaximumOf::Least => {}
            MaximumOf::Workload(_) | MaximumOf::Subject(_) => {
                return Err(format!(
                    "`{what}` is held at a share of another maximum, in which both sides may \
                     differ: write a rate, or a share of its own"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
