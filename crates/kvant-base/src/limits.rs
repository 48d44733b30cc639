//! Fixed bounds of the product and the assertions between them.

/// Longest key, in decoded bytes.
pub const KEY_BYTES_MAX: usize = 16 * 1024;
/// Default of `--value-bytes-max`, the longest value.
pub const VALUE_BYTES_MAX_DEFAULT: u64 = 16 << 20;
/// Upper bound of `--value-bytes-max`.
pub const VALUE_BYTES_MAX_LIMIT: u64 = 1 << 30;
/// Longest value that a read copies out of a memtable or block. Longer values keep their memtable
/// or block alive instead.
pub const VALUE_BYTES_COPIED_MAX: usize = 64 << 10;
/// Longest time to live, in seconds (ten years of 365 days).
pub const TTL_SECONDS_MAX: u64 = 315_360_000;
/// Smallest memory budget that the database accepts.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// Largest payload of a write-ahead-log record: the longest value with its key and framing, and
/// room for a group of writes.
pub const WAL_RECORD_BYTES_MAX: u64 = 2 << 30;
/// Levels of the tree, including level 0.
pub const LEVELS: usize = 7;

const _: () = assert!(VALUE_BYTES_MAX_LIMIT + KEY_BYTES_MAX as u64 + 64 <= WAL_RECORD_BYTES_MAX);
const _: () = assert!(WAL_RECORD_BYTES_MAX <= u32::MAX as u64);
const _: () = assert!(VALUE_BYTES_MAX_DEFAULT * 4 <= MEMORY_BYTES_MIN);
