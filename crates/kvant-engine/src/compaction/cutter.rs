//! The boundaries between the outputs of a merge.

/// Most bytes that an output overlaps in the level beneath, in tables of full size: a compaction of
/// the output rewrites them.
const GRANDPARENT_TABLES_MAX: u64 = 16;

/// A run of tombstones is cut off if it has one for each so many bytes of a table of full size.
const RUN_SHARE_BYTES: u64 = 16 << 10;
/// The least length of such a run.
const RUN_MIN: u64 = 16;

/// Decides where outputs of a merge end: at the table size, before an output overlaps too much of
/// the level beneath, and around long runs of tombstones. Together with other entries these would
/// not be compacted until tombstones are the most of their table.
pub(crate) struct OutputCutter<'a> {
    table_bytes: u64,
    /// Largest user key and size of each grandparent, in key order, from the one in or before which
    /// the last key was.
    grandparents: &'a [(&'a [u8], u64)],
    /// Bytes of the grandparents before the last key that the current output overlaps.
    passed_bytes: u64,
    /// Tombstones since the last other entry.
    run: u64,
    /// Whether the current output has another entry.
    has_other: bool,
}

impl<'a> OutputCutter<'a> {
    /// A cutter for tables of `table_bytes`. `grandparents` holds largest user keys and sizes, in
    /// key order.
    pub(crate) fn new(table_bytes: u64, grandparents: &'a [(&'a [u8], u64)]) -> OutputCutter<'a> {
        OutputCutter { table_bytes, grandparents, passed_bytes: 0, run: 0, has_other: false }
    }

    /// Whether the output of `output_bytes` must end before `user_key`. Called once for every user
    /// key, in order, since all versions of a key must be in one table. `output_bytes` is 0 for the
    /// first key of an output. `is_tombstone`: the newest version of the key is one.
    pub(crate) fn cut_before(
        &mut self,
        user_key: &[u8],
        output_bytes: u64,
        is_tombstone: bool,
    ) -> bool {
        while let Some(((largest, bytes), rest)) = self.grandparents.split_first()
            && *largest < user_key
        {
            self.passed_bytes += bytes;
            self.grandparents = rest;
        }
        let wide = self.passed_bytes >= GRANDPARENT_TABLES_MAX * self.table_bytes;
        let run_min = (self.table_bytes / RUN_SHARE_BYTES).max(RUN_MIN);
        let run_before = self.run;
        self.run = if is_tombstone { run_before + 1 } else { 0 };
        let at_run = if is_tombstone {
            self.has_other && self.run == run_min
        } else {
            run_before >= run_min
        };
        let cut = output_bytes > 0 && (wide || at_run || output_bytes >= self.table_bytes);
        if cut || output_bytes == 0 {
            self.passed_bytes = 0;
            self.has_other = false;
        }
        self.has_other |= !is_tombstone;
        cut
    }
}

#[cfg(test)]
mod tests;
