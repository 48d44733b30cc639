use super::*;
use crate::tidy::tree::Tree;

fn circles(files: &[(&str, &str)], exceptions: &[&str]) -> Vec<String> {
    let exceptions =
        exceptions.iter().map(|file| (file.to_string(), "tested".to_owned())).collect();
    let paths: Vec<String> = files.iter().map(|(path, _)| format!("crates/a/src/{path}")).collect();
    let files: Vec<(&str, &str)> =
        paths.iter().zip(files).map(|(path, (_, code))| (path.as_str(), *code)).collect();
    let tree = Tree::of(&files);
    let found = check(&CrateImports::of_all(&tree), &exceptions);
    found.iter().map(|finding| finding.to_string()).collect()
}

const PAIR: &[(&str, &str)] =
    &[("x.rs", "use crate::y::Y; struct X;"), ("y.rs", "struct Y; fn f(x: super::x::X) {}")];

#[test]
fn two_files_that_import_from_each_other_form_a_circle() {
    let found = circles(PAIR, &[]);
    assert_eq!(
        found,
        [
            "crates/a/src/x.rs:1: imports of 2 files form a circle; move what both sides need into a file \
          below them:\n    crates/a/src/x.rs -> crates/a/src/y.rs: Y\n    crates/a/src/y.rs -> \
          crates/a/src/x.rs: X"
        ]
    );
    assert_eq!(circles(&PAIR[..1], &[]), [""; 0]);
}

#[test]
fn longer_circles_are_one_finding() {
    let found = circles(
        &[("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::z::Z;"), ("z.rs", "use crate::x::X;")],
        &[],
    );
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("imports of 3 files"), "{found:?}");
}

#[test]
fn a_parent_and_its_child_form_a_circle_if_both_use_the_other() {
    let child = ("p/child.rs", "use super::Shared;");
    let parent = |code| [("p.rs", code), child];
    assert_eq!(circles(&parent("mod child; struct Shared; fn f() { child::g() }"), &[]).len(), 1);
    assert_eq!(circles(&parent("mod child; pub use child::Y; struct Shared;"), &[]), [""; 0]);
    assert_eq!(circles(&parent("mod child; use crate::z::Shared; use child::Y;"), &[]), [""; 0]);
}

#[test]
fn a_reexport_leads_to_the_file_that_defines_the_item() {
    let files = [
        ("p/mod.rs", "mod x; mod y; pub use x::X; pub use y::{Y, f};"),
        ("p/x.rs", "use super::Y;"),
        ("p/y.rs", "use super::X;"),
    ];
    let found = circles(&files, &[]);
    assert!(found[0].contains("p/x.rs -> crates/a/src/p/y.rs: Y"), "{found:?}");
    assert!(!found[0].contains("mod.rs"), "{found:?}");
}

#[test]
fn tests_may_use_everything() {
    let files = [("x.rs", "#[cfg(test)] mod tests;"), ("x/tests.rs", "use super::*;")];
    assert_eq!(circles(&files, &[]), [""; 0]);
}

#[test]
fn an_exception_names_one_file_of_the_circle() {
    let rows = &["crates/a/src/y.rs"];
    assert_eq!(circles(PAIR, rows), [""; 0]);
    assert!(circles(&PAIR[..1], rows)[0].contains("is not needed any more"));
}
