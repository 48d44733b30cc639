use super::{RANGES_MAX, Ranges};
use crate::commands::copy::records::{FIRST_KEY, Record};

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn add(ranges: &mut Ranges, number: u32, value: &[u8]) {
    ranges.add(Record { key: &key(number), value, expires_at_ms: None });
}

/// More records than first ranges hold, so that ranges are joined.
const COUNT: u32 = 700_000;

#[test]
fn equal_records_make_equal_digests_in_a_bounded_number_of_ranges() {
    let mut first = Ranges::new(FIRST_KEY);
    (0..COUNT).for_each(|number| add(&mut first, number, b"value"));
    let mut second = first.emptied();
    (0..COUNT).for_each(|number| add(&mut second, number, b"value"));
    assert!(first.count() > RANGES_MAX / 2 && first.count() <= RANGES_MAX, "{}", first.count());
    assert!(first.differing(&second).is_empty());
    assert_eq!(first.total().count, u64::from(COUNT));
    assert_eq!(first.total(), second.total());
}

#[test]
fn each_kind_of_difference_is_found_in_its_range_and_no_other() {
    let mut first = Ranges::new(FIRST_KEY);
    (0..COUNT).filter(|&number| number != 400_000).for_each(|number| add(&mut first, number, b""));
    for (place, what) in [(10, "missing"), (COUNT - 1, "changed"), (400_000, "more")] {
        let mut second = first.emptied();
        for number in 0..COUNT {
            match (number == place, what) {
                (true, "missing") => {}
                (true, "changed") => add(&mut second, number, b"\0"),
                (false, _) if number == 400_000 => {}
                _ => add(&mut second, number, b""),
            }
        }
        let differing = first.differing(&second);
        assert_eq!(differing.len(), 1, "{what}");
        let (start, end) = differing[0];
        assert!(start <= key(place).as_slice(), "{what}");
        assert!(end.is_none_or(|end| key(place).as_slice() < end), "{what}");
    }
}

#[test]
fn the_border_of_key_and_value_is_part_of_the_digest() {
    let mut first = Ranges::new(FIRST_KEY);
    first.add(Record { key: b"ab", value: b"c", expires_at_ms: None });
    let mut second = first.emptied();
    second.add(Record { key: b"a", value: b"bc", expires_at_ms: None });
    assert_eq!(first.differing(&second).len(), 1);
}
