use super::reader::{ManifestReader, recover};
use super::writer::{ManifestWriter, append_record, remove_older};
use super::*;
use crate::format::{FileKind, InternalKeyRef, SeqNum, ValueKind, file_path};
use crate::version::test_support::{table, test_rng};
use crate::version::{ExpirySummary, FileMeta, RecoveredManifest, VersionEdit};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Fs;
use kvant_env::testing::FaultyFs;
use std::path::Path;

mod failures;

const DIR: &str = "/db";

fn new_fs() -> FaultyFs {
    let fs = FaultyFs::in_memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs
}

fn put_file(fs: &dyn Fs, kind: FileKind, num: u64, contents: &[u8]) {
    let file = fs.create(&file_path(Path::new(DIR), kind, FileNum(num))).unwrap();
    file.write_all_at(contents, 0).unwrap();
}

fn snapshot(added: Vec<(usize, FileMeta)>) -> VersionEdit {
    VersionEdit {
        next_file_num: Some(FileNum(100)),
        last_seq: Some(SeqNum(50_000)),
        oldest_wal: Some(FileNum(3)),
        added,
        ..VersionEdit::default()
    }
}

fn adding(level: usize, meta: FileMeta) -> VersionEdit {
    VersionEdit { added: vec![(level, meta)], ..VersionEdit::default() }
}

/// A manifest of these edits, and where each of its records starts.
fn encoded(num: u64, edits: &[VersionEdit]) -> (Vec<u8>, Vec<usize>) {
    let mut contents = encode_file_header(FileNum(num)).to_vec();
    let mut offsets = Vec::new();
    for edit in edits {
        offsets.push(contents.len());
        append_record(&mut contents, FileNum(num), 0, edit).unwrap();
    }
    (contents, offsets)
}

fn recover_from(contents: &[u8]) -> Result<RecoveredManifest> {
    let fs = new_fs();
    put_file(&fs, FileKind::Manifest, 7, contents);
    recover(&fs, Path::new(DIR)).map(|recovered| recovered.expect("there is a manifest"))
}

fn table_nums(recovered: &RecoveredManifest, level: usize) -> Vec<u64> {
    recovered.state.levels()[level].iter().map(|meta| meta.num.0).collect()
}

fn assert_corrupt(error: &Error, offset: usize) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(error.file(), Some(Path::new("/db/MANIFEST-000007")), "{error}");
    assert_eq!(error.offset_bytes(), Some(offset as u64), "{error}");
}

fn example_edits() -> [VersionEdit; 2] {
    let fruit = FileMeta {
        num: FileNum(5),
        file_bytes: 1234,
        smallest: InternalKeyRef::new(b"apple", SeqNum(1), ValueKind::Put).to_owned(),
        largest: InternalKeyRef::new(b"pear", SeqNum(3), ValueKind::Delete).to_owned(),
        seq_min: SeqNum(1),
        seq_max: SeqNum(3),
        entry_count: 3,
        tombstone_count: 1,
        raw_bytes: 200,
        expiry: None,
    };
    let kiwi = InternalKeyRef::new(b"kiwi", SeqNum(4), ValueKind::PutExpiring).to_owned();
    let expiring = FileMeta {
        num: FileNum(9),
        file_bytes: 300,
        smallest: kiwi.clone(),
        largest: kiwi,
        seq_min: SeqNum(4),
        seq_max: SeqNum(4),
        entry_count: 1,
        tombstone_count: 0,
        raw_bytes: 17,
        expiry: Some(ExpirySummary {
            expiring_count: 1,
            min_ms: 1_700_000_000_000,
            max_ms: 1_700_000_000_000,
        }),
    };
    [
        VersionEdit {
            next_file_num: Some(FileNum(8)),
            last_seq: Some(SeqNum(3)),
            oldest_wal: Some(FileNum(6)),
            added: vec![(6, fruit)],
            ..VersionEdit::default()
        },
        VersionEdit {
            next_file_num: Some(FileNum(10)),
            last_seq: Some(SeqNum(4)),
            oldest_wal: Some(FileNum(8)),
            logs: vec![(FileNum(8), 300)],
            added: vec![(0, expiring)],
            ..VersionEdit::default()
        },
    ]
}

