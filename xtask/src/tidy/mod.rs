//! `cargo xtask tidy`: the rules that neither the compiler nor clippy checks.
//!
//! Each check is a pure function from the tracked files (and the tables of [`tables`]) to findings;
//! only [`run`] reads the disk. A rule with exceptions has a table with a reason in each row, and a
//! row that nothing needs any more is a finding itself.

mod circles;
mod files;
mod imports;
mod markdown;
mod modules;
mod packages;
mod paths;
mod ratchet;
mod results;
mod tables;
mod text;
mod tokens;
mod tree;

use crate::{Verdict, cargo};
use imports::CrateImports;
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
        Ok(metadata) => {
            findings.extend(packages::check_order(&metadata, tables::CRATE_ORDER));
            findings.extend(packages::check_licences(&tree, &metadata));
        }
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
    println!("{}", structure(&tree));
    Ok(error_count == 0)
}

/// How many modules and circles there are, and which module imports from most others.
fn structure(tree: &Tree) -> String {
    let crates = CrateImports::of_all(tree);
    let circle_count: usize = crates.iter().map(|one| circles::of_crate(one).len()).sum();
    let widths = crates.iter().flat_map(|one| {
        let modules = modules::used_modules(one).into_iter();
        modules.map(|(module, used)| (used.len(), format!("{}::{module}", one.name)))
    });
    let widths: Vec<(usize, String)> = widths.collect();
    let (fan_out, widest) = widths.iter().max().cloned().unwrap_or_default();
    format!(
        "tidy: {} modules in {} crates, {circle_count} circles of files, fan-out at most {fan_out} ({widest})",
        widths.len(),
        crates.len()
    )
}

/// All checks that need nothing but the files.
fn check(tree: &Tree) -> Vec<Finding> {
    let imports = CrateImports::of_all(tree);
    [
        circles::check(&imports, tables::CIRCLES),
        modules::check_order(&imports, tables::MODULES, tables::ORDER_EXCEPTIONS),
        modules::check_fan_out(&imports, tables::FAN_OUT_EXCEPTIONS),
        files::check_sizes(tree, tables::LONG_FILES),
        files::check_headers(tree),
        files::check_leftovers(tree),
        files::check_roots(tree, tables::ROOT_EXCEPTIONS),
        results::check(tree),
        text::check(tree, tables::URL_HOSTS),
        markdown::check(tree),
    ]
    .concat()
}
