//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Each check is a pure function from the tracked files (and the tables of [`tables`]) to findings;
//! only [`run`] reads the disk. A rule with exceptions has a table with a reason in each row, and a
//! row that no file needs any more is a finding itself: the tables only shrink.

mod calls;
mod crates;
mod files;
mod lexer;
mod licences;
mod markdown;
mod modules;
mod paths;
mod ratchet;
mod results;
mod tables;
mod text;
mod tree;

use crate::{Verdict, cargo};
use std::fmt;
use tree::Tree;

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1.
    line: usize,
    /// What, why, and what to do instead.
    message: String,
    severity: Severity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Warning,
    Error,
}

impl Finding {
    fn error(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_string(), line, message: message.into(), severity: Severity::Error }
    }

    fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        write!(f, "{}:{}: {severity}{}", self.path, self.line, self.message)
    }
}

/// Checks every tracked file, prints the findings, and passes if none is an error.
pub(crate) fn run() -> Verdict {
    let tree = Tree::tracked()?;
    let mut findings = check(&tree);
    match cargo::metadata() {
        Ok(metadata) => findings.extend(licences::check(&tree, &metadata)),
        Err(problem) => findings.push(Finding::error("Cargo.lock", 1, problem)),
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let error_count = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    println!(
        "tidy: {} files, {error_count} errors, {} warnings",
        tree.files.len(),
        findings.len() - error_count
    );
    Ok(error_count == 0)
}

/// All checks that need nothing but the files.
fn check(tree: &Tree) -> Vec<Finding> {
    [
        crates::check(tree, tables::CRATE_ORDER),
        modules::check(tree, tables::ENGINE_MODULES),
        files::check_sizes(tree, tables::LONG_FILES),
        files::check_headers(tree),
        files::check_leftovers(tree),
        files::check_unsafe(tree, tables::UNSAFE_FILES),
        calls::check(tree, &tables::WORLD),
        calls::check(tree, &tables::WAITS),
        results::check(tree, tables::DROPPED_RESULTS),
        text::check(tree, tables::URL_HOSTS),
        markdown::check(tree),
    ]
    .concat()
}
