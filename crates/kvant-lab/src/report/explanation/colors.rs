//! Colours of what an explanation shows.

use crate::explain::model::{Cause, Explanation};

/// Colours of causes; further ones repeat them.
const COLORS: usize = 7;

/// Colours of causes, the same in all pictures: the largest causes have the first ones.
pub(super) struct Colors(Vec<String>);

impl Colors {
    pub(super) fn new(explanation: &Explanation) -> Colors {
        let mut sums: Vec<(f64, String)> = Vec::new();
        let mut add = |name: String, part: f64| match sums.iter_mut().find(|(_, one)| *one == name)
        {
            Some((sum, _)) => *sum += part,
            None => sums.push((part, name)),
        };
        for share in explanation.rows.iter().flat_map(|row| &row.shares) {
            if !matches!(share.cause, Cause::Unexplained | Cause::Queueing) {
                add(share.cause.words(), share.part);
            }
        }
        explanation.overview.lanes.iter().for_each(|(name, _)| add(name.clone(), 0.0));
        sums.sort_by(|a, b| b.0.total_cmp(&a.0));
        Colors(sums.into_iter().map(|(_, name)| name).collect())
    }

    /// A value of CSS.
    pub(super) fn of(&self, name: &str) -> String {
        match self.0.iter().position(|one| one == name) {
            Some(index) => format!("var(--series-{})", index % COLORS),
            None if name == Cause::Queueing.words() => "var(--series-7)".to_owned(),
            None => "var(--line)".to_owned(),
        }
    }
}
