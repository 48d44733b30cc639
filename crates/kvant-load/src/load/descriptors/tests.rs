use super::check;

#[test]
fn connections_within_the_limit_are_accepted() {
    check(968, 900, 68).unwrap();
    check(u64::MAX, 1_000_000, 66).unwrap();
    assert!(check(967, 900, 68).is_err());
}

#[test]
fn the_error_names_the_need_and_the_remedy() {
    let message = check(4096, 10_000, 68).unwrap_err().to_string();
    for part in
        ["10000 connections", "10068 file descriptors", "4096", "ulimit -Hn 10068", "at most 4028"]
    {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}
