//! What a point read touches on its way through the tables.

/// What reads touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTrace {
    /// Tables whose filter let the read through.
    pub table_count: u32,
    /// Data blocks that were looked into.
    pub block_count: u32,
    /// Blocks, of data, index or filter, that were not in the block cache.
    pub block_read_count: u32,
    /// What these blocks take in their files.
    pub block_read_bytes: u64,
}

impl ReadTrace {
    /// Adds what another read touched.
    #[inline]
    pub fn add(&mut self, other: ReadTrace) {
        self.table_count += other.table_count;
        self.block_count += other.block_count;
        self.block_read_count += other.block_read_count;
        self.block_read_bytes += other.block_read_bytes;
    }

    pub(super) fn count_read(&mut self, bytes: u32) {
        self.block_read_count += 1;
        self.block_read_bytes += u64::from(bytes);
    }
}
