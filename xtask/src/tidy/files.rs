//! Rules for a Rust file as a whole: its size, its header, what must not be left in it, and whether
//! it may be unsafe.

use super::Finding;
use super::ratchet::Ratchet;
use super::tree::Tree;

const LINES_WARN: usize = 400;
const LINES_MAX: usize = 600;
/// An exemption may stand this far above the file's length before it has to come down.
const EXEMPTION_SLACK_LINES: usize = 20;

/// A file that may be longer than the rest.
pub(super) struct LongFile {
    pub(super) path: &'static str,
    pub(super) lines_max: usize,
    pub(super) reason: &'static str,
}

/// A file that may contain `unsafe`.
pub(super) struct UnsafeFile {
    pub(super) path: &'static str,
    pub(super) reason: &'static str,
}

/// A file is one concept. The exemptions only shrink.
pub(super) fn check_sizes(tree: &Tree, exemptions: &[LongFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let line_count = file.text.lines().count();
        let exemption = exemptions.iter().find(|row| row.path == file.path);
        let lines_max = exemption.map_or(LINES_MAX, |row| row.lines_max);
        if line_count > lines_max {
            let problem =
                format!("{line_count} lines, more than {lines_max}: divide it by concept");
            findings.push(Finding::error(&file.path, 1, problem));
        } else if line_count > LINES_WARN && exemption.is_none() {
            let problem =
                format!("{line_count} lines, more than {LINES_WARN}: does it hold two concepts?");
            findings.push(Finding::warning(&file.path, 1, problem));
        }
    }
    for row in exemptions {
        let line_count = tree.find(row.path).map_or(0, |file| file.text.lines().count());
        if line_count <= LINES_MAX {
            let problem = format!(
                "its exemption from the size limit ({}) is not needed any more: remove it from LONG_FILES",
                row.reason
            );
            findings.push(Finding::error(row.path, 1, problem));
        } else if line_count + EXEMPTION_SLACK_LINES < row.lines_max {
            let problem = format!(
                "has come down to {line_count} lines: lower its row in LONG_FILES, so that it does \
                 not grow again"
            );
            findings.push(Finding::error(row.path, 1, problem));
        }
    }
    findings
}

/// Every file says first what it is for.
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

/// What is fine while working and not in a commit.
pub(super) fn check_leftovers(tree: &Tree) -> Vec<Finding> {
    // In two parts, so that this file does not find itself.
    let marks = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];
    let macros = ["todo", "unimplemented", "dbg"];
    let mut findings = Vec::new();
    for file in tree.rust() {
        for window in file.tokens.windows(2) {
            if macros.contains(&window[0].text.as_str()) && window[1].text == "!" {
                let problem = format!(
                    "{}! is left: write what belongs there, or leave the whole item out",
                    window[0].text
                );
                findings.push(Finding::error(&file.path, window[0].line, problem));
            }
        }
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

/// `unsafe` stands in few files, each listed; that every block has a SAFETY comment is clippy's
/// check.
pub(super) fn check_unsafe(tree: &Tree, allowed: &[UnsafeFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed = Ratchet::new(allowed);
    for file in tree.rust() {
        let Some(token) = file.tokens.iter().find(|token| token.text == "unsafe") else {
            continue;
        };
        if !allowed.allows(|row| row.path == file.path) {
            findings.push(Finding::error(
                &file.path,
                token.line,
                "unsafe in a file that is not listed: find a safe way, or list the file with a reason in \
                 UNSAFE_FILES (xtask/src/tidy/tables.rs)",
            ));
        }
    }
    for row in allowed.unneeded() {
        let problem = format!(
            "nothing in it is unsafe any more ({}): remove it from UNSAFE_FILES",
            row.reason
        );
        findings.push(Finding::error(row.path, 1, problem));
    }
    findings
}

#[cfg(test)]
mod tests;
