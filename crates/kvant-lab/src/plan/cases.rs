//! The cases of a plan, and what a case runs.
//!
//! The order is cell, workload, phase, subject: subjects take turns within minutes, and every
//! maximum is known before a share of it is held.
//!
//! Invariants:
//! 1. A case has the value of each axis that concerns it, and an empty text for the others. No two
//!    cases are equal.
//! 2. [`Plan::resolve`] applies exactly those values.

use super::{
    Data, MaximumOf, Phase, PhaseTask, Plan, PlannedRate, Requests, Resolved, Subject, SubjectKind,
    SweepAxis, Workload,
};
use crate::record::{Case, PhaseKind};
use kvant_base::{Error, Result};
use kvant_load::units;
use kvant_load::workload::{Kind, ValueBytes};
use std::collections::BTreeSet;

/// Axes that are no options of the server.
pub(super) const CONNECTIONS: &str = "connections";
pub(super) const VALUE_BYTES: &str = "value-bytes";
pub(super) const RATE: &str = "rate";

impl Plan {
    /// Everything that is run, in the order of a repeat.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let mut seen = BTreeSet::new();
        for cell in self.cells() {
            for workload in &self.workloads {
                for phase in self.phases.iter().filter(|phase| phase.is_for(workload)) {
                    for subject in self.subjects.iter().filter(|subject| subject.serves(workload)) {
                        let case = self.case(subject, workload, phase, &cell, cases.len());
                        let names = [&case.subject, &case.workload, &case.phase].map(String::clone);
                        if case.is_possible(phase) && seen.insert((names, case.cell.clone())) {
                            cases.push(case);
                        }
                    }
                }
            }
        }
        cases
    }

    fn case(
        &self,
        subject: &Subject,
        workload: &Workload,
        phase: &Phase,
        cell: &[&str],
        id: usize,
    ) -> Case {
        let is_command = matches!(subject.requests_of(workload), Requests::Command { .. });
        let value = |(axis, value): (&SweepAxis, &&str)| match self
            .concerns(axis, subject, workload, phase)
        {
            true => (*value).to_owned(),
            false => String::new(),
        };
        let cell: Vec<String> = self.sweep.iter().zip(cell).map(value).collect();
        Case {
            id,
            subject: subject.name.clone(),
            workload: workload.name.clone(),
            phase: phase.name.clone(),
            kind: if is_command { PhaseKind::Command } else { phase.task.kind() },
            rate_per_s: self.fixed_rate(phase, &cell),
            duration_ns: phase.duration.as_nanos().try_into().unwrap_or(u64::MAX),
            cell,
            sped_up: phase.sped_up,
        }
    }

    /// All combinations of the values of the sweep; one without values if there is no sweep.
    fn cells(&self) -> Vec<Vec<&str>> {
        let mut cells: Vec<Vec<&str>> = vec![Vec::new()];
        for axis in &self.sweep {
            let mut longer = Vec::new();
            for cell in &cells {
                for value in &axis.values {
                    let mut cell = cell.clone();
                    cell.push(value.as_str());
                    longer.push(cell);
                }
            }
            cells = longer;
        }
        cells
    }

    /// Combinations of the values of the sweep.
    pub(super) fn cell_count(&self) -> usize {
        let lengths = self.sweep.iter().map(|axis| axis.values.len());
        lengths.fold(1, usize::saturating_mul)
    }

    /// Whether the values of an axis change what a case runs.
    pub(super) fn concerns(
        &self,
        axis: &SweepAxis,
        subject: &Subject,
        workload: &Workload,
        phase: &Phase,
    ) -> bool {
        let is_named = |names: &[String], name: &String| names.is_empty() || names.contains(name);
        if !is_named(&axis.subjects, &subject.name)
            || !is_named(&axis.workloads, &workload.name)
            || !is_named(&axis.phases, &phase.name)
        {
            return false;
        }
        let requests = subject.requests_of(workload);
        match axis.name.as_str() {
            CONNECTIONS => !matches!(requests, Requests::Command { .. }),
            RATE => matches!(phase.task, PhaseTask::Hold(PlannedRate::Fixed(_))),
            VALUE_BYTES => {
                let is_filled = self.data_of(subject, workload).is_some();
                match requests {
                    Requests::Native(config) => {
                        let reads = [Kind::Get, Kind::Range].map(|kind| config.mix.has(kind));
                        config.mix.has(Kind::Put) || (is_filled && reads.contains(&true))
                    }
                    Requests::Script { .. } => is_filled,
                    Requests::Fixed { .. } | Requests::Command { .. } => false,
                }
            }
            _ => matches!(subject.kind, SubjectKind::Kvant { .. }),
        }
    }

    /// What a subject stores before a workload.
    fn data_of(&self, subject: &Subject, workload: &Workload) -> Option<&Data> {
        let stores = !subject.has_fixed_response && !workload.starts_empty;
        self.data.as_ref().filter(|_| stores)
    }

    /// The rate of a phase, if the plan says it.
    fn fixed_rate(&self, phase: &Phase, cell: &[String]) -> Option<f64> {
        let PhaseTask::Hold(PlannedRate::Fixed(rate)) = phase.task else { return None };
        let swept = self
            .sweep
            .iter()
            .zip(cell)
            .find(|(axis, value)| axis.name == RATE && !value.is_empty());
        // The parser has checked the values.
        Some(swept.and_then(|(_, value)| units::parse_rate(value).ok()).unwrap_or(rate))
    }

    /// What a case runs, with the values of its cell.
    ///
    /// # Errors
    /// `Invalid` for a case of another plan.
    pub fn resolve(&self, case: &Case) -> Result<Resolved> {
        let stranger = |what: &str, name: &str| {
            Error::invalid(format!("case {}: the plan has no {what} `{name}`", case.id))
        };
        let subject = self.subjects.iter().find(|subject| subject.name == case.subject);
        let workload = self.workloads.iter().find(|workload| workload.name == case.workload);
        let phase = self.phases.iter().find(|phase| phase.name == case.phase);
        let mut resolved = Resolved {
            subject: subject.ok_or_else(|| stranger("subject", &case.subject))?.clone(),
            data: None,
            workload: workload.ok_or_else(|| stranger("workload", &case.workload))?.clone(),
            phase: phase.ok_or_else(|| stranger("phase", &case.phase))?.clone(),
        };
        if case.cell.len() != self.sweep.len() {
            return Err(stranger("cell", &case.cell.join(", ")));
        }
        resolved.phase.is_profiled |= resolved.subject.is_profiled;
        resolved.data = self.data_of(&resolved.subject, &resolved.workload).cloned();
        resolved.workload.requests = resolved.subject.requests_of(&resolved.workload).clone();
        // A search would repeat it before each step.
        if resolved.phase.task != PhaseTask::FindMax {
            resolved.phase.warmup = resolved.phase.warmup.max(resolved.subject.warmup_min);
        }
        for (axis, value) in
            self.sweep.iter().zip(&case.cell).filter(|(_, value)| !value.is_empty())
        {
            resolved.apply(&axis.name, value).map_err(Error::invalid)?;
        }
        if let (Requests::Command { command, .. }, Some(data)) =
            (&mut resolved.workload.requests, &self.data)
        {
            let key_count = data.workload.key_count.to_string();
            command.iter_mut().for_each(|word| *word = word.replace("{keys}", &key_count));
        }
        Ok(resolved)
    }

    /// The cases whose maximum a share of `of` in `case` refers to: the last ones before it that
    /// find one. Several for [`MaximumOf::Least`] only.
    pub fn maximum_cases(&self, case: &Case, of: &MaximumOf, cases: &[Case]) -> Vec<usize> {
        let workload = match of {
            MaximumOf::Workload(name) => name,
            _ => &case.workload,
        };
        let is_in_cell = |other: &Case| {
            other.cell.iter().zip(&case.cell).all(|(a, b)| a == b || a.is_empty() || b.is_empty())
        };
        let of_subject = |subject: &str| {
            let finds = |other: &&Case| {
                other.id < case.id
                    && other.subject == subject
                    && other.workload == *workload
                    && other.kind.finds_maximum()
                    && is_in_cell(other)
            };
            cases.iter().rfind(finds).map(|found| found.id)
        };
        match of {
            MaximumOf::Own | MaximumOf::Workload(_) => {
                of_subject(&case.subject).into_iter().collect()
            }
            MaximumOf::Subject(name) => of_subject(name).into_iter().collect(),
            MaximumOf::Least => {
                self.subjects.iter().filter_map(|subject| of_subject(&subject.name)).collect()
            }
        }
    }
}

