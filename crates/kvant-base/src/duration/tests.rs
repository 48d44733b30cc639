use super::*;

#[test]
fn parse_and_format_round_trip() {
    for (text, us) in
        [("250us", 250), ("10ms", 10_000), ("1s", 1_000_000), ("2m", 120_000_000), ("0s", 0)]
    {
        assert_eq!(parse(text), Ok(Duration::from_micros(us)));
        assert_eq!(format(Duration::from_micros(us)), text);
    }
}

#[test]
fn parse_rejects_missing_and_unknown_units() {
    for text in ["", "10", "1h", "-1s", "1.5s", "s", "1 s"] {
        assert!(parse(text).is_err(), "{text}");
    }
}
