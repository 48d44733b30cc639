//! Module order inside the engine: which top-level module may use which.

use super::tree::{File, Tree};
use super::{Finding, paths};
use std::collections::BTreeSet;

const ENGINE_SOURCES: &str = "crates/kvant-engine/src/";

/// A row of the table: a module, or an item of it that stands lower than the rest (`module::Item`);
/// and the rows that it may use, each of which stands before it.
pub(super) type Row = (&'static str, &'static [&'static str]);

/// Checks that `rows` has no cycle and that the engine's code keeps to it. Tests and `lib.rs` may
/// use everything.
pub(super) fn check(tree: &Tree, rows: &[Row]) -> Vec<Finding> {
    let mut findings = table_problems(rows);
    let mut without_row = BTreeSet::new();
    for file in tree.rust().filter(|file| file.path.starts_with(ENGINE_SOURCES) && !file.is_test) {
        let module = top_module(file);
        let Some((_, may_use)) = rows.iter().find(|(name, _)| *name == module) else {
            if module != "lib" && without_row.insert(module) {
                let problem = format!(
                    "module {module} has no row in ENGINE_MODULES (xtask/src/tidy/tables.rs): add it \
                     after all it uses"
                );
                findings.push(Finding::error(&file.path, 1, problem));
            }
            continue;
        };
        for path in paths::of(&file.path, &file.tokens) {
            let Some(target) = row_of(&path.words, rows) else {
                continue;
            };
            if path.words[1] != module && !may_use.contains(&target) {
                let problem = format!(
                    "module {module} may not use {target}: modules form a DAG, so that each can be read \
                     and tested without those above it; move the shared part down, or add {target} to {module}'s row in \
                     ENGINE_MODULES (xtask/src/tidy/tables.rs)"
                );
                findings.push(Finding::error(&file.path, path.line, problem));
            }
        }
    }
    findings.dedup();
    findings
}

/// The row that a path of the crate leads to: its item's, if that has one, or its module's.
fn row_of(words: &[String], rows: &[Row]) -> Option<&'static str> {
    let ["crate", module, rest @ ..] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let item = rest.first().map(|item| format!("{module}::{item}"));
    let is_target = |name: &str| item.as_deref() == Some(name) || *module == name;
    // Of both, the item's has the longer name.
    rows.iter().map(|(name, _)| *name).filter(|name| is_target(name)).max_by_key(|name| name.len())
}

/// The first part of the path below `src/`.
fn top_module(file: &File) -> &str {
    let inside = &file.path[ENGINE_SOURCES.len()..];
    let first = inside.split('/').next().unwrap_or(inside);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// A row that uses a module without a row before it would allow a cycle.
fn table_problems(rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, (module, may_use)) in rows.iter().enumerate() {
        for target in *may_use {
            if !rows[..index].iter().any(|(name, _)| name == target) {
                let problem = format!(
                    "ENGINE_MODULES: {module} uses {target}, which has no row before it: rows go from low \
                     to high"
                );
                findings.push(Finding::error("xtask/src/tidy/tables.rs", 1, problem));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
