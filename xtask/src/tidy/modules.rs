//! Which top-level module of a crate may import from which, and from how many.

use super::Finding;
use super::imports::{CrateImports, Import};
use super::ratchet::{Exception, Ratchet};
use std::collections::{BTreeMap, BTreeSet};

/// A module, or an item of it that stands lower than the rest (`module::Item`); and the rows that
/// it may use, each of which stands before it.
pub(super) type Row = (&'static str, &'static [&'static str]);

/// The modules of one crate, lowest first.
pub(super) struct CrateModules {
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
}

/// From how many other modules of its crate a module may import.
const FAN_OUT_MAX: usize = 12;

/// Checks that the rows have no cycle and that the code keeps to them. Tests and `lib.rs` or
/// `main.rs` may use everything. An exception is a crate without rows, or an import against the
/// order (`crate::module uses module`).
pub(super) fn check_order(
    crates: &[CrateImports<'_>],
    tables: &[CrateModules],
    exceptions: &[Exception],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tables.iter().flat_map(table_problems).collect();
    let mut exceptions = Ratchet::new(exceptions);
    for one in crates {
        if let Some(table) = tables.iter().find(|table| table.name == one.name) {
            findings.extend(breaches(one, table, &mut exceptions));
        } else if !exceptions.allows(|row| row.what == one.name) {
            let problem = format!("{} has no rows in MODULES ({TABLES}): add them", one.name);
            findings.push(Finding::error(&one.files[0].path, 1, problem));
        }
    }
    findings.extend(exceptions.unneeded_findings("ORDER_EXCEPTIONS"));
    findings
}

/// Checks that no module imports from too many others. An exception is `crate::module`.
pub(super) fn check_fan_out(crates: &[CrateImports<'_>], exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for one in crates {
        for (module, used) in used_modules(one) {
            let name = format!("{}::{module}", one.name);
            if used.len() > FAN_OUT_MAX && !exceptions.allows(|row| row.what == name) {
                let problem = format!(
                    "{name} imports from {} modules of its crate, more than {FAN_OUT_MAX}: divide it, or \
                     hand it what it needs ({})",
                    used.len(),
                    used.into_iter().collect::<Vec<_>>().join(", ")
                );
                findings.push(Finding::error(&path_of(one, module), 1, problem));
            }
        }
    }
    findings.extend(exceptions.unneeded_findings("FAN_OUT_EXCEPTIONS"));
    findings
}

/// Each module but the root, with the others of its crate that it imports from.
pub(super) fn used_modules<'a>(one: &CrateImports<'a>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in (0..one.files.len()).filter(|file| !one.is_root(*file)) {
        used.entry(one.top_module(file)).or_default();
    }
    for Import { from, to, .. } in &one.imports {
        let (module, target) = (one.top_module(*from), one.top_module(*to));
        if module != target
            && let Some(used) = used.get_mut(module)
        {
            used.insert(target);
        }
    }
    used
}

const TABLES: &str = "xtask/src/tidy/tables.rs";

/// Imports that the crate's rows do not allow, modules without a row and rows without a module.
fn breaches(
    one: &CrateImports<'_>,
    table: &CrateModules,
    exceptions: &mut Ratchet<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let modules = used_modules(one);
    for module in modules.keys().filter(|module| row(table, module).is_none()) {
        let problem = format!(
            "module {module} has no row in MODULES ({TABLES}): add it after all that it uses"
        );
        findings.push(Finding::error(&path_of(one, module), 1, problem));
    }
    for (name, _) in table.rows {
        let module = name.split("::").next().unwrap_or(name);
        if !modules.contains_key(module) {
            let problem = format!("{} has no module {module}: remove its row", table.name);
            findings.push(Finding::error(TABLES, 1, problem));
        }
    }
    for import in &one.imports {
        let module = one.top_module(import.from);
        let target = row_of(&import.words, table);
        if let (Some((_, may_use)), Some(target)) = (row(table, module), target)
            && module != one.top_module(import.to)
            && !may_use.contains(&target)
            && !exceptions.allows(|row| row.what == format!("{}::{module} uses {target}", one.name))
        {
            let problem = format!(
                "module {module} may not use {target}: modules form a DAG, so that each can be read and \
                 tested without those above it; move the shared part down, or add {target} to \
                 {module}'s row in MODULES ({TABLES})"
            );
            findings.push(Finding::error(&one.files[import.from].path, import.line, problem));
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

fn row<'a>(table: &'a CrateModules, module: &str) -> Option<&'a Row> {
    table.rows.iter().find(|(name, _)| *name == module)
}

/// The row that a path of the crate leads to: its item's, if that has one, or its module's.
fn row_of(words: &[String], table: &CrateModules) -> Option<&'static str> {
    let ["crate", module, rest @ ..] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let item = rest.first().map(|item| format!("{module}::{item}"));
    let is_target = |name: &str| item.as_deref() == Some(name) || *module == name;
    // Of both, the item's has the longer name.
    let names = table.rows.iter().map(|(name, _)| *name).filter(|name| is_target(name));
    names.max_by_key(|name| name.len())
}

/// A row that uses a module without a row before it would allow a cycle.
fn table_problems(table: &CrateModules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, (module, may_use)) in table.rows.iter().enumerate() {
        for target in *may_use {
            if !table.rows[..index].iter().any(|(name, _)| name == target) {
                let problem = format!(
                    "MODULES: {module} of {} uses {target}, which has no row before it: rows go from low \
                     to high",
                    table.name
                );
                findings.push(Finding::error(TABLES, 1, problem));
            }
        }
    }
    findings
}

/// The first file of a module.
fn path_of(one: &CrateImports<'_>, module: &str) -> String {
    let file = (0..one.files.len()).find(|file| one.top_module(*file) == module);
    file.map_or_else(|| TABLES.to_owned(), |file| one.files[file].path.clone())
}

#[cfg(test)]
mod tests;
