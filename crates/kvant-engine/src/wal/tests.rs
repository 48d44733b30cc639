//! Tests of the writer and of the documented bytes. The recovery rule is tested beside the reader
//! and `recovery`.

use super::*;
use crate::batch::WriteBatch;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use kvant_base::ErrorKind;
use kvant_env::Fs;
use kvant_env::testing::{FaultOp, FaultyFs};
use std::io;
use std::path::{Path, PathBuf};

pub(super) const DIR: &str = "/db";

pub(super) fn path_of(num: u64) -> PathBuf {
    file_path(Path::new(DIR), FileKind::Wal, FileNum(num))
}

/// The seed of a random test: `KVANT_TEST_SEED`, or a new one. The caller prints it.
pub(super) fn test_seed() -> u64 {
    let seed = std::env::var("KVANT_TEST_SEED")
        .ok()
        .map(|text| text.parse().expect("KVANT_TEST_SEED is a number"));
    seed.unwrap_or_else(kvant_env::testing::entropy_seed)
}

/// Creates log `num` in [`DIR`].
pub(super) fn create(fs: &dyn Fs, num: u64, previous: Option<PreviousWal>) -> WalWriter {
    let path = path_of(num);
    WalWriter::start(fs.create(&path).unwrap(), &path, FileNum(num), previous, 0).unwrap()
}

fn memory_fs() -> FaultyFs {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs
}

fn faulty_fs() -> FaultyFs {
    let fs = FaultyFs::new(test_seed());
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs
}

/// The payloads that a reader finds, and how the log ended.
fn read_back(fs: &dyn Fs, num: u64) -> (Vec<Vec<u8>>, WalEnd) {
    let path = path_of(num);
    let mut reader =
        WalReader::open(fs.open(&path).unwrap(), &path, FileNum(num), 0, None).unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        payloads.push(record.payload.to_vec());
    }
    (payloads, reader.end().unwrap())
}

#[test]
fn the_documented_example_is_written_and_read() {
    let document = include_str!("../../../../docs/formats/wal.md");
    let example = document.split("## Worked example").nth(1).unwrap().split("```").nth(1).unwrap();
    let documented: Vec<u8> = example
        .lines()
        .filter_map(|line| line.get(6..)?.get(..47).or_else(|| line.get(6..29)))
        .flat_map(|hex| hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()))
        .collect();
    assert_eq!(documented.len(), 199);

    let fs = memory_fs();
    let previous = PreviousWal { file_num: FileNum(6), final_bytes: 4096 };
    let mut writer = create(&fs, 7, Some(previous));
    let [mut one, mut two, mut three, mut four] = [(); 4].map(|()| WriteBatch::new());
    one.put(b"apple", b"red", None);
    two.delete(b"fig");
    three.put(b"kiwi", b"green", Some(1_700_000_000_000));
    four.delete(b"apple");
    assert_eq!(writer.append(SeqNum(100), 2, &[one.encoded(), two.encoded()], 0).unwrap(), 92);
    assert_eq!(writer.append(SeqNum(102), 1, &[three.encoded()], 92).unwrap(), 148);
    assert_eq!(writer.append(SeqNum(103), 1, &[four.encoded()], 92).unwrap(), 163);
    assert_eq!(writer.append(SeqNum(104), 0, &[], 163).unwrap(), 199);
    assert_eq!(fs.read(&path_of(7)).unwrap(), documented);
    assert_eq!(writer.as_previous(), PreviousWal { file_num: FileNum(7), final_bytes: 199 });

    let path = path_of(7);
    let mut reader =
        WalReader::open(fs.open(&path).unwrap(), &path, FileNum(7), 0, Some(SeqNum(100))).unwrap();
    assert_eq!(reader.previous(), Some(previous));
    let (mut keys, mut next_seq) = (Vec::new(), None);
    while let Some(record) = reader.next().unwrap() {
        next_seq = Some(record.next_seq());
        record
            .replay(|seq, op| {
                keys.push((seq.0, op.key.to_vec()));
                Ok(())
            })
            .unwrap();
    }
    let expected = [(100, &b"apple"[..]), (101, b"fig"), (102, b"kiwi"), (103, b"apple")];
    assert_eq!(keys, expected.map(|(seq, key)| (seq, key.to_vec())));
    assert_eq!(
        reader.end().unwrap(),
        WalEnd {
            good_bytes: 199,
            discarded_bytes: 0,
            unused_bytes: 0,
            reason: WalEndReason::Clean
        }
    );
    assert_eq!(next_seq, Some(SeqNum(104)));
}

