//! Places of names and parts, for checks between the parts of a plan.

use super::reader::{Table, Value};

/// Places that checks between parts need.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Names of all parts, also of those with problems.
    pub(super) declared: Vec<(Referred, String)>,
    /// Whether a part had such problems that it is missing in the plan.
    pub(super) has_gaps: bool,
    /// Names that must exist: what they name, the name and its place.
    pub(super) references: Vec<(Referred, String, usize)>,
    /// The task of each phase.
    pub(super) phases: Vec<usize>,
    /// Each subject.
    pub(super) subjects: Vec<usize>,
    /// Each workload.
    pub(super) workloads: Vec<usize>,
    /// Each axis.
    pub(super) axes: Vec<usize>,
}

kvant_base::named_enum! {
    /// What a name names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Referred {
        Subject = "subject",
        Workload = "workload",
        Phase = "phase",
    }
}

impl Places {
    /// Takes the names of a list, which must exist.
    pub(super) fn names(
        &mut self,
        table: &Table<'_>,
        key: &str,
        referred: Referred,
    ) -> Vec<String> {
        let Some(value) = table.value(key) else { return Vec::new() };
        let elements = value.elements();
        let name = |element: &Value<'_>| {
            let name = element.parse(key, |text| Ok::<_, String>(text.to_owned()))?;
            self.references.push((referred, name.clone(), element.at));
            Some(name)
        };
        elements.iter().filter_map(name).collect()
    }
}
