use super::*;
use crate::tidy::tree::Tree;

const ROWS: &[&[&str]] = &[
    &["format"],
    &["iter::Cursor", "format"],
    &["wal", "format"],
    &["table", "format", "iter::Cursor"],
    &["iter", "table"],
];

fn rows(name: &str, rows: &[&[&str]]) -> Crate {
    let row = |row: &&[&str]| row.iter().map(|word| word.to_string()).collect();
    Crate { name: name.to_owned(), modules: rows.iter().map(row).collect() }
}

fn exceptions(what: &[&str]) -> BTreeMap<String, String> {
    what.iter().map(|what| (what.to_string(), "tested".to_owned())).collect()
}

/// Findings about `tree` and [`ROWS`].
fn check(tree: &Tree, allowed: &[&str]) -> Vec<String> {
    let rows = [rows("kvant-engine", ROWS)];
    let found = check_order(&CrateImports::of_all(tree), &rows, &exceptions(allowed));
    found.iter().map(|finding| finding.to_string()).collect()
}

/// A file for each module of [`ROWS`].
const MODULES: &[(&str, &str)] = &[
    ("lib.rs", "pub use crate::wal::Writer;"),
    ("format.rs", ""),
    ("wal/mod.rs", "pub use writer::Writer;"),
    ("wal/writer.rs", "use crate::format::X;\nuse crate::wal::Y;\nuse crate::Z;"),
    ("wal/tests.rs", "use crate::table::X;"),
    ("table.rs", "use crate::iter::Cursor;"),
    ("iter/mod.rs", "use crate::table::X;"),
];

/// Findings about [`MODULES`] with one more file, or with another text of one.
fn findings(path: &str, code: &str, allowed: &[&str]) -> Vec<String> {
    let mut files: Vec<(String, &str)> = MODULES
        .iter()
        .chain(&[(path, code)])
        .map(|(path, code)| (format!("crates/kvant-engine/src/{path}"), *code))
        .collect();
    files.reverse();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files.dedup_by(|a, b| a.0 == b.0);
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, code)| (path.as_str(), *code)).collect();
    check(&Tree::of(&files), allowed)
}

#[test]
fn a_module_uses_what_its_row_says() {
    assert_eq!(findings("lib.rs", "pub use crate::wal::X;", &[]), [""; 0]);
}

#[test]
fn any_other_use_is_found_however_it_is_written() {
    for code in [
        "use crate::table::X;",
        "use crate::{format, table::X};",
        "use super::super::table::X;",
        "use super::super::table; fn f() -> table::X {}",
        "fn f() { crate::table::open() }",
    ] {
        let found = findings("wal/reader.rs", code, &[]);
        assert_eq!(found.len(), 1, "{code}");
        let expected = "crates/kvant-engine/src/wal/reader.rs:1: module wal may not use table";
        assert!(found[0].starts_with(expected), "{found:?}");
    }
}

#[test]
fn an_item_may_stand_lower_than_its_module() {
    let found = findings("table.rs", "use crate::iter::{Cursor, Merge};", &[]);
    assert!(found[0].contains("table may not use iter:"), "{found:?}");
    let found = findings("wal/mod.rs", "use crate::iter::Cursor;", &[]);
    assert!(found[0].contains("wal may not use iter::Cursor:"), "{found:?}");
}

#[test]
fn modules_and_rows_go_together() {
    assert!(findings("cache.rs", "", &[])[0].contains("module cache has no row"));
    let tree = Tree::of(&[("crates/kvant-engine/src/format.rs", "")]);
    let found = check(&tree, &[]);
    assert!(found[0].contains("no module iter: remove its row"), "{found:?}");
    let tree = Tree::of(&[("crates/kvant-base/src/size.rs", "")]);
    assert!(check(&tree, &[])[0].contains("kvant-base has no modules in"));
    assert_eq!(check(&tree, &["kvant-base"]), [""; 0]);
}

#[test]
fn an_exception_holds_while_it_is_needed() {
    let rows = &["kvant-engine::wal uses table"];
    assert_eq!(findings("wal/reader.rs", "use crate::table::X;", rows), [""; 0]);
    assert!(findings("wal/reader.rs", "", rows)[0].contains("is not needed any more"));
}

#[test]
fn rows_have_no_cycle() {
    assert_eq!(row_problems(&rows("a", ROWS)), []);
    assert_eq!(row_problems(&rows("a", &[&["a", "b"], &["b", "a"]])).len(), 1);
}

#[test]
fn a_module_imports_from_few_others() {
    let mut files: Vec<(String, String)> = (0..13)
        .map(|index| (format!("crates/a/src/m{index}.rs"), "pub struct X;".to_owned()))
        .collect();
    let uses =
        |count: usize| (0..count).map(|index| format!("use crate::m{index}::X;\n")).collect();
    files.push(("crates/a/src/lib.rs".to_owned(), uses(13)));
    let found = |wide: String, allowed: &[&str]| -> Vec<Finding> {
        let wide = [("crates/a/src/wide/mod.rs".to_owned(), wide)];
        let files = files.iter().chain(&wide).map(|(path, text)| (path.as_str(), text.as_str()));
        let tree = Tree::of(&files.collect::<Vec<_>>());
        check_fan_out(&CrateImports::of_all(&tree), &exceptions(allowed))
    };
    assert_eq!(found(uses(12), &[]), []);
    let problem = found(uses(13), &[]);
    assert!(problem[0].message.starts_with("a::wide imports from 13 modules"), "{problem:?}");
    let rows = &["a::wide"];
    assert_eq!(found(uses(13), rows), []);
    assert_eq!(found(uses(12), rows).len(), 1);
}