impl Case {
    /// Whether the phase can be done: an external generator is a closed loop.
    fn is_possible(&self, phase: &Phase) -> bool {
        self.kind != PhaseKind::Command || phase.task == PhaseTask::Closed
    }
}

impl Subject {
    /// Whether it can serve the workload.
    pub(super) fn serves(&self, workload: &Workload) -> bool {
        self.workloads.is_empty() || self.workloads.contains(&workload.name)
    }

    /// The requests of a workload to this subject.
    fn requests_of<'a>(&'a self, workload: &'a Workload) -> &'a Requests {
        let other = self.requests.iter().find(|(name, _)| *name == workload.name);
        other.map_or(&workload.requests, |(_, requests)| requests)
    }
}

impl Phase {
    /// Whether it is for the workload.
    pub(super) fn is_for(&self, workload: &Workload) -> bool {
        self.workloads.is_empty() || self.workloads.contains(&workload.name)
    }
}

impl PhaseTask {
    /// Its name in records.
    pub fn kind(&self) -> PhaseKind {
        match self {
            PhaseTask::Hold(_) => PhaseKind::Hold,
            PhaseTask::FindMax => PhaseKind::FindMax,
            PhaseTask::Steps(_) => PhaseKind::Steps,
            PhaseTask::Ramp { .. } => PhaseKind::Ramp,
            PhaseTask::Factors(_) => PhaseKind::Factors,
            PhaseTask::Closed => PhaseKind::Closed,
        }
    }

