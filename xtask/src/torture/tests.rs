use super::*;

#[test]
fn passed_tests_are_counted() {
    assert_eq!(
        passed_in(
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.03s"
        ),
        3
    );
    assert_eq!(passed_in("test result: FAILED. 3 passed; 1 failed"), 0);
    assert_eq!(passed_in("test a::b ... ok"), 0);
}

#[test]
fn mistakes_in_arguments_are_refused() {
    assert!(run(&["--minutes".into(), "1".into()]).is_err());
    assert!(soak(&["--cycles".into(), "1".into()]).is_err());
}
