//! A table of exceptions that can only shrink: it knows which of its rows were needed.

use super::Finding;

/// One row: what a rule does not hold for, in that rule's own terms.
pub(super) struct Exception {
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
}

/// The rows of one table, and whether a finding has needed each.
pub(super) struct Ratchet<'a, Row = Exception> {
    rows: &'a [Row],
    needed: Vec<bool>,
}

impl<'a, Row> Ratchet<'a, Row> {
    pub(super) fn new(rows: &'a [Row]) -> Ratchet<'a, Row> {
        Ratchet { rows, needed: vec![false; rows.len()] }
    }

    /// Whether a row covers the case; that row is needed.
    pub(super) fn allows(&mut self, covers: impl Fn(&Row) -> bool) -> bool {
        let position = self.rows.iter().position(covers);
        if let Some(index) = position {
            self.needed[index] = true;
        }
        position.is_some()
    }

    /// The rows that covered nothing: they have to go.
    pub(super) fn unneeded(self) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().zip(self.needed).filter(|(_, needed)| !needed).map(|(row, _)| row)
    }
}

impl Ratchet<'_> {
    /// A finding for each row that covered nothing; `table` is the table's name.
    pub(super) fn unneeded_findings(self, table: &str) -> Vec<Finding> {
        let finding = |row: &Exception| {
            let problem = format!(
                "{table}: the exception for {} ({}) is not needed any more: remove it",
                row.what, row.reason
            );
            Finding::error("xtask/src/tidy/tables.rs", 1, problem)
        };
        self.unneeded().map(finding).collect()
    }
}
