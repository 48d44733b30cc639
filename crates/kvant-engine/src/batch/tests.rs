use super::*;
use crate::format::split_expiry;
use kvant_base::ErrorKind;

/// Key, value and expiry of an operation; a delete has no value.
type UserOp = (Vec<u8>, Option<(Vec<u8>, Option<u64>)>);

fn batch_of(ops: &[UserOp]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, put) in ops {
        match put {
            Some((value, expires_at_ms)) => batch.put(key, value, *expires_at_ms),
            None => batch.delete(key),
        }
    }
    batch
}

fn decoded(payload: &[u8]) -> Vec<UserOp> {
    Ops::new(payload)
        .map(|op| {
            let op = op.unwrap();
            let put = (op.kind != ValueKind::Delete).then(|| {
                let (expires_at_ms, value) = split_expiry(op.kind, op.stored).unwrap();
                (value.to_vec(), expires_at_ms)
            });
            (op.key.to_vec(), put)
        })
        .collect()
}

fn sample() -> Vec<UserOp> {
    vec![
        (b"plain".to_vec(), Some((b"value".to_vec(), None))),
        (b"empty".to_vec(), Some((Vec::new(), None))),
        (b"deleted".to_vec(), None),
        (b"brief".to_vec(), Some((b"v".to_vec(), Some(u64::MAX)))),
        (b"brief and empty".to_vec(), Some((Vec::new(), Some(0)))),
        (vec![0xff; limits::KEY_BYTES_MAX], Some((vec![7; 70_000], None))),
    ]
}

#[test]
fn operations_decode_in_the_order_in_which_they_were_added() {
    let batch = batch_of(&sample());
    assert_eq!(decoded(batch.encoded()), sample());
    assert_eq!(batch.len(), sample().len());
    assert_eq!(batch.put_count(), sample().iter().filter(|(_, put)| put.is_some()).count());
    assert_eq!(batch.bytes(), batch.encoded().len());
    let user_bytes: usize =
        sample().iter().map(|(key, put)| key.len() + put.as_ref().map_or(0, |p| p.0.len())).sum();
    assert_eq!(batch.user_bytes(), user_bytes as u64);
    batch.check(70_000).unwrap();
}

#[test]
fn a_long_batch_takes_the_memory_of_the_one_before_on_its_thread() {
    let long = |byte| vec![(vec![byte], Some((vec![byte; 100_000], None)))];
    let before = batch_of(&long(1));
    let (memory, beside) = (before.encoded().as_ptr(), batch_of(&long(2)));
    assert_ne!(beside.encoded().as_ptr(), memory, "it is in use");
    drop(before);
    let short = batch_of(&[(b"k".to_vec(), None)]);
    assert_ne!(short.encoded().as_ptr(), memory);
    let after = batch_of(&long(3));
    assert_eq!((after.encoded().as_ptr(), decoded(after.encoded())), (memory, long(3)));
    drop(after);
    let longer = vec![(vec![4], Some((vec![4; 300_000], None)))];
    assert_eq!(decoded(batch_of(&longer).encoded()), longer, "the memory is too short for it");
}

#[test]
fn encodings_concatenate() {
    let (one, two) = (batch_of(&sample()[..2]), batch_of(&sample()[2..]));
    let together = [one.encoded(), two.encoded()].concat();
    assert_eq!(decoded(&together), sample());
}

#[test]
fn a_batch_outside_the_limits_is_refused() {
    let check = |ops: UserOp| batch_of(&[ops]).check(10);
    let put = |key_bytes: usize, value_bytes: usize, expiry| {
        check((vec![1; key_bytes], Some((vec![2; value_bytes], expiry))))
    };
    put(1, 10, None).unwrap();
    put(limits::KEY_BYTES_MAX, 10, Some(1)).unwrap();
    for refused in [
        put(0, 1, None),
        put(limits::KEY_BYTES_MAX + 1, 1, None),
        put(1, 11, None),
        put(1, 11, Some(1)),
        check((Vec::new(), None)),
        check((vec![1; limits::KEY_BYTES_MAX + 1], None)),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let mixed = batch_of(&[sample()[0].clone(), (Vec::new(), None)]);
    assert_eq!(mixed.check(10).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_malformed_operation_is_reported_with_its_offset() {
    let mut payload = batch_of(&sample()[..3]).encoded().to_vec();
    let good_bytes = payload.len();
    let mut long_key = vec![0];
    varint::put_u64(&mut long_key, limits::KEY_BYTES_MAX as u64 + 1);
    long_key.resize(long_key.len() + limits::KEY_BYTES_MAX + 1, 0);
    let bad: [(&[u8], &str); 8] = [
        (&[3, 1, b'k'], "unknown kind"),
        (&[0], "key of an operation is cut short"),
        (&[0, 2, b'k'], "key of an operation is cut short"),
        (&[0, 0], "empty or over its limit"),
        (&long_key, "empty or over its limit"),
        (&[1, 1, b'k'], "value of an operation is cut short"),
        (&[1, 1, b'k', 2, b'v'], "value of an operation is cut short"),
        (&[2, 1, b'k', 7, 0, 0, 0, 0, 0, 0, 0], "shorter than its expiry"),
    ];
    for (bytes, what) in bad {
        payload.truncate(good_bytes);
        payload.extend_from_slice(bytes);
        let ops: Vec<_> = Ops::new(&payload).collect();
        assert_eq!(ops.len(), 4, "three operations and one error");
        let error = ops[3].unwrap_err();
        assert!(error.what.contains(what), "{error:?} for {what}");
        let error = error.in_file(Path::new("000007.wal"), 1000);
        assert_eq!(
            (error.kind(), error.offset_bytes()),
            (ErrorKind::Corruption, Some(1000 + good_bytes as u64))
        );
    }
}

#[test]
fn replay_numbers_the_operations_and_checks_their_count() {
    let batch = batch_of(&sample());
    let replay = |op_count| {
        let mut seqs = Vec::new();
        replay(batch.encoded(), SeqNum(40), op_count, Path::new("w"), 36, |seq, _| {
            seqs.push(seq.0);
            Ok(())
        })
        .map(|()| seqs)
    };
    assert_eq!(replay(6).unwrap(), [40, 41, 42, 43, 44, 45]);
    for wrong_count in [0, 5, 7] {
        assert_eq!(replay(wrong_count).unwrap_err().kind(), ErrorKind::Corruption);
    }
}

#[test]
fn the_encoding_matches_the_documented_example() {
    let mut batch = WriteBatch::new();
    batch.put(b"apple", b"red", None);
    batch.delete(b"fig");
    batch.put(b"kiwi", b"green", Some(1_700_000_000_000));
    let expected =
        b"\x01\x05apple\x03red\x00\x03fig\x02\x04kiwi\x0d\x00\x68\xe5\xcf\x8b\x01\x00\x00green";
    assert_eq!(batch.encoded(), expected);
}
