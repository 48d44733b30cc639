//! Tables through their public interface, on a file system in memory.

mod corruption;
mod golden;
mod model;

pub(super) use model::seed;

use super::*;
use crate::cursor::InternalIterator;
use crate::format::key_hash;
use crate::format::{FileNum, InternalKeyRef, SeqNum, ValueKind};
use crate::options::Compression;
use kvant_base::{Consumer, ErrorKind, MemoryBudget, Result};
use kvant_env::testing::FaultyFs;
use kvant_env::{Clock, File, Fs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that goes on by a nanosecond each time it is read.
#[derive(Default)]
struct TickingClock(AtomicU64);

impl Clock for TickingClock {
    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn wall_us(&self) -> u64 {
        0
    }
}

const PATH: &str = "/t/000007.sst";

/// An entry of a test table: user key, sequence number, kind, stored value.
type Entry = (Vec<u8>, u64, ValueKind, Vec<u8>);

fn plain() -> TableOptions {
    TableOptions { block_bytes: 4096, compression: Compression::None, filter_bits_per_key: 10.0 }
}

fn context(memory_bytes: u64, metadata_share_bytes: u64) -> Arc<TableContext> {
    let clock: Arc<dyn Clock> = Arc::new(TickingClock::default());
    TableContext::new(&clock, &MemoryBudget::new(memory_bytes), metadata_share_bytes, false)
}

fn roomy() -> Arc<TableContext> {
    context(64 << 20, 64 << 20)
}

fn key_of(entry: &Entry) -> InternalKeyRef<'_> {
    InternalKeyRef::new(&entry.0, SeqNum(entry.1), entry.2)
}

fn new_fs() -> impl Fs {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new("/t")).expect("directory");
    fs
}

fn new_file() -> Arc<dyn File> {
    new_fs().create(Path::new(PATH)).expect("file")
}

/// A builder of the table at [`PATH`].
fn new_builder(options: TableOptions) -> TableBuilder {
    TableBuilder::create(&new_fs(), Path::new("/t"), FileNum(7), options).expect("file")
}

fn build_with(builder_options: TableOptions, entries: &[Entry]) -> (Arc<dyn File>, FinishedTable) {
    let mut builder = new_builder(builder_options);
    for entry in entries {
        builder.add(key_of(entry), &entry.3, None).expect("add");
    }
    let finished = builder.finish().expect("finish");
    (Arc::clone(&finished.file), finished)
}

fn open(file: Arc<dyn File>, context: Arc<TableContext>) -> Result<Arc<Table>> {
    let file_bytes = file.len_bytes().expect("length");
    Table::open(file, Path::new(PATH), FileNum(7), file_bytes, context)
}

fn build(options: TableOptions, entries: &[Entry], context: Arc<TableContext>) -> Arc<Table> {
    let (file, finished) = build_with(options, entries);
    let table = open(file, context).expect("open");
    assert_eq!(
        (table.file_bytes(), table.properties()),
        (finished.file_bytes, &finished.properties)
    );
    table
}

fn file_contents(file: &dyn File) -> Vec<u8> {
    let mut contents = vec![0; file.len_bytes().expect("length") as usize];
    file.read_exact_at(&mut contents, 0).expect("read");
    contents
}

fn file_of(contents: &[u8]) -> Arc<dyn File> {
    let file = new_file();
    file.write_all_at(contents, 0).expect("write");
    file
}

fn get(table: &Table, key: &[u8], visible_at: u64) -> Result<Option<(u64, ValueKind, Vec<u8>)>> {
    let found =
        table.get(key, key_hash(key), SeqNum(visible_at), &mut PointRead::new(Wait::ALWAYS))?;
    Ok(found.map(|found| (found.seq.0, found.kind, found.to_vec())))
}

/// All entries from the position of `iter` on.
fn rest_of(iter: &mut TableIter) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    while iter.valid() {
        let key = iter.key();
        let kind = key.kind().expect("kind");
        entries.push((key.user_key.to_vec(), key.seq().0, kind, iter.value().to_vec()));
        iter.next()?;
    }
    Ok(entries)
}