    /// The maxima that it has shares of.
    pub(super) fn maxima(&self) -> Vec<&MaximumOf> {
        let rates: Vec<&PlannedRate> = match self {
            PhaseTask::Hold(rate) => vec![rate],
            PhaseTask::Steps(rates) => rates.iter().collect(),
            PhaseTask::Ramp { from, to } => vec![from, to],
            PhaseTask::Factors(_) => return vec![&MaximumOf::Own],
            PhaseTask::FindMax | PhaseTask::Closed => Vec::new(),
        };
        rates.into_iter().filter_map(PlannedRate::maximum).collect()
    }
}

impl PlannedRate {
    /// The maximum that it is a share of.
    pub(super) fn maximum(&self) -> Option<&MaximumOf> {
        match self {
            PlannedRate::Share { of, .. } | PlannedRate::AtMost { of, .. } => Some(of),
            PlannedRate::Fixed(_) => None,
        }
    }
}

impl Workload {
    /// Adds to all of its seeds.
    pub(crate) fn change_seeds(&mut self, by: u64) {
        self.seed = self.seed.wrapping_add(by);
        if let Requests::Native(config) = &mut self.requests {
            config.seed = config.seed.wrapping_add(by);
        }
        if let Some(beside) = &mut self.beside {
            beside.workload.change_seeds(by);
        }
    }
}

impl Resolved {
    /// Applies a value of an axis.
    fn apply(&mut self, axis: &str, value: &str) -> std::result::Result<(), String> {
        match axis {
            CONNECTIONS => {
                let count = units::parse_count(value)? as usize;
                self.workload.connection_count = count;
                self.workload.thread_count = self.workload.thread_count.min(count);
            }
            VALUE_BYTES => {
                let bytes = ValueBytes::parse(value)?;
                if let Requests::Native(config) = &mut self.workload.requests {
                    config.value_bytes = bytes;
                }
                if let Some(data) = &mut self.data {
                    data.workload.value_bytes = bytes;
                }
            }
            RATE => {
                self.phase.task = PhaseTask::Hold(PlannedRate::Fixed(units::parse_rate(value)?))
            }
            option => {
                let SubjectKind::Kvant { options, .. } = &mut self.subject.kind else {
                    return Err(format!("`{option}` is an option of Kvant"));
                };
                options.retain(|(name, _)| name != option);
                options.push((option.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }
}
