//! A table of exceptions that can only shrink: it knows which of its rows were needed.

/// The rows, and whether a file has needed each.
pub(super) struct Ratchet<'a, Row> {
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