fn put(key: impl Into<Vec<u8>>, seq: u64, value: impl Into<Vec<u8>>) -> Entry {
    (key.into(), seq, ValueKind::Put, value.into())
}

fn numbered(count: u64) -> Vec<Entry> {
    (0..count)
        .map(|n| put(format!("key{n:08}"), n + 1, format!("value of {n}").repeat(3)))
        .collect()
}

#[test]
fn a_point_read_counts_filter_probes_blocks_and_disk_reads() {
    let context = roomy();
    let table = build(plain(), &numbered(10_000), Arc::clone(&context));
    let opening = context.stats.disk_read_count();
    let mut read = PointRead::new(Wait::ALWAYS);
    let key = b"key00001234";
    for _ in 0..2 {
        let found =
            table.get(key, key_hash(key), SeqNum::MAX, &mut read).expect("get").expect("present");
        assert_eq!(found.seq, SeqNum(1235));
    }
    assert_eq!(
        (read.trace.table_count, read.trace.block_count, read.trace.block_read_count),
        (2, 2, 1),
        "one block each time, from disk and then from the cache"
    );
    assert_eq!(context.stats.disk_read_count() - opening, 1);
    for n in 0..1000 {
        let absent = format!("key{n:08}x");
        assert!(get(&table, absent.as_bytes(), SeqNum::MAX.0).expect("get").is_none());
    }
    assert_eq!(context.stats.filter_probe_count(), 1002);
    assert!(
        context.stats.filter_negative_count() > 950,
        "{}",
        context.stats.filter_negative_count()
    );
}

#[test]
fn a_trace_counts_index_and_filter_blocks_that_are_not_pinned() {
    let context = context(64 << 20, 0);
    let table = build(plain(), &numbered(10_000), Arc::clone(&context));
    let before = (context.stats.disk_read_count(), context.stats.disk_read_bytes());
    let mut read = PointRead::new(Wait::ALWAYS);
    let key = b"key00001234";
    table.get(key, key_hash(key), SeqNum::MAX, &mut read).expect("get").expect("present");
    assert_eq!((read.trace.table_count, read.trace.block_count), (1, 1));
    assert_eq!(read.trace.block_read_count, 3, "filter, index and data");
    assert_eq!(context.stats.disk_read_count() - before.0, 3);
    assert_eq!(context.stats.disk_read_bytes() - before.1, read.trace.block_read_bytes);
    assert_eq!(read.trace.block_read_ns, 3, "each read lasts for a tick");
}

#[test]
fn versions_of_one_key_may_span_several_blocks() {
    let mut entries = vec![put("a", 1, "first")];
    entries.extend((1..=500).rev().map(|seq| put("hot", seq * 2, format!("version {seq}"))));
    entries.push(put("z", 1, "last"));
    let table = build(TableOptions { block_bytes: 256, ..plain() }, &entries, roomy());
    assert!(table.properties().data_block_count > 20);
    assert_eq!(table.properties().distinct_key_count, 3);
    for visible_at in 0..=1001 {
        let mut read = PointRead::new(Wait::ALWAYS);
        let found =
            table.get(b"hot", key_hash(b"hot"), SeqNum(visible_at), &mut read).expect("get");
        assert_eq!(
            found.map(|found| found.seq.0),
            (visible_at >= 2).then_some(visible_at.min(1000) / 2 * 2)
        );
        assert!(read.trace.block_count <= 1);
    }
    assert_eq!(get(&table, b"a", 1).expect("get").expect("present").2, b"first");
    assert_eq!(get(&table, b"z", 1).expect("get").expect("present").2, b"last");
    table.verify().expect("undamaged");
}

#[test]
fn large_values_have_blocks_of_their_own() {
    let sizes = [1, 5000, 100, 70_000, 100, 3 << 20, 200];
    let entries: Vec<Entry> = sizes
        .iter()
        .enumerate()
        .map(|(n, &size)| put(format!("key{n}"), 1, vec![n as u8; size]))
        .collect();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let table = build(TableOptions { compression, ..plain() }, &entries, roomy());
        assert_eq!(table.properties().data_block_count, 7);
        for entry in &entries {
            assert_eq!(get(&table, &entry.0, 1).expect("get").expect("present").2, entry.3);
        }
        let mut iter = table.iter(false, Consumer::Compaction);
        iter.seek_to_first().expect("seek");
        assert_eq!(rest_of(&mut iter).expect("iterate"), entries);
        table.verify().expect("undamaged");
    }
}

