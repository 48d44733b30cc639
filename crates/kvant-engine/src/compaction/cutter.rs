//! Where one output of a merge ends and the next begins.

/// Tables beneath an output, in tables of full size, at which it is cut: what merging the output
/// itself will rewrite one day.
const GRANDPARENT_TABLES_MAX: u64 = 16;

/// Decides where to cut the outputs of a merge: at the table size, and before an output overlaps so
/// much of the level beneath that its own compaction would be long. All versions of a user key must
/// get into one table, so it is to be asked only at a new user key.
pub(crate) struct OutputCutter<'a> {
    table_bytes: u64,
    /// Largest user key and size of each grandparent, in key order, from the one that the last key
    /// was in or before.
    grandparents: &'a [(&'a [u8], u64)],
    /// Bytes of the grandparents that the current output has gone past.
    passed_bytes: u64,
}

impl<'a> OutputCutter<'a> {
    /// A cutter for tables of `table_bytes` above `grandparents`, given by largest user key and
    /// size, in key order.
    pub(crate) fn new(table_bytes: u64, grandparents: &'a [(&'a [u8], u64)]) -> OutputCutter<'a> {
        OutputCutter { table_bytes, grandparents, passed_bytes: 0 }
    }

    /// Whether the output, now of `output_bytes`, must end before `user_key`. To be called for
    /// every user key, in order; `output_bytes` is 0 for a key that starts an output anyway.
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
