//! The recovery rule, compared with a model that knows what was written.

use super::*;
use crate::wal::WalWriter;
use crate::wal::layout::{MARKER, RECORD_HEADER_BYTES, RecordHeader};
use crate::wal::short::SHORT_MARKER;
use crate::wal::tests::{DIR, create, path_of, test_seed};
use kvant_base::checksum::crc32c_masked;
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::FaultyFs;
use std::ops::Range;

const NUM: FileNum = FileNum(9);

/// An undamaged log.
#[derive(Clone)]
struct Written {
    image: Vec<u8>,
    records: Vec<WrittenRecord>,
}

#[derive(Clone)]
struct WrittenRecord {
    range: Range<usize>,
    header_bytes: usize,
    /// What the writer was told, which only a full record states.
    synced_bytes: u64,
}

impl WrittenRecord {
    fn is_full(&self) -> bool {
        self.header_bytes == RECORD_HEADER_BYTES
    }

    fn header(&self) -> Range<usize> {
        self.range.start..self.range.start + self.header_bytes
    }
}

/// A log with one record per payload and synced offset. Each record has one operation; the first
/// sequence number is 1.
fn written(records: &[(Vec<u8>, u64)]) -> Written {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    write(&fs, create(&fs, NUM.0, None), records)
}

fn write(fs: &FaultyFs, mut writer: WalWriter, records: &[(Vec<u8>, u64)]) -> Written {
    let mut out = Written { image: Vec::new(), records: Vec::new() };
    for (index, (payload, synced_bytes)) in records.iter().enumerate() {
        let start = writer.end_bytes() as usize;
        let end = writer.append(SeqNum(index as u64 + 1), 1, &[payload], *synced_bytes).unwrap();
        let range = start..end as usize;
        let header_bytes = range.len() - payload.len();
        out.records.push(WrittenRecord { range, header_bytes, synced_bytes: *synced_bytes });
    }
    out.image = fs.read(&path_of(NUM.0)).unwrap();
    out
}

/// A log with these records in the file of an earlier one, and what the file held before.
fn written_over_another(
    earlier: &[(Vec<u8>, u64)],
    records: &[(Vec<u8>, u64)],
) -> (Written, Vec<u8>) {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let mut writer = create(&fs, NUM.0 - 1, None);
    for (index, (payload, synced_bytes)) in earlier.iter().enumerate() {
        writer.append(SeqNum(index as u64 + 1), 1, &[payload], *synced_bytes).unwrap();
    }
    let (earlier_bytes, path) = (writer.end_bytes(), path_of(NUM.0));
    fs.rename(&path_of(NUM.0 - 1), &path).unwrap();
    let before = fs.read(&path).unwrap();
    let file = fs.open_writable(&path).unwrap();
    let writer = WalWriter::start(file, &path, NUM, None, earlier_bytes).unwrap();
    (write(&fs, writer, records), before)
}

/// Five records of different lengths. The last states `synced_bytes`.
fn five_records(synced_bytes: u64) -> Written {
    let payload = |count: usize| (0..count).map(|i| i as u8).collect::<Vec<u8>>();
    let sizes = [1, 40, 7, 100, 13];
    written(&sizes.map(|count| (payload(count), if count == 13 { synced_bytes } else { 0 })))
}

fn open(image: &[u8], synced_bytes: u64, first_seq: Option<SeqNum>) -> Result<WalReader> {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let path = path_of(NUM.0);
    fs.create(&path).unwrap().write_all_at(image, 0).unwrap();
    WalReader::open(fs.open(&path).unwrap(), &path, NUM, synced_bytes, first_seq)
}

/// Reads an image to its end. Returns the ranges of its records, and how the log ended.
fn read(image: &[u8], synced_bytes: u64) -> Result<(Vec<Range<usize>>, WalEnd)> {
    let mut reader = open(image, synced_bytes, Some(SeqNum(1)))?;
    let mut found = Vec::new();
    while let Some(record) = reader.next()? {
        let start = record.offset_bytes as usize;
        let end = start + record.bytes() as usize;
        assert_eq!(record.payload, &image[end - record.payload.len()..end]);
        found.push(start..end);
    }
    Ok((found, reader.end().unwrap()))
}

