use super::super::Severity;
use super::*;

fn long(line_count: usize) -> Tree {
    Tree::of(&[("src/a.rs", &"//! A.\n".repeat(line_count))])
}

#[test]
fn long_files_are_warned_of_and_then_refused() {
    let severities = |tree: &Tree| {
        check_sizes(tree, &[]).iter().map(|finding| finding.severity).collect::<Vec<_>>()
    };
    assert_eq!(severities(&long(400)), []);
    assert_eq!(severities(&long(401)), [Severity::Warning]);
    assert_eq!(severities(&long(600)), [Severity::Warning]);
    assert_eq!(severities(&long(601)), [Severity::Error]);
}

#[test]
fn an_exemption_only_shrinks() {
    let row = |lines_max| [LongFile { path: "src/a.rs", lines_max, reason: "one table" }];
    assert_eq!(check_sizes(&long(700), &row(700)), []);
    assert!(check_sizes(&long(701), &row(700))[0].message.contains("divide it"));
    assert!(check_sizes(&long(670), &row(700))[0].message.contains("lower its row"));
    assert!(check_sizes(&long(500), &row(700))[0].message.contains("not needed any more"));
    assert!(check_sizes(&Tree::of(&[]), &row(700))[0].message.contains("not needed any more"));
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
fn leftovers_are_found_in_code_and_comments() {
    let mark = concat!("FIX", "ME");
    let lines = |code: &str| {
        check_leftovers(&Tree::of(&[("src/a.rs", code)]))
            .iter()
            .map(|finding| finding.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines("fn f() {\n todo!()\n}\nfn g() { dbg!(1); unimplemented!() }"), [2, 4, 4]);
    assert_eq!(lines(&format!("\n// {mark}: later")), [2]);
    assert!(
        lines("// says todo!() in a comment\nfn dbg() {}\nlet x = \"mktemp -t abcXXXXXX\";")
            .is_empty()
    );
}

#[test]
fn unsafe_is_only_in_listed_files() {
    let tree = Tree::of(&[
        ("src/a.rs", "fn f() {\n unsafe { g() }\n}"),
        ("src/b.rs", "// unsafe\n#![deny(unsafe_code)]"),
    ]);
    let found = check_unsafe(&tree, &[]);
    assert_eq!((found.len(), found[0].line), (1, 2));
    let row = |path| UnsafeFile { path, reason: "calls libc" };
    assert_eq!(check_unsafe(&tree, &[row("src/a.rs")]), []);
    let found = check_unsafe(&tree, &[row("src/a.rs"), row("src/b.rs")]);
    assert_eq!((found.len(), found[0].path.as_str()), (1, "src/b.rs"));
}