/// A compaction copies blocks of one entry. The table must be the one that it would have written.
#[test]
fn blocks_of_one_entry_are_copied_as_if_written_anew() {
    let mut rng = kvant_env::rng::Rng::new(seed());
    let entries: Vec<Entry> = (0..210)
        .map(|n| {
            let bytes = [30, 3000, 4080, 4090, 5000, 20_000, 200_000][n % 7];
            let value = if n % 5 == 0 { rng.bytes(bytes) } else { vec![n as u8; bytes] };
            put(format!("key{:03}", n / 2), (1000 - n) as u64, value)
        })
        .collect();
    let lz4 = TableOptions { compression: Compression::Lz4, ..plain() };
    for options in [lz4, TableOptions { compression: Compression::Zstd, ..plain() }, plain()] {
        let (written, _) = build_with(options, &entries);
        let source = build(lz4, &entries, roomy());
        let mut iter = source.iter(false, Consumer::Compaction);
        iter.seek_to_first().expect("seek");
        let mut builder = new_builder(options);
        let mut copied_count = 0;
        while iter.valid() {
            let own_block = iter.own_block();
            copied_count +=
                u32::from(own_block.is_some_and(|block| block.compression == Compression::Lz4));
            builder.add(iter.key(), iter.value(), own_block).expect("add");
            iter.next().expect("next");
        }
        let copy = builder.finish().expect("finish").file;
        assert!(
            (100..140).contains(&copied_count),
            "{copied_count} compressed blocks of one entry"
        );
        assert_eq!(file_contents(&*copy), file_contents(&*written), "{options:?}");
    }
    let source = build(lz4, &entries, roomy());
    let mut cached = source.iter(true, Consumer::Iterators);
    cached.seek_to_first().expect("seek");
    while cached.valid() {
        assert_eq!(cached.own_block(), None, "a block of the cache is not kept as stored");
        cached.next().expect("next");
    }
}

#[test]
fn incompressible_blocks_are_stored_uncompressed() {
    let mut rng = kvant_env::rng::Rng::new(1);
    let random: Vec<Entry> = (0..100).map(|n| put(format!("{n:03}"), 1, rng.bytes(1000))).collect();
    let zeros: Vec<Entry> = (0..100).map(|n| put(format!("{n:03}"), 1, vec![0; 1000])).collect();
    for compression in [Compression::Lz4, Compression::Zstd] {
        let options = TableOptions { compression, ..plain() };
        let (_, finished) = build_with(options, &random);
        assert!(finished.file_bytes > 100_000);
        let (_, finished) = build_with(options, &zeros);
        assert!(finished.file_bytes < 20_000, "{}", finished.file_bytes);
    }
}

#[test]
fn metadata_beyond_its_share_is_read_through_the_cache() {
    let entries = numbered(5_000);
    let context = context(64 << 20, 0);
    let table = build(plain(), &entries, Arc::clone(&context));
    let held = context.memory.used_bytes(Consumer::TableMetadata);
    assert!(held < 2000, "{held} bytes held although the share is 0");
    for entry in entries.iter().step_by(37) {
        assert_eq!(get(&table, &entry.0, SeqNum::MAX.0).expect("get").expect("present").2, entry.3);
    }
    assert!(get(&table, b"absent", SeqNum::MAX.0).expect("get").is_none());
    let mut iter = table.iter(true, Consumer::Iterators);
    iter.seek_to_first().expect("seek");
    assert_eq!(rest_of(&mut iter).expect("iterate").len(), entries.len());
    drop((iter, table));
    assert_eq!(context.memory.used_bytes(Consumer::TableMetadata), 0);
    assert_eq!(context.memory.used_bytes(Consumer::Iterators), 0);
}