/// Applies the rule to a damaged image: where the valid part ends, and whether that is corruption.
fn model(log: &Written, image: &[u8], known_bytes: u64) -> (usize, bool) {
    let intact = |range: Range<usize>| {
        image.get(range.clone()).is_some_and(|bytes| *bytes == log.image[range])
    };
    let stated = log
        .records
        .iter()
        .filter(|record| record.is_full() && intact(record.header()))
        .map(|record| record.synced_bytes);
    let synced_bytes = stated.max().unwrap_or(0).max(known_bytes);
    let good_bytes = if intact(0..FILE_HEADER_BYTES) {
        let good = log
            .records
            .iter()
            .map(|record| record.range.clone())
            .take_while(|range| intact(range.clone()));
        good.last().map_or(FILE_HEADER_BYTES, |range| range.end)
    } else {
        0
    };
    (good_bytes, (good_bytes as u64) < synced_bytes)
}

/// Reads a damaged image and compares the result with the model.
fn check(log: &Written, image: &[u8], known_bytes: u64, case: &str) {
    let (good_bytes, corrupt) = model(log, image, known_bytes);
    match read(image, known_bytes) {
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
            assert!(corrupt, "{case}: {error}, but the log should end at {good_bytes}");
            assert_eq!(error.offset_bytes(), Some(good_bytes as u64), "{case}: {error}");
            assert_eq!(error.file(), Some(path_of(NUM.0).as_path()));
        }
        Ok((found, end)) => {
            assert!(!corrupt, "{case}: {end:?}, but corruption at {good_bytes} should be found");
            assert_eq!(end.good_bytes, good_bytes as u64, "{case}: {end:?}");
            // Zeros at the end are space that was reserved and not used. So is what a zero or the
            // header of an earlier log precedes, unless a record follows.
            let rest = &image[good_bytes..];
            let is_followed = log.records.iter().any(|record| {
                let header = record.header();
                header.start > good_bytes
                    && record.is_full()
                    && image.get(header.clone()) == Some(&log.image[header])
            });
            let header = image.first_chunk().and_then(|bytes| FileHeader::decode(bytes).ok());
            let is_earlier = header.is_some_and(|header| header.file_num < NUM);
            let discarded = match rest.first() {
                Some(0) if !is_followed => 0,
                _ if is_earlier && !is_followed => 0,
                _ => rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1),
            };
            let unused = rest.len() - discarded;
            let ends = (end.discarded_bytes, end.unused_bytes);
            assert_eq!(ends, (discarded as u64, unused as u64), "{case}: {end:?}");
            let is_clean = discarded == 0 && !image.is_empty();
            assert_eq!(end.reason == WalEndReason::Clean, is_clean, "{case}: {end:?}");
            let expected = log
                .records
                .iter()
                .map(|record| record.range.clone())
                .filter(|range| range.end <= good_bytes);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{case}");
        }
    }
}

/// Every synced offset that a record of `five_records` may state.
fn sync_points() -> Vec<u64> {
    let log = five_records(0);
    std::iter::once(0).chain(log.records.iter().map(|record| record.range.start as u64)).collect()
}

#[test]
fn every_flipped_byte_is_handled_by_the_rule() {
    for synced_bytes in sync_points() {
        let log = five_records(synced_bytes);
        check(&log, &log.image, 0, "untouched");
        for offset in 0..log.image.len() {
            for xor in [0x01, 0x80, 0xff] {
                let mut image = log.image.clone();
                image[offset] ^= xor;
                check(
                    &log,
                    &image,
                    0,
                    &format!("synced {synced_bytes}, byte {offset} xor {xor:#x}"),
                );
            }
        }
    }
}

#[test]
fn every_truncation_is_handled_by_the_rule() {
    for synced_bytes in sync_points() {
        let log = five_records(synced_bytes);
        for known_bytes in [0, synced_bytes, log.image.len() as u64] {
            for len in 0..=log.image.len() {
                let case = format!("synced {synced_bytes}, known {known_bytes}, cut to {len}");
                check(&log, &log.image[..len], known_bytes, &case);
            }
        }
    }
}

#[test]
fn an_invalid_tail_ends_the_log() {
    let log = five_records(sync_points()[3]);
    let mut tails: Vec<Vec<u8>> =
        vec![vec![0; 1], vec![0; 100_000], vec![0xff; 77], vec![MARKER[0]; 300_000]];
    tails.push(vec![SHORT_MARKER; 300_000]);
    // Records of this log, valid at their original offsets only.
    tails.push(log.image[FILE_HEADER_BYTES..].to_vec());
    for tail in tails {
        let image = [&log.image[..], &tail].concat();
        check(&log, &image, 0, &format!("{} bytes of {:#x}", tail.len(), tail[0]));
        check(
            &log,
            &image,
            log.image.len() as u64 + 1,
            "known to be synced beyond the last record",
        );
    }
}

