//! Rules for a Rust file as a whole: its size, its header, and what its crate's root must deny.

use super::Finding;
use super::ratchet::{Exception, Ratchet};
use super::tree::Tree;

const LINES_WARN: usize = 400;
const LINES_MAX: usize = 600;

/// A file is one concept. An exception is a path.
pub(super) fn check_sizes(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust() {
        let line_count = file.text.lines().count();
        if line_count > LINES_MAX && !exceptions.allows(|row| row.what == file.path) {
            let problem =
                format!("{line_count} lines, more than {LINES_MAX}: divide it by concept");
            findings.push(Finding::error(&file.path, 1, problem));
        } else if (LINES_WARN + 1..=LINES_MAX).contains(&line_count) {
            let problem =
                format!("{line_count} lines, more than {LINES_WARN}: does it hold two concepts?");
            findings.push(Finding::warning(&file.path, 1, problem));
        }
    }
    findings.extend(exceptions.unneeded_findings("LONG_FILES"));
    findings
}

/// Every file starts with what it is for.
pub(super) fn check_headers(tree: &Tree) -> Vec<Finding> {
    let without = tree.rust().filter(|file| !file.is_test && !file.text.starts_with("//! "));
    without
        .map(|file| {
            Finding::error(
                &file.path,
                1,
                "no header: start with `//!` and the file's purpose, invariants and threads",
            )
        })
        .collect()
}

/// Marks of unfinished work. Clippy denies the macros for it.
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
                findings.push(Finding::error(&file.path, line, problem));
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
pub(super) fn check_roots(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust() {
        let (name, inside) = file.crate_and_module().unwrap_or_default();
        if matches!(inside, "lib.rs" | "main.rs")
            && !file.is_tool()
            && !ROOT_DENIES.iter().all(|line| file.text.contains(line))
            && !exceptions.allows(|row| row.what == name)
        {
            let problem = format!("a crate's root has the lines\n{}", ROOT_DENIES.concat());
            findings.push(Finding::error(&file.path, 1, problem.trim_end()));
        }
    }
    findings.extend(exceptions.unneeded_findings("ROOT_EXCEPTIONS"));
    findings
}

#[cfg(test)]
mod tests;
