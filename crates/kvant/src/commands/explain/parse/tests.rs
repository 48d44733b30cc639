use super::*;

#[test]
fn times_of_day_are_hours_and_minutes() {
    assert_eq!(at("14:03"), Ok(14 * 3600 + 180));
    assert_eq!(at("0:00:59"), Ok(59));
    for bad in ["", "14", "24:00", "12:60", "12:00:60", "12:00:00:00", "-1:00", "12:+5x", "012:00"]
    {
        assert!(at(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_server_may_be_named_without_a_scheme() {
    assert_eq!(url("127.0.0.1:8080").as_deref(), Ok("http://127.0.0.1:8080"));
    assert!(url("ftp://example.com").is_err());
}