/// Behind a short record with a damaged payload, the others are passed over: what a value looks
/// like does not matter.
#[test]
fn a_value_that_looks_like_a_header_states_nothing() {
    let before = written(&[(vec![7; 30], 0), (vec![7; 30], 0)]);
    let [_, torn] = &before.records[..] else { panic!("two records") };
    let value_bytes = (before.image.len() + torn.header_bytes) as u64;
    let forged = RecordHeader {
        payload_checksum: 0,
        payload_bytes: 10,
        first_seq: SeqNum(9),
        op_count: 1,
        synced_bytes: value_bytes,
    };
    let forged = forged.encode(NUM, value_bytes).to_vec();
    let log = written(&[(vec![7; 30], 0), (vec![7; 30], 0), (forged, 0)]);
    let mut image = log.image.clone();
    image[torn.range.end - 1] ^= 1;
    let (found, end) = read(&image, 0).unwrap();
    assert_eq!((found.len(), end.good_bytes), (1, torn.range.start as u64));
}

#[test]
fn random_damage_is_handled_by_the_rule() {
    let seed = test_seed();
    eprintln!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    for round in 0..3_000 {
        let log = random_log(&mut rng);
        let mut image = log.image.clone();
        for _ in 0..rng.below(4) {
            damage(&mut image, &mut rng);
        }
        let known_bytes = if rng.one_in(3) { rng.below(log.image.len() as u64 + 10) } else { 0 };
        check(&log, &image, known_bytes, &format!("seed {seed}, round {round}"));
    }
}

/// Whatever a power loss leaves of a log in the file of an earlier one, nothing of that is read.
#[test]
fn records_of_an_earlier_log_are_none_of_this_one() {
    const SECTOR_BYTES: usize = 512;
    let seed = test_seed();
    eprintln!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    for round in 0..2_000 {
        let (earlier, records) = (random_records(&mut rng), random_records(&mut rng));
        let (log, before) = written_over_another(&earlier, &records);
        let case = format!("seed {seed}, round {round}");
        // The process has ended.
        check(&log, &log.image, 0, &case);
        let end = log.records.last().map_or(FILE_HEADER_BYTES, |record| record.range.end);
        let (_, found) = read(&log.image, end as u64).unwrap();
        assert_eq!((found.good_bytes, found.reason), (end as u64, WalEndReason::Clean), "{case}");
        // The machine has ended: some sectors are as they were before.
        let mut image = log.image.clone();
        for (now, before) in image.chunks_mut(SECTOR_BYTES).zip(before.chunks(SECTOR_BYTES)) {
            if now.len() == before.len() && rng.one_in(4) {
                now.copy_from_slice(before);
            }
        }
        check(&log, &image, 0, &case);
        // It has ended before anything was written.
        check(&log, &before, 0, &case);
        check(&log, &before, 1, &case);
    }
}

/// A log whose payloads resemble records and sometimes exceed the reader's window.
fn random_log(rng: &mut Rng) -> Written {
    written(&random_records(rng))
}

fn random_records(rng: &mut Rng) -> Vec<(Vec<u8>, u64)> {
    let mut records = Vec::new();
    let mut end_bytes = FILE_HEADER_BYTES as u64;
    let mut synced_bytes = 0;
    for _ in 0..rng.below(100) {
        if rng.one_in(10) {
            synced_bytes = end_bytes;
        }
        let count = if rng.one_in(400) { 300_000 } else { 1 + rng.below(120) as usize };
        let payload = match rng.below(3) {
            0 => rng.bytes(count),
            1 => vec![[MARKER[0], SHORT_MARKER][rng.below(2) as usize]; count],
            _ => {
                let decoy = RecordHeader {
                    payload_checksum: 0,
                    payload_bytes: 10,
                    first_seq: SeqNum(1),
                    op_count: 1,
                    synced_bytes: end_bytes,
                };
                // Encoded for this file, but for an offset behind all of it.
                decoy.encode(NUM, 1 << 40).repeat(count.div_ceil(RECORD_HEADER_BYTES))
            }
        };
        // Without headers: synced offsets need not be exact.
        end_bytes += payload.len() as u64;
        records.push((payload, synced_bytes));
    }
    records
}

fn damage(image: &mut Vec<u8>, rng: &mut Rng) {
    let len = image.len() as u64;
    if len == 0 {
        return;
    }
    let start = rng.below(len) as usize;
    let end = (start + 1 + rng.below(200) as usize).min(image.len());
    match rng.below(6) {
        0 => image[start] ^= 1 << rng.below(8),
        1 => image[start..end].fill(0),
        2 => {
            let bytes = rng.bytes(end - start);
            image[start..end].copy_from_slice(&bytes);
        }
        3 => image.truncate(start),
        4 => image.extend(std::iter::repeat_n(0, end - start)),
        _ => {
            let to = (start + 1).min(image.len() - (end - start));
            image.copy_within(start..end, to);
        }
    }
}

