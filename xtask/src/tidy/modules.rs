//! Which top-level module of a crate may import from which, and from how many.

use super::config::{self, Crate, Ratchet};
use super::finding::Finding;
use super::imports::{CrateImports, Import};
use std::collections::{BTreeMap, BTreeSet};

/// How many other modules of its crate a module may import from.
const FAN_OUT_MAX: usize = 12;

/// Checks that the rows of each crate have no cycle and that its code keeps to them. Tests and
/// `lib.rs` or `main.rs` may use everything. An exception is a crate without rows, or an import
/// against the order (`crate::module uses module`).
pub(super) fn check_order(
    crates: &[CrateImports<'_>],
    rows: &[Crate],
    exceptions: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rows.iter().flat_map(row_problems).collect();
    let mut exceptions = Ratchet::new(exceptions);
    for one in crates {
        if let Some(rows) =
            rows.iter().find(|rows| rows.name == one.name && !rows.modules.is_empty())
        {
            findings.extend(module_problems(one, rows));
            findings.extend(import_problems(one, rows, &mut exceptions));
        } else if !exceptions.allows(one.name) {
            let problem = format!("{} has no modules in {}: add them", one.name, config::FILE);
            findings.push(Finding::new(&one.files[0].path, 1, problem));
        }
    }
    findings.extend(exceptions.unneeded());
    findings
}

/// Checks that no module imports from too many others. An exception is `crate::module`.
pub(super) fn check_fan_out(
    crates: &[CrateImports<'_>],
    exceptions: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for one in crates {
        for (module, used) in used_modules(one) {
            let name = format!("{}::{module}", one.name);
            if used.len() > FAN_OUT_MAX && !exceptions.allows(&name) {
                let problem = format!(
                    "{name} imports from {} modules of its crate, more than {FAN_OUT_MAX}: divide it, or \
                     pass it what it needs ({})",
                    used.len(),
                    used.into_iter().collect::<Vec<_>>().join(", ")
                );
                findings.push(Finding::new(path_of(one, module), 1, problem));
            }
        }
    }
    findings.extend(exceptions.unneeded());
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

/// A row that uses a module without a row before it would allow a cycle.
fn row_problems(one: &Crate) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, row) in one.modules.iter().enumerate() {
        let (before, may_use) = (&one.modules[..index], row.iter().skip(1));
        for target in may_use.filter(|target| before.iter().all(|row| row[0] != **target)) {
            let problem = format!(
                "{} of {} uses {target}, which has no row before it: rows go from low to high",
                row[0], one.name
            );
            findings.push(Finding::new(config::FILE, 1, problem));
        }
    }
    findings
}

/// Modules without a row, and rows without a module.
fn module_problems(one: &CrateImports<'_>, rows: &Crate) -> Vec<Finding> {
    let modules = used_modules(one);
    let rows: BTreeSet<&str> = rows.modules.iter().map(|row| module_of(&row[0])).collect();
    let without_row = modules.keys().filter(|module| !rows.contains(**module)).map(|module| {
        let problem = format!("module {module} has no row in {}: add it", config::FILE);
        Finding::new(path_of(one, module), 1, problem)
    });
    let without_module = rows.iter().filter(|row| !modules.contains_key(**row)).map(|row| {
        let problem = format!("{} has no module {row}: remove its row", one.name);
        Finding::new(config::FILE, 1, problem)
    });
    without_row.chain(without_module).collect()
}

/// Imports that the rows do not allow.
fn import_problems(
    one: &CrateImports<'_>,
    rows: &Crate,
    exceptions: &mut Ratchet<'_>,
) -> BTreeSet<Finding> {
    let mut findings = BTreeSet::new();
    for import in &one.imports {
        let module = one.top_module(import.from);
        let own_row = rows.modules.iter().find(|row| row[0] == module);
        if let (Some(own_row), Some(target)) = (own_row, row_of(&import.words, rows))
            && module != module_of(target)
            && !own_row.contains(target)
            && !exceptions.allows(&format!("{}::{module} uses {target}", one.name))
        {
            let problem = format!(
                "module {module} may not use {target}: modules form a DAG, so that each can be read and \
                 tested without those above it; move the shared part down, or add {target} to \
                 {module}'s row in {}",
                config::FILE
            );
            findings.insert(Finding::new(&one.files[import.from].path, import.line, problem));
        }
    }
    findings
}

/// The row that a path of the crate leads to: its item's, if that has one, or its module's.
fn row_of<'a>(words: &[String], rows: &'a Crate) -> Option<&'a String> {
    let [_, module, rest @ ..] = words else { return None };
    let item = format!("{module}::{}", rest.first().map_or("", String::as_str));
    let is_target = |name: &str| item == name || module == name;
    // Of both, the item's has the longer name.
    rows.modules
        .iter()
        .map(|row| &row[0])
        .filter(|name| is_target(name))
        .max_by_key(|name| name.len())
}

fn module_of(row: &str) -> &str {
    row.split("::").next().unwrap_or(row)
}

/// The first file of a module.
fn path_of<'a>(one: &CrateImports<'a>, module: &str) -> &'a str {
    let file = (0..one.files.len()).find(|file| one.top_module(*file) == module);
    file.map_or(config::FILE, |file| &one.files[file].path)
}

#[cfg(test)]
mod tests;