#[test]
fn rollback_truncates_a_failed_append_and_its_sequence_numbers_are_reused() {
    let fs = faulty_fs();
    let mut writer = create(&fs, 1, None);
    let end = writer.append(SeqNum(1), 2, &[b"one"], 0).unwrap();
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        fs.fail_next(FaultOp::Write, ".wal", kind, 1);
        let error = writer.append(SeqNum(3), 1, &[&[7; 5000]], 0).unwrap_err();
        let expected =
            if kind == io::ErrorKind::StorageFull { ErrorKind::NoSpace } else { ErrorKind::Io };
        assert_eq!(error.kind(), expected);
        assert_eq!(
            writer.append(SeqNum(3), 1, &[b"too early"], 0).unwrap_err().kind(),
            ErrorKind::Fenced
        );
        assert_eq!(writer.end_bytes(), end);
        writer.rollback().unwrap();
        assert_eq!(fs.contents(&path_of(1)).unwrap().len() as u64, end);
    }
    writer.append(SeqNum(3), 1, &[b"two"], 0).unwrap();
    writer.rollback().unwrap();
    let (payloads, end) = read_back(&fs, 1);
    assert_eq!(payloads, [b"one", b"two"]);
    assert_eq!((end.good_bytes, end.reason), (writer.end_bytes(), WalEndReason::Clean));
}

#[test]
fn records_are_read_however_they_were_written_and_reserved_space_is_not_discarded() {
    const MAPPED_BYTES: u64 = 20_000;
    let fs = memory_fs();
    let mut writer = create(&fs, 1, None);
    writer.map(fs.open_writable(&path_of(1)).unwrap().map(MAPPED_BYTES));
    let mut payloads = Vec::new();
    // The long one is written by a call; so are those behind the mapping.
    for bytes in [100, 9_000, 2_000, 100, 8_000, 5_000, 7] {
        payloads.push(vec![bytes as u8; bytes]);
        let file_bytes = fs.contents(&path_of(1)).unwrap().len() as u64;
        assert_eq!(file_bytes, writer.end_bytes().max(MAPPED_BYTES));
        writer
            .append(SeqNum(payloads.len() as u64), 1, &[&payloads[payloads.len() - 1]], 0)
            .unwrap();
        let (found, end) = read_back(&fs, 1);
        assert_eq!(found, payloads);
        let unused_bytes = MAPPED_BYTES.saturating_sub(writer.end_bytes());
        let (good_bytes, reason) = (writer.end_bytes(), WalEndReason::Clean);
        assert_eq!(end, WalEnd { good_bytes, discarded_bytes: 0, unused_bytes, reason });
    }
    assert!(writer.end_bytes() > MAPPED_BYTES);
}

#[test]
fn unused_space_is_given_back_and_after_a_failed_write_nothing_is_mapped() {
    let fs = faulty_fs();
    for is_write_failing in [false, true] {
        let mut writer = create(&fs, 1, None);
        writer.map(fs.open_writable(&path_of(1)).unwrap().map(10_000));
        writer.append(SeqNum(1), 1, &[b"one"], 0).unwrap();
        if is_write_failing {
            fs.fail_next(FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
            writer.append(SeqNum(2), 1, &[b"lost"], 0).unwrap_err();
            writer.rollback().unwrap();
        } else {
            writer.give_back().unwrap();
        }
        assert_eq!(fs.contents(&path_of(1)).unwrap().len() as u64, writer.end_bytes());
        writer.append(SeqNum(2), 1, &[b"two"], 0).unwrap();
        assert_eq!(fs.contents(&path_of(1)).unwrap().len() as u64, writer.end_bytes());
        assert_eq!(read_back(&fs, 1).0, [b"one", b"two"]);
    }
}

#[test]
fn appends_are_rejected_until_a_failed_one_is_truncated() {
    let fs = faulty_fs();
    let mut writer = create(&fs, 1, None);
    fs.fail_next(FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
    fs.fail_next(FaultOp::SetLen, ".wal", io::ErrorKind::Other, 1);
    writer.append(SeqNum(1), 1, &[b"lost"], 0).unwrap_err();
    assert_eq!(writer.rollback().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(writer.append(SeqNum(1), 1, &[b"no"], 0).unwrap_err().kind(), ErrorKind::Fenced);
    writer.rollback().unwrap();
    writer.append(SeqNum(1), 1, &[b"yes"], 0).unwrap();
    assert_eq!(read_back(&fs, 1).0, [b"yes"]);
}

#[test]
fn a_group_of_any_size_is_one_write() {
    let fs = faulty_fs();
    // One write for the header and one per group; the fifth fails.
    fs.fail_after(4, FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
    let mut writer = create(&fs, 1, None);
    let large = vec![0x9e; 3 << 20];
    let groups = [vec![&b"a"[..], b"b", b"c"], vec![&large, b"d", &large], vec![b"e"]];
    for (index, parts) in groups.iter().enumerate() {
        writer.append(SeqNum(index as u64 + 1), 1, parts, 0).unwrap();
    }
    assert_eq!(fs.fault_count(), 0);
    writer.append(SeqNum(4), 1, &[b"f"], 0).unwrap_err();
    // A failed write may have left any part of the record, or all of it.
    writer.rollback().unwrap();
    let (payloads, _) = read_back(&fs, 1);
    assert!(
        payloads == groups.map(|parts| parts.concat()),
        "{} records of {:?} bytes",
        payloads.len(),
        payloads.iter().map(Vec::len).collect::<Vec<_>>()
    );
}
