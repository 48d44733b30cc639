//! Blocks with a valid checksum that no writer makes, as memory that flips before the checksum is
//! computed leaves them.

use crate::common::{DIR, START_MS, all_records, rounds, seed};
use crate::damage::{Map, Written};
use kvant_base::ErrorKind;
use kvant_base::checksum::crc32c_masked;
use kvant_engine::{Compression, Db, SyncLevel, tools};
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashStyle, FaultyFs};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Compression type and checksum behind a payload.
const TRAILER_BYTES: usize = 5;
/// Footer of a table.
const FOOTER_BYTES: usize = 56;

type Damage = fn(&mut [u8]);

/// The records of the block that tests damage.
const LOST: [&[u8]; 4] = [b"key120", b"key121", b"key122", b"key123"];

/// Ways to damage the payload of a data block of a few records with keys of six bytes and
/// three-byte trailers.
const WAYS: [(&str, Damage); 5] = [
    ("two keys have changed places", |payload| {
        let (second, third) = (entry(payload, 1), entry(payload, 2));
        assert_eq!(payload[second.start..][..3], payload[third.start..][..3], "alike");
        payload.swap(second.end - 1, third.end - 1);
    }),
    ("two entries have the same key", |payload| {
        let (second, third) = (entry(payload, 1), entry(payload, 2));
        payload[third.end - 1] = payload[second.end - 1];
        let trailers: Vec<_> = (0..3).map(|number| tail(payload, number)).collect();
        payload.copy_within(trailers[1]..trailers[1] + 3, trailers[2]);
    }),
    ("the keys are before those of the block before", |payload| {
        let first = entry(payload, 0);
        payload[first.start + 3] -= 1;
    }),
    ("an entry has an unknown kind", |payload| payload[tail(payload, 1)] ^= 0x40),
    ("an entry has a sequence number of the future", |payload| {
        payload[tail(payload, 1) + 2] ^= 0x40
    }),
];

/// The place of entry `number` of a data block: three lengths of a byte, and the end of its key.
fn entry(payload: &[u8], number: usize) -> Range<usize> {
    let tails_bytes = *payload.last_chunk::<4>().expect("a block");
    let mut start = u32::from_le_bytes(tails_bytes) as usize;
    for _ in 0..number {
        start += 3 + usize::from(payload[start + 1]);
    }
    start..start + 3 + usize::from(payload[start + 1])
}

/// The start of the tail of entry `number`: its trailer, and its value.
fn tail(payload: &[u8], number: usize) -> usize {
    (0..number).map(|before| usize::from(payload[entry(payload, before).start + 2])).sum()
}

/// The payloads of all blocks of a table.
fn blocks(contents: &[u8]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < contents.len() - FOOTER_BYTES {
        let ends_at = |end: &usize| contents[*end..].starts_with(&trailer(contents, start..*end));
        let end = (start + 1..contents.len()).find(ends_at).expect("a block ends");
        blocks.push(start..end);
        start = end + TRAILER_BYTES;
    }
    blocks
}

/// The trailer of the block with this payload, whose type is in its place.
fn trailer(contents: &[u8], payload: Range<usize>) -> [u8; TRAILER_BYTES] {
    let kind = contents.get(payload.end).copied().unwrap_or(0);
    let offset_bytes = (payload.start as u64).to_le_bytes();
    let [a, b, c, d] = crc32c_masked(&[&contents[payload], &[kind], &offset_bytes]).to_le_bytes();
    [kind, a, b, c, d]
}

/// Changes the payload of a block of a table, and its checksum to match.
fn change(disk: &FaultyFs, table: &Path, payload: Range<usize>, how: impl FnOnce(&mut [u8])) {
    let mut contents = disk.contents(table).expect("there");
    how(&mut contents[payload.clone()]);
    let trailer = trailer(&contents, payload.clone());
    contents[payload.end..payload.end + TRAILER_BYTES].copy_from_slice(&trailer);
    let file = disk.open_writable(table).expect("there");
    file.write_all_at(&contents, 0).expect("written");
}

/// A database with a table of uncompressed blocks in the last level, or in level 0.
fn written(in_level_0: bool) -> Written {
    let mut written = Written::new(SyncLevel::Always);
    written.options.compression = [Compression::None; 7];
    written.options.memtable_bytes = 256 << 10;
    written.options.table_bytes = 256 << 10;
    if in_level_0 {
        let db = written.world().open(&written.options);
        for number in 0..200 {
            let (key, value) = (format!("key{number:03}").into_bytes(), vec![b'v'; 100]);
            db.put(&key, &value, None).expect("written");
            written.expected.insert(key, value);
        }
        db.flush().expect("flushed");
        db.close().expect("closed");
    } else {
        written.run_and_compact(200);
    }
    assert_eq!(written.files("sst").len(), 1);
    written
}

/// `written` with the block of [`LOST`] damaged in this way, its table, and where the block starts.
fn damaged(in_level_0: bool, how: Damage) -> (Written, PathBuf, u64) {
    let written = written(in_level_0);
    let table = written.files("sst").remove(0);
    let block = blocks(&written.disk.contents(&table).expect("there")).swap_remove(30);
    let offset_bytes = block.start as u64;
    change(&written.disk, &table, block, how);
    (written, table, offset_bytes)
}

/// Merges the table with another one.
fn put_and_compact(db: &Db) -> kvant_base::Result<()> {
    db.put(b"key150", b"another", None).expect("writes go on");
    db.compact()
}

