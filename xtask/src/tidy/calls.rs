//! What has a home is used only there. The world enters through kvant-env: no other crate reads a
//! clock, opens a file, starts a thread or asks for randomness by itself. Threads wait through
//! kvant-base: it tells a profiler for what.
//!
//! Why here and not in clippy's `disallowed_methods`: that list holds for the whole workspace, so
//! that kvant-env, tools and every test module would have to lift it one by one; here the
//! exceptions are one table with reasons, and one that is not needed any more is found.

use super::ratchet::Ratchet;
use super::tree::{File, Tree};
use super::{Finding, paths};

/// A part of the world, or of std, and where it may be touched.
pub(super) struct WorldCall {
    /// A path, with all below it, or a method without arguments, as `.read_dir()`.
    pub(super) call: &'static str,
    /// Directories whose purpose it is.
    pub(super) home: &'static [&'static str],
    /// What to do elsewhere.
    pub(super) instead: &'static str,
}

/// Calls that belong somewhere, and who may make them elsewhere.
pub(super) struct Rule {
    pub(super) calls: &'static [WorldCall],
    pub(super) exceptions: &'static [Exception],
    /// Where the exceptions are listed.
    pub(super) table: &'static str,
    /// What is wrong with such a call elsewhere.
    pub(super) why: &'static str,
}

/// A file that may make a call outside its home.
pub(super) struct Exception {
    pub(super) path: &'static str,
    pub(super) call: &'static str,
    pub(super) reason: &'static str,
}

/// Checks the product's code. Tests and tools are free.
pub(super) fn check(tree: &Tree, rule: &Rule) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(rule.exceptions);
    for file in tree.rust().filter(|file| !file.is_test && !file.is_tool()) {
        for (line, world) in made_by(file, rule.calls) {
            let at_home = world.home.iter().any(|dir| file.path.starts_with(dir));
            if !at_home && !exceptions.allows(|row| row.path == file.path && row.call == world.call)
            {
                let problem = format!("{} here: {}; {}", world.call, rule.why, world.instead);
                findings.push(Finding::error(&file.path, line, problem));
            }
        }
    }
    for row in exceptions.unneeded() {
        let problem = format!(
            "the exception for {} ({}) is not needed any more: remove it from {}",
            row.call, row.reason, rule.table
        );
        findings.push(Finding::error(row.path, 1, problem));
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Each line of the file that makes one of the calls.
fn made_by<'a>(file: &File, calls: &'a [WorldCall]) -> Vec<(usize, &'a WorldCall)> {
    let mut made = Vec::new();
    for path in paths::of(&file.path, &file.tokens).paths {
        made.extend(
            calls.iter().filter(|world| path.names(world.call)).map(|world| (path.line, world)),
        );
    }
    for window in file.tokens.windows(4) {
        let text: String = window.iter().map(|token| token.text.as_str()).collect();
        made.extend(
            calls.iter().filter(|world| world.call == text).map(|world| (window[0].line, world)),
        );
    }
    made
}

#[cfg(test)]
mod tests;
