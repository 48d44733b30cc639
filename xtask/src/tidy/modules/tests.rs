use super::*;

const ROWS: &[Row] = &[
    ("format", &[]),
    ("iter::Cursor", &["format"]),
    ("wal", &["format"]),
    ("table", &["format", "iter::Cursor"]),
    ("iter", &["table"]),
];

fn findings(path: &str, code: &str) -> Vec<String> {
    let tree = Tree::of(&[(&format!("crates/kvant-engine/src/{path}"), code)]);
    check(&tree, ROWS).iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_module_uses_what_its_row_says() {
    assert!(
        findings("wal/writer.rs", "use crate::format::X;\nuse crate::wal::Y;\nuse crate::Z;")
            .is_empty()
    );
    assert!(findings("lib.rs", "pub use crate::wal::X;").is_empty());
    assert!(findings("wal/tests.rs", "use crate::table::X;").is_empty());
}

#[test]
fn any_other_use_is_found_however_it_is_written() {
    for code in [
        "use crate::table::X;",
        "use crate::{format, table::X};",
        "use super::super::table;",
        "fn f() { crate::table::open() }",
    ] {
        let found = findings("wal/reader.rs", code);
        assert_eq!(found.len(), 1, "{code}");
        assert!(
            found[0].starts_with(
                "crates/kvant-engine/src/wal/reader.rs:1: module wal may not use table"
            ),
            "{found:?}"
        );
    }
}

#[test]
fn an_item_may_stand_lower_than_its_module() {
    assert!(findings("table.rs", "use crate::iter::Cursor;").is_empty());
    assert!(
        findings("iter/mod.rs", "use crate::iter::Cursor;\nuse crate::iter::merge::X;").is_empty()
    );
    assert!(
        findings("table.rs", "use crate::iter::{Cursor, Merge};")[0]
            .contains("table may not use iter:")
    );
    assert!(
        findings("wal.rs", "use crate::iter::Cursor;")[0].contains("wal may not use iter::Cursor:")
    );
}

#[test]
fn a_module_needs_a_row() {
    assert!(findings("cache.rs", "")[0].contains("module cache has no row"));
}

#[test]
fn the_table_itself_has_no_cycle() {
    assert_eq!(table_problems(ROWS), []);
    assert_eq!(table_problems(super::super::tables::ENGINE_MODULES), []);
    assert_eq!(table_problems(&[("a", &["b"]), ("b", &["a"])]).len(), 1);
}