#[test]
fn a_wrong_block_fails_its_compaction_and_not_the_process() {
    for (what, how) in WAYS {
        for in_level_0 in [false, true] {
            let what = format!("{what}, in level 0: {in_level_0}");
            let (written, table, offset_bytes) = damaged(in_level_0, how);
            for _ in 0..2 {
                let db = written.world().open(&written.options);
                let error = put_and_compact(&db).expect_err(&what);
                let place = (error.kind(), error.file(), error.offset_bytes());
                let expected = (ErrorKind::Corruption, Some(&*table), Some(offset_bytes));
                assert_eq!(place, expected, "{what}: {error}");
                db.compact().expect("the table is left alone");
                let found = db.get(b"key000").expect("other blocks are readable");
                assert_eq!(found.as_deref(), Some(&written.expected[&b"key000"[..]][..]), "{what}");
                db.close().expect("closed");
            }
        }
    }
}

#[test]
fn a_wrong_block_is_reported_and_costs_its_own_entries() {
    for (what, how) in WAYS {
        let (mut written, table, offset_bytes) = damaged(false, how);
        let verified = tools::verify(&written.world().env, Path::new(DIR), &mut |_| ());
        let (report, found) = written.repair();
        for problems in [verified.expect("verified").problems, report.problems] {
            let places = problems.iter().map(|error| (error.file(), error.offset_bytes()));
            let places: Vec<_> = places.collect();
            assert_eq!(places, [(Some(&*table), Some(offset_bytes))], "{what}: {problems:?}");
        }
        assert_eq!((report.lost_block_count, report.losses.len()), (1, 1), "{what}");
        LOST.iter().for_each(|key| drop(written.expected.remove(&key[..])));
        assert_eq!(found, written.expected, "{what}");

        let db = written.world().open(&written.options);
        put_and_compact(&db).expect("nothing is wrong any more");
        written.expected.insert(b"key150".to_vec(), b"another".to_vec());
        let found: Map = all_records(&db).expect("readable").into_iter().collect();
        assert_eq!(found, written.expected, "{what}");
        db.close().expect("closed");
    }
}

/// A database with tables on two levels, of all kinds of entries.
fn varied(rng: &mut Rng) -> Written {
    let mut written = Written::new(SyncLevel::Always);
    written.options.compression = [Compression::None; 7];
    let db = written.world().open(&written.options);
    for round in 0..2 {
        for _ in 0..150 {
            let key = format!("key{}", rng.below(200)).into_bytes();
            let bytes = rng.below(20) as usize;
            let expires_at_ms = rng.one_in(3).then_some(START_MS + 1_000_000);
            match rng.one_in(5) {
                true => db.delete(&key).expect("written"),
                false => db.put(&key, &rng.bytes(bytes), expires_at_ms).expect("written"),
            }
        }
        if round == 0 { db.compact().expect("compacted") } else { db.flush().expect("flushed") }
    }
    db.close().expect("closed");
    written
}

#[test]
fn random_bytes_with_a_valid_checksum_are_damage_or_harmless() {
    let seed = seed("wrong blocks");
    let mut rng = Rng::new(seed);
    let written = varied(&mut rng);
    let (mut whole_count, mut compacted_count) = (0, 0);
    let round_count = rounds(300);
    for round in 0..round_count {
        let image = written.disk.crash_image(seed, CrashStyle::KeepAll);
        let tables = written.files("sst");
        let table = &tables[rng.below(tables.len() as u64) as usize];
        let mut blocks = blocks(&image.contents(table).expect("there"));
        let block = blocks.swap_remove(rng.below(blocks.len() as u64) as usize);
        let what = format!("KVANT_TEST_SEED={seed} round {round}: {table:?} {block:?}");
        change(&image, table, block, |payload| {
            for _ in 0..=rng.below(3) {
                payload[rng.below(payload.len() as u64) as usize] = rng.next_u64() as u8;
            }
        });
        let damaged =
            |disk| Written { disk, expected: Map::new(), options: written.options.clone() };
        let copy = damaged(image.crash_image(seed, CrashStyle::KeepAll));
        let is_whole = copy.is_whole();
        let check_kind = |result: kvant_base::Result<()>| {
            let error = result.err()?;
            assert!(!is_whole, "{what}: verify said whole, but {error}");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
            Some(error)
        };
        let check = |result| {
            let error = check_kind(result)?;
            assert!(error.file().is_some(), "{what}: {error}");
            Some(error)
        };
        let mut has_compacted = false;
        for _ in 0..2 {
            let db = match copy.world().try_open(&written.options) {
                Ok(db) => db,
                Err(error) => {
                    assert!(!has_compacted, "{what}: a compaction left a bad tree: {error}");
                    check(Err(error));
                    break;
                }
            };
            for number in 0..200 {
                check(db.get(format!("key{number}").as_bytes()).map(drop));
            }
            check_kind(read_all(&db));
            db.put(b"key", b"", None).expect("writes go on");
            has_compacted = check(db.compact()).is_none();
            check_kind(read_all(&db));
            db.close().expect("closed");
        }
        let (report, _) = damaged(image).repair();
        assert_eq!(report.problems.is_empty(), is_whole, "{what}");
        whole_count += u32::from(is_whole);
        compacted_count += u32::from(has_compacted);
    }
    println!("{round_count} blocks: {whole_count} whole, {compacted_count} compacted");
}

/// Reads all records, whose keys ascend.
fn read_all(db: &Db) -> kvant_base::Result<()> {
    let mut range = db.range(b"", None)?;
    let mut last_key: Option<Vec<u8>> = None;
    while let Some(record) = range.next()? {
        assert!(last_key.as_deref() < Some(record.key), "{last_key:?} {record:?}");
        last_key = Some(record.key.to_vec());
    }
    Ok(())
}
