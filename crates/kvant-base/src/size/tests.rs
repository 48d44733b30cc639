use super::*;

#[test]
fn parse_and_format_round_trip() {
    for (text, bytes) in
        [("0", 0), ("1000", 1000), ("64KiB", 65_536), ("4MiB", 4 << 20), ("1GiB", 1 << 30)]
    {
        assert_eq!(parse(text), Ok(bytes));
        assert_eq!(format(bytes), text);
    }
    assert_eq!(parse(" 12 MiB "), Ok(12 << 20));
    assert_eq!(parse("7B"), Ok(7));
}

#[test]
fn parse_rejects_other_units_signs_and_overflow() {
    for text in ["", "MiB", "4MB", "-1", "+1", "1.5GiB", "99999999999GiB", "4 mib"] {
        assert!(parse(text).is_err(), "{text}");
    }
}