#[test]
fn a_filter_that_would_take_the_room_of_indexes_is_not_read() {
    let entries = numbered(20_000);
    let context = context(66_000, 0);
    let (file, _) = build_with(plain(), &entries);
    let key = &entries[1234].0;
    let mut counts = Vec::new();
    for number in 1..=2 {
        let (file, bytes) = (Arc::clone(&file), file.len_bytes().expect("length"));
        let number = FileNum(number);
        let table = Table::open(file, Path::new(PATH), number, bytes, Arc::clone(&context));
        let mut read = PointRead::new(Wait::ALWAYS);
        let table = table.expect("open");
        let found = table.get(key, key_hash(key), SeqNum::MAX, &mut read).expect("get");
        assert_eq!(found.expect("present").seq, SeqNum(1235));
        assert!(get(&table, b"key00001234x", SeqNum::MAX.0).expect("get").is_none());
        counts.push((read.trace.block_read_count, context.stats.filter_probe_count()));
    }
    assert_eq!(counts, [(3, 2), (2, 2)], "blocks read: the second time without a filter");
}

#[test]
fn pinned_metadata_is_counted_until_the_table_is_dropped() {
    let context = roomy();
    let table = build(plain(), &numbered(20_000), Arc::clone(&context));
    let held = context.memory.used_bytes(Consumer::TableMetadata);
    assert!(held > 20_000 * 10 / 8 && held < 60_000, "{held}");
    drop(table);
    assert_eq!(context.memory.used_bytes(Consumer::TableMetadata), 0);
}

#[test]
fn iterators_prefetch_large_pieces_and_bypass_the_cache() {
    let context = roomy();
    let entries: Vec<Entry> =
        (0..20_000).map(|n| put(format!("key{n:08}"), 1, vec![b'v'; 100])).collect();
    let table = build(plain(), &entries, Arc::clone(&context));
    let opening = context.stats.disk_read_count();
    let mut iter = table.iter(false, Consumer::Compaction);
    iter.seek_to_first().expect("seek");
    for _ in 0..10_000 {
        iter.next().expect("next");
    }
    let used = context.memory.used_bytes(Consumer::Compaction);
    assert!((256 << 10..300 << 10).contains(&used), "{used}");
    rest_of(&mut iter).expect("iterate");
    let reads = context.stats.disk_read_count() - opening;
    assert!(reads <= 16, "{reads} reads for {} bytes", table.file_bytes());
    assert_eq!(context.cache.stats().entry_count, 0);
    // After a jump, readahead starts small again.
    let before = context.stats.disk_read_bytes();
    iter.seek(InternalKeyRef::seek(b"key00000100", SeqNum::MAX)).expect("seek");
    assert!(context.stats.disk_read_bytes() - before <= 16 << 10);
}

#[test]
fn entries_outside_the_limits_are_rejected() {
    let mut builder = new_builder(plain());
    let key = InternalKeyRef::new(b"k", SeqNum(1), ValueKind::PutExpiring);
    assert_eq!(
        builder.add(key, b"1234567", None).expect_err("no expiry").kind(),
        ErrorKind::Invalid
    );
    let long = vec![0; kvant_base::limits::KEY_BYTES_MAX + 1];
    let key = InternalKeyRef::new(&long, SeqNum(1), ValueKind::Put);
    assert_eq!(builder.add(key, b"", None).expect_err("too long").kind(), ErrorKind::Invalid);
}

#[test]
#[should_panic(expected = "in order")]
fn entries_out_of_order_are_rejected() {
    let mut builder = new_builder(plain());
    for seq in [1, 2] {
        let added = builder.add(InternalKeyRef::new(b"k", SeqNum(seq), ValueKind::Put), b"", None);
        added.expect("the older version comes second");
    }
}

#[test]
fn the_estimated_size_follows_the_written_size() {
    let entries = numbered(50_000);
    let mut builder = new_builder(plain());
    for entry in &entries {
        builder.add(key_of(entry), &entry.3, None).expect("add");
    }
    let estimate = builder.estimated_bytes();
    assert!(builder.memory_bytes() > 50_000 * 8);
    let file_bytes = builder.finish().expect("finish").file_bytes;
    assert!(estimate.abs_diff(file_bytes) < file_bytes / 50, "{estimate} for {file_bytes}");
}
