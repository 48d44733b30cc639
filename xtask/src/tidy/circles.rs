//! The imports between the files of a crate form no circle, so that each file can be read and
//! tested after those that it imports from.
//!
//! [`imports`](super::imports) says what counts as an import. In particular, a parent and a child
//! module form a circle if the child uses an item that the parent's file defines (`super::X`) and
//! the parent's code uses an item of the child; `mod child;` and `pub use child::Y;` alone do not.

use super::config::Ratchet;
use super::finding::Finding;
use super::imports::CrateImports;
use std::collections::{BTreeMap, BTreeSet};

/// An exception is the path of one file of a circle.
pub(super) fn check(
    crates: &[CrateImports<'_>],
    exceptions: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for one in crates {
        for circle in of_crate(one) {
            if !circle.iter().any(|file| exceptions.allows(&one.files[*file].path)) {
                findings.push(finding(one, &circle));
            }
        }
    }
    findings.extend(exceptions.unneeded());
    findings
}

/// The groups of files that all reach each other by imports.
pub(super) fn of_crate(one: &CrateImports<'_>) -> Vec<Vec<usize>> {
    let mut targets = vec![BTreeSet::new(); one.files.len()];
    for import in &one.imports {
        targets[import.from].insert(import.to);
    }
    let reached: Vec<BTreeSet<usize>> =
        (0..one.files.len()).map(|file| reached_from(file, &targets)).collect();
    let circle_of = |file: usize| -> Vec<usize> {
        reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect()
    };
    let circles: BTreeSet<Vec<usize>> = (0..one.files.len()).map(circle_of).collect();
    circles.into_iter().filter(|circle| !circle.is_empty()).collect()
}

/// All files that imports lead to from `file`; `file` itself if they lead back.
fn reached_from(file: usize, targets: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        open.extend(targets[next].iter().filter(|target| reached.insert(**target)));
    }
    reached
}

fn finding(one: &CrateImports<'_>, circle: &[usize]) -> Finding {
    let mut items: BTreeMap<(usize, usize), BTreeSet<&str>> = BTreeMap::new();
    for import in &one.imports {
        if circle.contains(&import.from) && circle.contains(&import.to) {
            let item = import.words.last().map_or("", String::as_str);
            items.entry((import.from, import.to)).or_default().insert(item);
        }
    }
    let arrows = items.into_iter().map(|((from, to), items)| {
        let items = items.into_iter().collect::<Vec<_>>().join(", ");
        format!("\n    {} -> {}: {items}", one.files[from].path, one.files[to].path)
    });
    let problem = format!(
        "imports of {} files form a circle; move what both sides need into a file below them:{}",
        circle.len(),
        arrows.collect::<String>()
    );
    Finding::new(&one.files[circle[0]].path, 1, problem)
}

#[cfg(test)]
mod tests;
