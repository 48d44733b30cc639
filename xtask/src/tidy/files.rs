//! Rules for a Rust file as a whole: its size, its header, its declaration, and what its crate's
//! root denies.

use super::config::Ratchet;
use super::finding::Finding;
use super::paths::module_of;
use super::tokens::Token;
use super::tree::{File, Tree};
use std::collections::BTreeMap;

const LINES_MAX: usize = 600;

/// A file is one concept. An exception is a path.
pub(super) fn check_sizes(tree: &Tree, exceptions: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust() {
        let line_count = file.text.lines().count();
        if line_count > LINES_MAX && !exceptions.allows(&file.path) {
            let problem =
                format!("{line_count} lines, more than {LINES_MAX}: divide it by concept");
            findings.push(Finding::new(&file.path, 1, problem));
        }
    }
    findings.extend(exceptions.unneeded());
    findings
}

/// Every file starts with its purpose.
pub(super) fn check_headers(tree: &Tree) -> Vec<Finding> {
    let without = tree.rust().filter(|file| !file.is_test && !file.text.starts_with("//! "));
    let problem = "no header: start with `//!` and the file's purpose, invariants and threads";
    without.map(|file| Finding::new(&file.path, 1, problem)).collect()
}

/// Every file below `src/` is declared by a `mod`: the compiler reads no other.
pub(super) fn check_declared(tree: &Tree) -> Vec<Finding> {
    let with_module = |file| Some(((crate_of(file)?, module_of(&file.path)), file));
    let modules: BTreeMap<(&str, Vec<String>), &File> =
        tree.rust().filter_map(with_module).collect();
    let mut findings = Vec::new();
    for ((name, module), file) in &modules {
        let Some((last, outer)) = module.split_last() else { continue };
        // A module without a file is inline: the nearest file around it declares its children.
        let mut parents = (0..=outer.len()).rev().map(|len| (*name, outer[..len].to_vec()));
        let parent = parents.find_map(|parent| modules.get(&parent));
        let declares = |tokens: &[Token]| {
            tokens.windows(3).any(|texts| [0, 1, 2].map(|at| &texts[at].text) == ["mod", last, ";"])
        };
        if !parent.is_some_and(|parent| declares(&parent.tokens)) {
            let problem = "no `mod` declares this file: declare or remove it";
            findings.push(Finding::new(&file.path, 1, problem));
        }
    }
    findings
}

fn crate_of(file: &File) -> Option<&str> {
    file.crate_and_module().map(|(name, _)| name)
}

/// Marks of unfinished work in comments. Clippy denies the macros for it.
pub(super) fn check_leftovers(tree: &Tree) -> Vec<Finding> {
    // In two parts, so that this file does not find itself.
    let marks = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (line, text) in file.lines() {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            if let Some(mark) = words.find(|word| marks.contains(word)) {
                let problem = format!(
                    "{mark} is left: do it, or open an issue and say in plain words what is missing"
                );
                findings.push(Finding::new(&file.path, line, problem));
            }
        }
    }
    findings
}

/// What the root of each product crate denies: the calls and types of `clippy.toml`, and dropped
/// results.
const ROOT_DENIES: [&str; 2] = [
    "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]\n",
    "#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]\n",
];

/// An exception is a crate's directory.
pub(super) fn check_roots(tree: &Tree, exceptions: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust() {
        let (name, inside) = file.crate_and_module().unwrap_or_default();
        if matches!(inside, "lib.rs" | "main.rs")
            && name != "xtask"
            && !ROOT_DENIES.iter().all(|line| file.text.contains(line))
            && !exceptions.allows(name)
        {
            let problem = format!("a crate's root has the lines\n{}", ROOT_DENIES.concat());
            findings.push(Finding::new(&file.path, 1, problem.trim_end()));
        }
    }
    findings.extend(exceptions.unneeded());
    findings
}

#[cfg(test)]
mod tests;