/// The bytes of the worked example, given as lines of offset and hexadecimal bytes.
fn documented_bytes() -> Vec<u8> {
    let document = include_str!("../../../../../docs/formats/manifest.md");
    let (_, block) = document.split_once("```hex\n").expect("the document has an example");
    let (block, _) = block.split_once("```").expect("the example ends");
    let mut bytes = Vec::new();
    for line in block.lines() {
        let mut words = line.split_whitespace();
        let offset = usize::from_str_radix(words.next().expect("an offset"), 16).unwrap();
        assert_eq!(offset, bytes.len(), "{line}");
        bytes.extend(words.map(|word| u8::from_str_radix(word, 16).unwrap()));
    }
    bytes
}

#[test]
fn the_documented_example_is_written_and_read() {
    let (contents, offsets) = encoded(7, &example_edits());
    let hex = contents.chunks(16).zip((0..).step_by(16)).map(|(row, offset)| {
        let row: String = row.iter().map(|byte| format!(" {byte:02x}")).collect();
        format!("{offset:04x} {row}\n")
    });
    assert_eq!(contents, documented_bytes(), "written now:\n{}", hex.collect::<String>());

    let mut reader = ManifestReader::new(Path::new("x"), FileNum(7), &contents).unwrap();
    for (edit, offset) in example_edits().into_iter().zip(offsets) {
        assert_eq!(reader.next().unwrap(), Some((offset as u64, edit)));
    }
    assert_eq!(reader.next().unwrap(), None);
    let recovered = recover_from(&contents).unwrap();
    assert_eq!((table_nums(&recovered, 0), table_nums(&recovered, 6)), (vec![9], vec![5]));
    assert_eq!(recovered.state.oldest_wal, FileNum(8));
    assert_eq!(recovered.state.last_seq, SeqNum(4));
    assert_eq!(recovered.state.logs, KnownLogs::from([(FileNum(8), 300)]));
}

#[test]
fn appended_edits_are_recovered_and_older_manifests_ignored() {
    let fs = new_fs();
    let dir = Path::new(DIR);
    assert!(recover(&fs, dir).unwrap().is_none());

    let mut writer =
        ManifestWriter::create(&fs, dir, FileNum(7), &snapshot(vec![(6, table(1, "a", "m"))]))
            .unwrap();
    writer.append(&adding(0, table(2, "c", "d"))).unwrap();
    let mut merge = adding(6, table(4, "a", "m"));
    merge.removed = vec![(0, FileNum(2)), (6, FileNum(1))];
    merge.next_file_num = Some(FileNum(101));
    writer.append(&merge).unwrap();

    let recovered = recover(&fs, dir).unwrap().unwrap();
    assert_eq!((recovered.num, recovered.discarded_bytes), (FileNum(7), 0));
    assert_eq!((table_nums(&recovered, 0), table_nums(&recovered, 6)), (vec![], vec![4]));
    assert_eq!(recovered.state.next_file_num, FileNum(101));

    put_file(&fs, FileKind::Table, 250, b"an output that was never recorded");
    let next = snapshot(vec![(5, table(4, "a", "m"))]);
    ManifestWriter::create(&fs, dir, FileNum(102), &next).unwrap();
    let recovered = recover(&fs, dir).unwrap().unwrap();
    assert_eq!((recovered.num, table_nums(&recovered, 5)), (FileNum(102), vec![4]));
    assert_eq!(recovered.state.next_file_num, FileNum(251), "no number is used twice");

    assert_eq!(remove_older(&fs, dir, FileNum(102)).unwrap(), 1);
    assert_eq!(remove_older(&fs, dir, FileNum(102)).unwrap(), 0);
    let names: Vec<_> = fs.list(dir).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["000250.sst", "MANIFEST-000102"]);
}

#[test]
fn a_truncated_file_keeps_its_whole_records_and_reports_the_rest() {
    let edits = [snapshot(vec![]), adding(0, table(1, "a", "b")), adding(0, table(2, "a", "b"))];
    let (contents, offsets) = encoded(7, &edits);
    for len in 0..contents.len() {
        let recovered = recover_from(&contents[..len]);
        let whole = offsets.iter().filter(|&&offset| offset > 24 && offset <= len).count();
        if whole == 0 {
            assert_corrupt(&recovered.unwrap_err(), if len < 24 { 0 } else { 24 });
            continue;
        }
        let recovered = recovered.unwrap();
        assert_eq!(table_nums(&recovered, 0).len(), whole - 1, "cut to {len}");
        assert_eq!(recovered.discarded_bytes as usize, len - offsets[whole], "cut to {len}");
    }
}

