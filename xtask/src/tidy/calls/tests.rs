use super::*;

const CALLS: &[WorldCall] = &[
    WorldCall { call: "std::fs", home: &["crates/kvant-env/"], instead: "use Fs" },
    WorldCall {
        call: "std::time::Instant::now",
        home: &["crates/kvant-env/"],
        instead: "use Clock",
    },
    WorldCall { call: ".read_dir()", home: &["crates/kvant-env/"], instead: "use Fs" },
];

fn findings(path: &str, code: &str, exceptions: &'static [Exception]) -> Vec<String> {
    let rule = Rule { calls: CALLS, exceptions, table: "EXCEPTIONS", why: "not replaceable" };
    check(&Tree::of(&[(path, code)]), &rule).iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_call_of_the_world_is_found_with_its_line() {
    for code in [
        "\nuse std::fs;",
        "\nuse std::{io, fs::File};",
        "use std::time::Instant;\nfn f() { Instant::now(); }",
        "\nfn f() { std::time::Instant::now(); }",
        "\nfn f(p: &Path) { p.read_dir(); }",
    ] {
        let found = findings("crates/kvant-engine/src/db.rs", code, &[]);
        assert_eq!(found.len(), 1, "{code}: {found:?}");
        assert!(found[0].starts_with("crates/kvant-engine/src/db.rs:2: "), "{found:?}");
    }
}

#[test]
fn homes_tests_tools_comments_and_strings_are_free() {
    let code = "use std::fs;";
    for path in [
        "crates/kvant-env/src/posix.rs",
        "crates/kvant/tests/it/main.rs",
        "crates/a/src/b/tests.rs",
        "xtask/src/main.rs",
    ] {
        assert!(findings(path, code, &[]).is_empty(), "{path}");
    }
    assert!(
        findings("crates/a/src/b.rs", "// std::fs::read\nfn f() { g(\"std::fs::read\") }", &[])
            .is_empty()
    );
}

#[test]
fn an_exception_is_for_one_file_and_one_call_and_must_be_needed() {
    const ROW: &[Exception] = &[Exception {
        path: "crates/kvant/src/config.rs",
        call: "std::fs",
        reason: "reads settings",
    }];
    assert!(findings("crates/kvant/src/config.rs", "use std::fs;", ROW).is_empty());
    let unused = findings("crates/kvant/src/config.rs", "", ROW);
    assert!(unused[0].contains("is not needed any more"), "{unused:?}");
    assert_eq!(
        findings(
            "crates/kvant/src/config.rs",
            "use std::fs; fn f() { std::time::Instant::now() }",
            ROW
        )
        .len(),
        1
    );
}
