use super::raised;
use rustix::process::Rlimit;

fn limit(current: impl Into<Option<u64>>, maximum: impl Into<Option<u64>>) -> Rlimit {
    Rlimit { current: current.into(), maximum: maximum.into() }
}

#[test]
fn the_soft_limit_is_raised_as_far_as_needed() {
    assert_eq!(raised(limit(1024, 4096), 900, 2).unwrap(), None);
    assert_eq!(raised(limit(1024, 4096), 1024, 2).unwrap(), Some(limit(1024 + 64 + 4, 4096)));
    assert_eq!(raised(limit(1024, None), 10_000, 1).unwrap(), Some(limit(10_066, None)));
    assert_eq!(raised(limit(None, None), 1_000_000, 1).unwrap(), None);
}

#[test]
fn the_error_names_the_need_and_the_remedy() {
    let message = raised(limit(1024, 4096), 10_000, 2).unwrap_err().to_string();
    for part in
        ["10000 connections", "10068 file descriptors", "4096", "ulimit -Hn 10068", "at most 4028"]
    {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}
