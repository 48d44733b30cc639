use super::*;
use crate::work::batcher::tests::pending;
use bytes::Bytes;

#[test]
fn a_batch_has_writes_of_one_kind_and_is_bounded_in_bytes() {
    let value = Bytes::from(vec![0; BATCH_BYTES_MAX / 4]);
    let put = |queued_ns| pending(queued_ns, Some(value.clone()));
    let delete = |queued_ns| pending(queued_ns, None);
    assert_eq!(batch_len(&[put(1), put(2), delete(3)]), 2);
    assert_eq!(batch_len(&[delete(1), delete(2), delete(3), put(4)]), 3);
    // The keys do not fit beside four quarters.
    assert_eq!(batch_len(&(0..6).map(put).collect::<Vec<_>>()), 3);
    let long = Bytes::from(vec![0; 2 * BATCH_BYTES_MAX]);
    assert_eq!(batch_len(&[pending(1, Some(long)), delete(2)]), 1, "a longer write goes alone");
}
