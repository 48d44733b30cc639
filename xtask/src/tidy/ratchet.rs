//! A table of exceptions that can only shrink: it knows which of its rows were needed.

use super::Finding;

/// One row: what a rule does not hold for, in that rule's own terms.
pub(super) struct Exception {
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
}

/// The rows of one table, and whether a violation has needed each.
pub(super) struct Ratchet<'a> {
    rows: &'a [Exception],
    needed: Vec<bool>,
}

impl Ratchet<'_> {
    pub(super) fn new(rows: &[Exception]) -> Ratchet<'_> {
        Ratchet { rows, needed: vec![false; rows.len()] }
    }

    /// Whether a row covers the violation; marks that row as needed.
    pub(super) fn allows(&mut self, covers: impl Fn(&Exception) -> bool) -> bool {
        let position = self.rows.iter().position(covers);
        if let Some(index) = position {
            self.needed[index] = true;
        }
        position.is_some()
    }

    /// A finding for each row that covered nothing; `table` is the table's name.
    pub(super) fn unneeded_findings(self, table: &str) -> Vec<Finding> {
        let unneeded = self.rows.iter().zip(self.needed).filter(|(_, needed)| !needed);
        let finding = |(row, _): (&Exception, bool)| {
            let problem = format!(
                "{table}: the exception for {} ({}) is not needed any more: remove it",
                row.what, row.reason
            );
            Finding::error("xtask/src/tidy/tables.rs", 1, problem)
        };
        unneeded.map(finding).collect()
    }
}
