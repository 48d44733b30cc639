use super::*;

fn seal(raw: &[u8], compression: Compression, offset_bytes: u64) -> Vec<u8> {
    let mut compressor = BlockCompressor::new(compression);
    let (payload, compression) = compressor.compress(raw).expect("compress");
    let mut stored = payload.to_vec();
    stored.extend_from_slice(&trailer(payload, compression, offset_bytes));
    stored
}

fn open_owned(stored: Vec<u8>, offset_bytes: u64) -> Parsed<Vec<u8>> {
    super::open_owned(stored, offset_bytes, &Spares::default()).map(|raw| raw.to_vec())
}

/// A block of any payload with a valid checksum.
fn forged(payload: &[u8], compression: Compression) -> Vec<u8> {
    [payload, &trailer(payload, compression, 0)].concat()
}

#[test]
fn blocks_are_read_as_they_were_written() {
    let mut rng = kvant_env::rng::Rng::new(3);
    let mixed = [rng.bytes(1000), vec![0; 3000]].concat();
    for raw in [&b""[..], b"x", &[7; 100_000], &mixed, &rng.bytes(5000)] {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let stored = seal(raw, compression, 99);
            assert!(stored.len() <= raw.len() + BLOCK_TRAILER_BYTES);
            assert_eq!(open_owned(stored, 99), Ok(raw.to_vec()));
        }
    }
}

#[test]
fn a_block_is_valid_only_at_its_offset() {
    let stored = seal(b"payload", Compression::None, 4096);
    assert!(open_owned(stored.clone(), 4096).is_ok());
    assert!(open_owned(stored, 8192).is_err());
}

#[test]
fn impossible_lengths_are_rejected_before_allocation() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let undamaged = seal(&[7; 10_000], compression, 0);
        let body = &undamaged[2..undamaged.len() - BLOCK_TRAILER_BYTES];
        for claimed in [0, 9_999, 10_001, 1 << 29, RAW_BYTES_MAX + 1, u64::MAX] {
            let mut payload = Vec::new();
            varint::put_u64(&mut payload, claimed);
            payload.extend_from_slice(body);
            assert!(
                open_owned(forged(&payload, compression), 0).is_err(),
                "{compression:?} of {claimed}"
            );
        }
        assert!(open_owned(forged(&[], compression), 0).is_err());
    }
}

#[test]
fn short_and_unknown_blocks_are_rejected() {
    for len in 0..BLOCK_TRAILER_BYTES {
        assert!(open_owned(vec![0; len], 0).is_err());
    }
    let mut stored = b"payload".to_vec();
    let crc = crc32c_masked(&[b"payload", &[3], &0u64.to_le_bytes()]);
    stored.push(3);
    stored.extend_from_slice(&crc.to_le_bytes());
    assert_eq!(open_owned(stored, 0), Err(Malformed("block has an unknown compression type")));
    let compressed = seal(&[7; 1000], Compression::Lz4, 0);
    assert!(open_uncompressed(&compressed, 0).is_err());
}

/// Blocks of 4 KiB, of which every `one_in`th can be compressed; the number that was.
fn compressed_count(compressor: &mut BlockCompressor, block_count: u64, one_in: u64) -> u64 {
    let mut rng = kvant_env::rng::Rng::new(5);
    let mut count = 0;
    for number in 1..=block_count {
        let shrinks = number % one_in == 0;
        let raw = if shrinks { vec![7; 4096] } else { rng.bytes(4096) };
        let (_, compression) = compressor.compress(&raw).expect("compress");
        assert!(shrinks || compression == Compression::None);
        count += u64::from(compression != Compression::None);
    }
    count
}

#[test]
fn blocks_that_do_not_shrink_are_soon_tried_no_more_and_others_again() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let mut compressor = BlockCompressor::new(compression);
        assert_eq!(compressed_count(&mut compressor, 100, 1), 100);
        assert_eq!(compressed_count(&mut compressor, 100, 4), 25, "mixed blocks are all tried");

        assert_eq!(compressed_count(&mut compressor, 1000, u64::MAX), 0);
        let after = compressed_count(&mut compressor, 100, 1);
        assert!((85..=99).contains(&after), "{compression:?}: {after} of 100");
    }
}

#[test]
fn the_buffer_of_a_large_block_does_not_show_in_a_small_one() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let mut compressor = BlockCompressor::new(compression);
        for len in [200_000, 50, 3000, 100_000, 20] {
            let raw = vec![len as u8; len];
            let (payload, compression) = compressor.compress(&raw).expect("compress");
            let stored = [payload, &trailer(payload, compression, 0)].concat();
            assert_eq!(open_owned(stored, 0), Ok(raw));
        }
    }
}

#[test]
fn an_uncompressed_block_leaves_memory_that_is_too_long_for_it() {
    let spares = Spares::default();
    let raw = vec![1; 1_000];
    let mut stored = Vec::with_capacity(2_000);
    stored.extend(seal(&raw, Compression::None, 0));
    let opened = super::open_owned(stored, 0, &spares).expect("valid");
    assert_eq!(*opened, raw);
    assert!(opened.capacity() < 1_100, "{}", opened.capacity());
    assert_eq!(spares.take_for_stored(500).capacity(), 2_000);
}

#[test]
fn what_a_spare_buffer_held_does_not_show() {
    let spares = Spares::default();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for (len, capacity) in [(100_000, 100_000), (90_000, 100_000), (990, 1_000), (4_000, 4_096)]
        {
            spares.keep(vec![7; capacity].into());
            let raw = [vec![1; len - 1], vec![2]].concat();
            let stored = seal(&raw, compression, 0);
            let opened = super::open_owned(stored, 0, &spares).expect("valid");
            assert_eq!(*opened, raw, "{compression:?}, {len}");
        }
    }
}