#[test]
fn a_full_record_is_the_first_of_each_page_and_after_each_sync() {
    const PAGE_BYTES: usize = 4096;
    let seed = test_seed();
    eprintln!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    let log = random_log(&mut rng);
    let mut before: Option<&WrittenRecord> = None;
    for record in &log.records {
        let follows = before.is_some_and(|before| {
            let pages = [before, record].map(|record| record.range.start / PAGE_BYTES);
            pages[0] == pages[1] && before.synced_bytes == record.synced_bytes
        });
        let is_long = record.range.len() > 100_000;
        assert_eq!(record.is_full(), !follows || is_long, "seed {seed}, {:?}", record.range);
        before = Some(record);
    }
}

#[test]
fn sequence_numbers_must_continue() {
    let log = five_records(0);
    assert!(read(&log.image, 0).is_ok());
    let mut reader = open(&log.image, 0, None).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().first_seq, SeqNum(1));
    assert_eq!(reader.next_seq, Some(SeqNum(2)));
    let mut reader = open(&log.image, 0, Some(SeqNum(2))).unwrap();
    for _ in 0..2 {
        let error = reader.next().unwrap_err();
        assert_eq!(
            (error.kind(), error.offset_bytes()),
            (ErrorKind::Corruption, Some(FILE_HEADER_BYTES as u64))
        );
    }
    // A gap within the file: the second record skips a sequence number.
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let mut writer = create(&fs, NUM.0, None);
    let end = writer.append(SeqNum(1), 2, &[b"two"], 0).unwrap();
    writer.append(SeqNum(4), 1, &[b"one"], 0).unwrap();
    let error = read(&fs.read(&path_of(NUM.0)).unwrap(), 0).unwrap_err();
    assert_eq!((error.kind(), error.offset_bytes()), (ErrorKind::Corruption, Some(end)));
}

#[test]
fn a_file_of_a_later_number_or_version_is_rejected() {
    let log = five_records(0);
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let path = path_of(8);
    fs.create(&path).unwrap().write_all_at(&log.image, 0).unwrap();
    let error = WalReader::open(fs.open(&path).unwrap(), &path, FileNum(8), 0, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);

    let mut image = log.image.clone();
    image[8] = 3;
    let checksum = crc32c_masked(&[&image[..36]]);
    image[36..40].copy_from_slice(&checksum.to_le_bytes());
    let error = open(&image, 0, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains('3') && error.message().contains('2'), "{error}");
}

/// The worked example of version 1's specification.
#[test]
fn a_log_of_version_1_is_read() {
    const NUM: u64 = 7;
    let image = [
        &b"KVANTWAL\x01\0\0\0\x07\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\0\x10\0\0"[..],
        b"\0\0\0\0\x25\x94\x8e\xbe\x9eKVR\xac\x7d\x64\xed\x25\x82\x36\xa8\x10\0\0\0\x64\0\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0\0\0\0\0\x01\x05apple\x03red\0\x03fig",
        b"\x9eKVR\x64\xf3\xe2\x38\x0c\x13\x9d\xe2\x14\0\0\0\x66\0\0\0\0\0\0\0",
        b"\x01\0\0\0\x5c\0\0\0\0\0\0\0\x02\x04kiwi\x0d\0\x68\xe5\xcf\x8b\x01\0\0green",
        b"\x9eKVR\x4e\xa7\x7b\x26\xd8\xea\x82\xa2\0\0\0\0\x67\0\0\0\0\0\0\0",
        b"\0\0\0\0\x94\0\0\0\0\0\0\0",
    ]
    .concat();
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let path = path_of(NUM);
    fs.create(&path).unwrap().write_all_at(&image, 0).unwrap();
    let file = fs.open(&path).unwrap();
    let mut reader = WalReader::open(file, &path, FileNum(NUM), 0, Some(SeqNum(100))).unwrap();
    let mut op_counts = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        op_counts.push(record.op_count);
    }
    assert_eq!(op_counts, [2, 1, 0]);
    assert_eq!(reader.end().unwrap().reason, WalEndReason::Clean);
}

#[test]
fn an_io_error_is_not_the_end_of_the_log() {
    use kvant_env::testing::{FaultOp, FaultyFs};
    let log = five_records(0);
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let path = path_of(NUM.0);
    fs.create(&path).unwrap().write_all_at(&log.image, 0).unwrap();
    fs.fail_next(FaultOp::Read, ".wal", std::io::ErrorKind::Other, 1);
    let error = WalReader::open(fs.open(&path).unwrap(), &path, NUM, 0, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
}
