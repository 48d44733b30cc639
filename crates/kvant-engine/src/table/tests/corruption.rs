//! Damaged tables: every damage is detected or harmless.

use super::*;
use kvant_env::rng::Rng;

/// Everything that a reader obtains from a table.
#[derive(Debug, PartialEq)]
struct Contents {
    properties: TableProperties,
    entries: Vec<Entry>,
    gets: Vec<Option<(u64, ValueKind, Vec<u8>)>>,
}

fn read_all(contents: &[u8], keys: &[&[u8]], metadata_share_bytes: u64) -> Result<Contents> {
    let table = open(file_of(contents), context(64 << 20, metadata_share_bytes))?;
    let gets = keys.iter().map(|key| get(&table, key, SeqNum::MAX.0)).collect::<Result<_>>()?;
    let mut iter = table.iter(false, Consumer::Compaction);
    iter.seek_to_first()?;
    let entries = rest_of(&mut iter)?;
    Ok(Contents { properties: table.properties().clone(), entries, gets })
}

fn entries() -> Vec<Entry> {
    let mut entries = vec![];
    for n in 0..60u64 {
        entries.push(put(format!("key{n:03}"), 100 + n, format!("new value {n} ").repeat(3)));
        if n % 3 == 0 {
            entries.push((format!("key{n:03}").into_bytes(), n, ValueKind::Delete, vec![]));
        }
    }
    entries
}

#[test]
fn every_flipped_byte_is_detected() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let options = TableOptions { block_bytes: 512, compression, filter_bits_per_key: 10.0 };
        let (file, _) = build_with(options, &entries());
        let undamaged = file_contents(&*file);
        let keys: Vec<Vec<u8>> = (0..60).map(|n| format!("key{n:03}").into_bytes()).collect();
        let mut keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        keys.extend([&b""[..], b"absent", b"key0301", b"zzz"]);
        for share in [64 << 20, 0] {
            let expected = read_all(&undamaged, &keys, share).expect("undamaged");
            assert_eq!(expected.entries, entries());
            for at in 0..undamaged.len() {
                for flip in [1u8, 0xff] {
                    let mut damaged = undamaged.clone();
                    damaged[at] ^= flip;
                    let error = match read_all(&damaged, &keys, share) {
                        Err(error) => error,
                        Ok(found) => {
                            panic!(
                                "byte {at} ^ {flip:#x} not noticed, as it was: {}",
                                found == expected
                            )
                        }
                    };
                    assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}: {error}");
                    assert_eq!(error.file(), Some(Path::new(PATH)), "byte {at}");
                    assert!(
                        error.offset_bytes().is_some_and(|offset| offset <= at as u64),
                        "byte {at}: {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_truncation_is_detected() {
    let (file, finished) = build_with(plain(), &entries());
    let undamaged = file_contents(&*file);
    for len in 0..undamaged.len() {
        let cut = &undamaged[..len];
        let kind = open(file_of(cut), roomy()).map(|_| ()).expect_err("cut").kind();
        assert_eq!(kind, ErrorKind::Corruption);
        let expecting_all =
            Table::open(file_of(cut), Path::new(PATH), FileNum(7), finished.file_bytes, roomy());
        assert_eq!(expecting_all.map(|_| ()).expect_err("cut").kind(), ErrorKind::Corruption);
    }
}

#[test]
fn exchanged_blocks_are_detected() {
    // The two blocks have equal lengths, and each is valid at its own offset.
    let entries = [put("a", 1, vec![1; 100]), put("b", 1, vec![2; 100])];
    let (file, finished) = build_with(TableOptions { block_bytes: 64, ..plain() }, &entries);
    assert_eq!(finished.properties.data_block_count, 2);
    let mut contents = file_contents(&*file);
    let block_bytes = finished.properties.raw_data_bytes as usize / 2 + 5;
    contents[..block_bytes * 2].rotate_left(block_bytes);
    let table = open(file_of(&contents), roomy()).expect("index and footer are undamaged");
    let error = get(&table, b"a", 1).expect_err("misplaced");
    assert_eq!((error.kind(), error.offset_bytes()), (ErrorKind::Corruption, Some(0)));
}

#[test]
fn a_newer_version_is_rejected_with_both_versions() {
    let (file, _) = build_with(plain(), &entries());
    let mut contents = file_contents(&*file);
    let footer = contents.len() - 56;
    contents[footer + 40] = 9;
    let crc = kvant_base::checksum::crc32c_masked(&[&contents[footer..footer + 44]]);
    contents[footer + 44..footer + 48].copy_from_slice(&crc.to_le_bytes());
    let error = open(file_of(&contents), roomy()).map(|_| ()).expect_err("newer");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains('9') && error.message().contains("up to 2"), "{error}");
}

#[test]
fn random_bytes_in_a_block_that_passes_its_checksum_never_panic() {
    let seed = model::seed();
    let mut rng = Rng::new(seed);
    let (file, _) = build_with(TableOptions { block_bytes: 512, ..plain() }, &entries());
    let undamaged = file_contents(&*file);
    let table = open(file, roomy()).expect("open");
    let span = table.pinned_index().expect("pinned").span(0);
    let payload_bytes = span.stored_bytes as usize - 5;
    for _ in 0..5_000 {
        let mut damaged = undamaged.clone();
        for _ in 0..=rng.below(3) {
            damaged[rng.below(payload_bytes as u64) as usize] = rng.next_u64() as u8;
        }
        let trailer =
            crate::table::stored::trailer(&damaged[..payload_bytes], Compression::None, 0);
        damaged[payload_bytes..payload_bytes + 5].copy_from_slice(&trailer);
        let table = open(file_of(&damaged), roomy()).expect("open");
        let mut outcomes = Vec::new();
        for n in 0..8 {
            outcomes.push(get(&table, format!("key{n:03}").as_bytes(), SeqNum::MAX.0).map(|_| ()));
        }
        let mut iter = table.iter(true, Consumer::Iterators);
        outcomes.push(iter.seek_to_first().and_then(|()| {
            while iter.valid() {
                iter.next()?;
            }
            Ok(())
        }));
        outcomes.push(iter.seek(InternalKeyRef::seek(b"key005", SeqNum(50))));
        outcomes.push(table.verify().map(|_| ()));
        outcomes.push(copy(&table));
        let mut builder = new_builder(plain());
        outcomes.push(table.salvage(&mut |key, value| builder.add(key, value, None)).map(|_| ()));
        for error in outcomes.into_iter().filter_map(|outcome| outcome.err()) {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        }
    }
}

/// Writes the entries of a table to another one, as a compaction does.
fn copy(table: &Arc<Table>) -> Result<()> {
    let mut builder = new_builder(plain());
    let mut iter = table.iter(false, Consumer::Compaction).checked();
    iter.seek_to_first()?;
    while iter.valid() {
        builder.add(iter.key(), iter.value(), iter.own_block())?;
        iter.next()?;
    }
    Ok(())
}
