use super::*;

fn key(keys: &Keys, index: u64) -> String {
    let mut out = Vec::new();
    keys.append(index, &mut out);
    assert_eq!(out.len() as u64, keys.length(index));
    String::from_utf8(out).unwrap()
}

fn absent(keys: &Keys, index: u64) -> String {
    let mut out = Vec::new();
    keys.append_absent(index, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn keys_are_twelve_digits_that_sort_as_numbers() {
    let keys = Keys::new(KeyBytes::default());
    assert_eq!(key(&keys, 0), "000000000000");
    assert_eq!(key(&keys, 42), "000000000042");
    assert_eq!(key(&keys, 123_456_789_012), "123456789012");
    assert_eq!(key(&keys, INDEX_MAX), "999999999999");
    assert_eq!(absent(&keys, 42), "000000000042-");
}

#[test]
fn absent_keys_are_never_stored_and_lie_between_neighbours() {
    for lengths in
        [KeyBytes::default(), KeyBytes { min: 13, max: 13 }, KeyBytes { min: 12, max: 500 }]
    {
        let keys = Keys::new(lengths);
        for index in 0..2_000 {
            let (here, next, absent) =
                (key(&keys, index), key(&keys, index + 1), absent(&keys, index));
            assert!(absent < next, "{absent} {next}");
            // It shares the digits of the stored key, but differs from it.
            assert!(absent != here && absent[..DIGITS] == here[..DIGITS]);
            assert!(!key(&keys, index)[DIGITS..].contains('-'));
            assert_eq!(absent.len(), here.len().max(DIGITS + 1));
        }
    }
}

#[test]
fn long_keys_have_all_lengths_and_are_the_same_in_all_runs() {
    let lengths = KeyBytes { min: 20, max: 29 };
    let keys = Keys::new(lengths);
    let mut seen = [0; 30];
    for index in 0..1_000 {
        let key = key(&keys, index);
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric()), "{key} needs no percent-encoding");
        seen[key.len()] += 1;
    }
    assert!(seen[20..30].iter().all(|count| (50..200).contains(count)), "{seen:?}");
    // Databases that were filled earlier stay readable.
    assert_eq!(key(&Keys::new(KeyBytes { min: 24, max: 24 }), 7), "0000000000077FYHHH8bC7BK");
}

#[test]
fn lengths_outside_the_limits_are_problems() {
    assert_eq!(KeyBytes { min: 12, max: BYTES_MAX }.problems(), Vec::<String>::new());
    assert_eq!(KeyBytes { min: 11, max: 20 }.problems().len(), 1);
    assert_eq!(KeyBytes { min: 12, max: BYTES_MAX + 1 }.problems().len(), 1);
}
