use super::*;

fn long(line_count: usize) -> Tree {
    Tree::of(&[("src/a.rs", &"//! A.\n".repeat(line_count))])
}

fn exceptions(what: &[&str]) -> BTreeMap<String, String> {
    what.iter().map(|what| (what.to_string(), "tested".to_owned())).collect()
}

#[test]
fn a_long_file_needs_an_exception() {
    let none = &exceptions(&[]);
    assert_eq!(check_sizes(&long(600), none), []);
    assert_eq!(check_sizes(&long(601), none).len(), 1);
    let rows = &exceptions(&["src/a.rs"]);
    assert_eq!(check_sizes(&long(601), rows), []);
    assert!(check_sizes(&long(500), rows)[0].message.contains("is not needed any more"));
    assert!(check_sizes(&Tree::of(&[]), rows)[0].message.contains("is not needed any more"));
}

#[test]
fn a_mod_declares_each_file() {
    let files = [
        ("crates/a/src/lib.rs", "mod b; // mod c;"),
        ("crates/a/src/b.rs", "mod inline { mod d; }"),
        ("crates/a/src/b/inline/d.rs", ""),
        ("crates/a/src/c.rs", ""),
        ("crates/a/src/b/e.rs", ""),
        ("crates/a/tests/it/main.rs", ""),
        ("crates/other/src/lib.rs", "mod c;"),
    ];
    let found = check_declared(&Tree::of(&files));
    let paths: Vec<&str> = found.iter().map(|finding| &finding.path[..]).collect();
    assert_eq!(paths, ["crates/a/src/b/e.rs", "crates/a/src/c.rs"]);
}

#[test]
fn a_file_starts_with_its_header() {
    assert_eq!(
        check_headers(&Tree::of(&[
            ("src/a.rs", "//! A.\n"),
            ("src/a/tests.rs", "use super::*;\n")
        ])),
        []
    );
    assert_eq!(check_headers(&Tree::of(&[("src/a.rs", "use b;\n")])).len(), 1);
    assert_eq!(check_headers(&Tree::of(&[("src/a.rs", "")])).len(), 1);
}

#[test]
fn leftovers_are_found() {
    let mark = concat!("FIX", "ME");
    let lines = |code: &str| {
        check_leftovers(&Tree::of(&[("src/a.rs", code)]))
            .iter()
            .map(|finding| finding.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&format!("\n// {mark}: later")), [2]);
    assert!(lines("let x = \"mktemp -t abcXXXXXX\";").is_empty());
}

#[test]
fn a_crates_root_denies_what_clippy_disallows() {
    let deny = &ROOT_DENIES.concat();
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", deny),
        ("crates/b/src/lib.rs", "//! B.\n"),
        ("crates/b/src/b.rs", "//! B.\n"),
        ("crates/b/tests/it/main.rs", "//! B.\n"),
        ("xtask/src/main.rs", "//! X.\n"),
    ]);
    let found = check_roots(&tree, &exceptions(&[]));
    assert_eq!((found.len(), found[0].path.as_str()), (1, "crates/b/src/lib.rs"));
    let rows = &exceptions(&["b"]);
    assert_eq!(check_roots(&tree, rows), []);
    assert_eq!(check_roots(&Tree::of(&[("crates/b/src/lib.rs", deny)]), rows).len(), 1);
}
