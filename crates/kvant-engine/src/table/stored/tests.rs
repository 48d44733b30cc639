use super::*;

fn seal(raw: &[u8], compression: Compression, offset_bytes: u64) -> Vec<u8> {
    let mut compressor = BlockCompressor::new(compression);
    let (payload, compression) = compressor.compress(raw).expect("compress");
    let mut stored = payload.to_vec();
    stored.extend_from_slice(&trailer(payload, compression, offset_bytes));
    stored
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