#[test]
fn a_flipped_byte_ends_the_log_in_its_last_record_and_is_corruption_elsewhere() {
    let edits = [
        snapshot(vec![(3, table(9, "a", "b"))]),
        adding(0, table(1, "a", "b")),
        adding(0, table(2, "a", "b")),
    ];
    let (contents, offsets) = encoded(7, &edits);
    for index in 0..contents.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut flipped = contents.clone();
            flipped[index] ^= mask;
            let recovered = recover_from(&flipped);
            match offsets.iter().rposition(|&offset| offset <= index) {
                None => assert_eq!(recovered.unwrap_err().kind(), ErrorKind::Corruption),
                Some(2) => {
                    let recovered = recovered.unwrap();
                    assert_eq!(recovered.discarded_bytes as usize, contents.len() - offsets[2]);
                    assert_eq!(table_nums(&recovered, 0), [1]);
                }
                Some(record) => assert_corrupt(&recovered.unwrap_err(), offsets[record]),
            }
        }
    }
}

#[test]
fn a_record_of_another_offset_or_manifest_is_rejected() {
    let (mut contents, offsets) = encoded(7, &[snapshot(vec![]), adding(0, table(1, "a", "b"))]);
    let copy = contents[offsets[1]..].to_vec();
    contents.extend_from_slice(&copy);
    assert_eq!(recover_from(&contents).unwrap().discarded_bytes as usize, copy.len());

    let (mut other, _) = encoded(8, &[snapshot(vec![])]);
    assert_corrupt(&recover_from(&other).unwrap_err(), 12);
    other[..24].copy_from_slice(&encode_file_header(FileNum(7)));
    assert_corrupt(&recover_from(&other).unwrap_err(), 24);
}

#[test]
fn a_newer_format_is_rejected_with_both_versions() {
    let (mut contents, _) = encoded(7, &[snapshot(vec![])]);
    contents[8] = 3;
    let crc = crc32c_masked(&[&contents[..20]]);
    contents[20..24].copy_from_slice(&crc.to_le_bytes());
    let error = recover_from(&contents).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.message().contains("format 3") && error.message().contains("newer than 2"),
        "{error}"
    );
}

#[test]
fn tables_or_logs_without_a_manifest_are_corruption() {
    for kind in [FileKind::Table, FileKind::Wal] {
        let fs = new_fs();
        put_file(&fs, FileKind::Lock, 0, b"");
        put_file(&fs, FileKind::Temporary, 1, b"torn");
        assert!(recover(&fs, Path::new(DIR)).unwrap().is_none());
        put_file(&fs, kind, 5, b"data");
        assert_eq!(recover(&fs, Path::new(DIR)).unwrap_err().kind(), ErrorKind::Corruption);
    }
}

#[test]
fn edits_that_contradict_the_state_are_corruption_at_their_record() {
    let base = || snapshot(vec![(1, table(9, "d", "f")), (6, table(8, "a", "z"))]);
    let removing =
        |level, num| VersionEdit { removed: vec![(level, FileNum(num))], ..VersionEdit::default() };
    let beyond = |meta: FileMeta| adding(2, meta);
    let cases = [
        ("where it is not", removing(6, 9)),
        ("where it is not", removing(1, 77)),
        ("exists", adding(0, table(9, "a", "b"))),
        ("overlap", adding(1, table(10, "f", "g"))),
        ("overlap", adding(6, table(10, "c", "c"))),
        ("beyond", beyond(table(100, "a", "b"))),
        ("beyond", beyond(FileMeta { seq_max: SeqNum(50_001), ..table(10, "a", "b") })),
        ("lowers", VersionEdit { next_file_num: Some(FileNum(99)), ..VersionEdit::default() }),
        ("lowers", VersionEdit { last_seq: Some(SeqNum(49_999)), ..VersionEdit::default() }),
        ("lowers", VersionEdit { oldest_wal: Some(FileNum(2)), ..VersionEdit::default() }),
        (
            "lowers the synced bytes of log 4",
            VersionEdit {
                logs: vec![(FileNum(4), 40), (FileNum(4), 39)],
                ..VersionEdit::default()
            },
        ),
        (
            "impossible counters",
            VersionEdit { oldest_wal: Some(FileNum(100)), ..VersionEdit::default() },
        ),
    ];
    for (expected, edit) in cases {
        let (contents, offsets) = encoded(7, &[base(), edit, adding(0, table(50, "a", "b"))]);
        let error = recover_from(&contents).unwrap_err();
        assert_corrupt(&error, offsets[1]);
        assert!(error.message().contains(expected), "{error}");
    }
    let (contents, _) = encoded(7, &[adding(0, table(1, "a", "b"))]);
    assert!(recover_from(&contents).unwrap_err().message().contains("lacks a counter"));
}

