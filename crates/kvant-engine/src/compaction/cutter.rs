//! The boundaries between the outputs of a merge.

/// Most bytes that an output overlaps in the level beneath, in tables of full size: a compaction of
/// the output rewrites them.
const GRANDPARENT_TABLES_MAX: u64 = 16;

/// Decides where outputs of a merge end: at the table size, and before an output overlaps too much
/// of the level beneath.
pub(crate) struct OutputCutter<'a> {
    table_bytes: u64,
    /// Largest user key and size of each grandparent, in key order, from the one in or before which
    /// the last key was.
    grandparents: &'a [(&'a [u8], u64)],
    /// Bytes of the grandparents before the last key that the current output overlaps.
    passed_bytes: u64,
}

impl<'a> OutputCutter<'a> {
    /// A cutter for tables of `table_bytes`. `grandparents` holds largest user keys and sizes, in
    /// key order.
    pub(crate) fn new(table_bytes: u64, grandparents: &'a [(&'a [u8], u64)]) -> OutputCutter<'a> {
        OutputCutter { table_bytes, grandparents, passed_bytes: 0 }
    }

    /// Whether the output of `output_bytes` must end before `user_key`. Called once for every user
    /// key, in order, since all versions of a key must be in one table. `output_bytes` is 0 for the
    /// first key of an output.
    pub(crate) fn cut_before(&mut self, user_key: &[u8], output_bytes: u64) -> bool {
        while let Some(((largest, bytes), rest)) = self.grandparents.split_first()
            && *largest < user_key
        {
            self.passed_bytes += bytes;
            self.grandparents = rest;
        }
        let wide = self.passed_bytes >= GRANDPARENT_TABLES_MAX * self.table_bytes;
        let cut = output_bytes > 0 && (wide || output_bytes >= self.table_bytes);
        if cut || output_bytes == 0 {
            self.passed_bytes = 0;
        }
        cut
    }
}

#[cfg(test)]
mod tests;
