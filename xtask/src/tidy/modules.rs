//! Module order inside the engine: which top-level module may use which.

use super::tree::{File, Tree};
use super::{Finding, paths};

const ENGINE_SOURCES: &str = "crates/kvant-engine/src/";

/// A row of the table: a module and the modules that it may use, each of which has a row before it.
pub(super) type Row = (&'static str, &'static [&'static str]);

/// Checks that `rows` has no cycle and that the engine's code keeps to it. Tests and `lib.rs` may use everything.
pub(super) fn check(tree: &Tree, rows: &[Row]) -> Vec<Finding> {
    let mut findings = table_problems(rows);
    for file in tree
        .rust()
        .filter(|file| file.path.starts_with(ENGINE_SOURCES) && !file.is_test())
    {
        let module = top_module(file);
        if module == "lib" {
            continue;
        }
        let Some((_, may_use)) = rows.iter().find(|(name, _)| *name == module) else {
            let problem = format!(
                "module {module} has no row in ENGINE_MODULES (xtask/src/tidy/tables.rs): add it after all it uses"
            );
            findings.push(Finding::error(&file.path, 1, problem));
            continue;
        };
        for used in paths::of(&file.path, &file.tokens) {
            let ["crate", target, ..] = used.words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
                continue;
            };
            let is_module = rows.iter().any(|(name, _)| *name == target);
            if is_module && target != module && !may_use.contains(&target) {
                let problem = format!(
                    "module {module} may not use {target}: modules form a DAG, so that each can be read and tested without those \
                     above it; move the shared part down, or add {target} to {module}'s row in ENGINE_MODULES \
                     (xtask/src/tidy/tables.rs)"
                );
                findings.push(Finding::error(&file.path, used.line, problem));
            }
        }
    }
    findings.dedup();
    findings
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
                    "ENGINE_MODULES: {module} uses {target}, which has no row before it: rows go from low to high"
                );
                findings.push(Finding::error("xtask/src/tidy/tables.rs", 1, problem));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