/// A manifest with a snapshot record of this payload and valid checksums.
fn with_payload(payload: &[u8]) -> Vec<u8> {
    let mut contents = encode_file_header(FileNum(7)).to_vec();
    let header =
        encode_record_header(FileNum(7), 24, payload.len() as u32, crc32c_masked(&[payload]));
    contents.extend_from_slice(&header);
    contents.extend_from_slice(payload);
    contents
}

#[test]
fn payloads_outside_the_grammar_are_corruption() {
    let mut good = Vec::new();
    snapshot(vec![(6, table(1, "a", "m"))]).encode_to(&mut good);
    assert!(recover_from(&with_payload(&good)).is_ok());
    assert_corrupt(&recover_from(&with_payload(&[])).unwrap_err(), 24);
    let suffixes: [(&str, &[u8]); 7] = [
        ("unknown tag 7", &[7, 0]),
        ("cut short", &[6, 3]),
        ("names log 100", &[6, 100, 40]),
        ("twice", &[1, 100]),
        ("names level 7", &[4, 7, 1]),
        ("cut short", &[4, 6]),
        ("cut short", &[5, 0, 9]),
    ];
    for (expected, suffix) in suffixes {
        let error = recover_from(&with_payload(&[&good, suffix].concat())).unwrap_err();
        assert_corrupt(&error, 24);
        assert!(error.message().contains(expected), "{error}");
    }
    // The counters are the first eight bytes and a valid edit. Every other cut divides a field.
    for len in (0..good.len()).filter(|&len| len != 8) {
        assert_eq!(
            recover_from(&with_payload(&good[..len])).unwrap_err().kind(),
            ErrorKind::Corruption,
            "cut to {len}"
        );
    }
}

#[test]
fn random_payloads_never_panic_and_good_ones_read_back() {
    let mut rng = test_rng();
    for _ in 0..2000 {
        let bytes_max = rng.below(80) as usize;
        let mut payload = rng.bytes(bytes_max);
        if rng.one_in(2) {
            payload.clear();
            let mut meta = table(1 + rng.below(90), "k", "l");
            meta.file_bytes = 1 + (rng.next_u64() >> rng.below(63));
            meta.raw_bytes = rng.next_u64() >> rng.below(64);
            meta.expiry = rng.one_in(2).then(|| ExpirySummary {
                expiring_count: 3,
                min_ms: 5,
                max_ms: rng.next_u64() | 8,
            });
            let edit = VersionEdit {
                removed: vec![(2, FileNum(rng.next_u64()))],
                logs: vec![(FileNum(rng.next_u64()), rng.next_u64())],
                ..snapshot(vec![(4, meta)])
            };
            edit.encode_to(&mut payload);
            assert_eq!(VersionEdit::decode(&payload), Ok(edit));
            let index = rng.below(payload.len() as u64) as usize;
            payload[index] = rng.next_u64() as u8;
        }
        if let Ok(edit) = VersionEdit::decode(&payload) {
            let mut again = Vec::new();
            edit.encode_to(&mut again);
            assert_eq!(VersionEdit::decode(&again), Ok(edit));
        }
    }
}

#[test]
fn a_manifest_is_overgrown_at_a_multiple_of_its_snapshot() {
    let fs = new_fs();
    let mut writer =
        ManifestWriter::create(&fs, Path::new(DIR), FileNum(7), &snapshot(vec![])).unwrap();
    let mut edit = adding(0, table(1, "a", "b"));
    edit.added[0].1.smallest.user_key = vec![b'a'; 16_000];
    edit.added[0].1.largest.user_key = vec![b'b'; 16_000];
    let mut appended_count = 0;
    while !writer.is_overgrown() {
        writer.append(&edit).unwrap();
        appended_count += 1;
        assert!(appended_count < 100);
    }
    assert!(writer.bytes() > 1 << 20 && appended_count > 30, "{appended_count} edits");
}
