use super::key_prefix;

#[test]
fn keys_of_every_length_are_padded_with_zeros() {
    for count in 0..=12 {
        let key: Vec<u8> = (1..=count).map(|n| 0xa0 | n).collect();
        let mut padded = [0; 8];
        let head = &key[..key.len().min(8)];
        padded[..head.len()].copy_from_slice(head);
        assert_eq!(key_prefix(&key), u64::from_be_bytes(padded), "{count} bytes");
    }
}
