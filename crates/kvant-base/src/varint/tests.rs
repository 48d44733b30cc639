use super::*;

#[test]
fn powers_of_two_round_trip_with_the_expected_length() {
    for shift in 0..64 {
        for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) | 1] {
            let mut out = Vec::new();
            put_u64(&mut out, value);
            assert_eq!(out.len(), encoded_bytes(value), "{value}");
            let mut input = out.as_slice();
            assert_eq!(take_u64(&mut input), Some(value));
            assert!(input.is_empty());
        }
    }
}

#[test]
fn truncated_and_overlong_encodings_fail_and_leave_the_input_unchanged() {
    let mut truncated: &[u8] = &[0x80, 0x80];
    assert_eq!(take_u64(&mut truncated), None);
    assert_eq!(truncated.len(), 2);
    let mut overlong: &[u8] = &[0xff; 11];
    assert_eq!(take_u64(&mut overlong), None);
    let mut too_big_for_u32: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0x1f];
    assert_eq!(take_u32(&mut too_big_for_u32), None);
    assert_eq!(too_big_for_u32.len(), 5);
}
