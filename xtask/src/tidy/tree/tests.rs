use super::*;

#[test]
fn a_file_is_for_tests_when_its_parent_says_so() {
    let tree = Tree::of(&[
        (
            "crates/a/src/lib.rs",
            "#[cfg(test)]\npub(crate) mod conformance;\nmod disk;\n#[cfg(test)]\nuse x::y;",
        ),
        ("crates/a/src/conformance.rs", ""),
        ("crates/a/src/conformance/case.rs", ""),
        ("crates/a/src/conformance_report.rs", ""),
        ("crates/a/src/disk.rs", "#[cfg(test)]\nmod tests;"),
        ("crates/a/src/disk/tests.rs", ""),
        ("crates/a/tests/it/main.rs", ""),
        ("xtask/src/tidy/mod.rs", "#[cfg(test)] mod tests;"),
        ("xtask/src/tidy/tests.rs", ""),
    ]);
    let tests: Vec<&str> =
        tree.files.iter().filter(|file| file.is_test).map(|file| file.path.as_str()).collect();
    let expected = [
        "crates/a/src/conformance.rs",
        "crates/a/src/conformance/case.rs",
        "crates/a/src/disk/tests.rs",
        "crates/a/tests/it/main.rs",
        "xtask/src/tidy/tests.rs",
    ];
    assert_eq!(tests, expected);
}
