//! Licences: every package of the lock file, on every platform, must be usable under one of the
//! licences that `deny.toml` allows.
//!
//! This is the part of `cargo deny check licenses` that must hold on each change; it needs no tool
//! beyond cargo itself.

use super::Finding;
use super::tree::Tree;
use serde_json::Value;
use toml::Table;

/// `metadata` is the output of `cargo metadata`.
pub(super) fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let allowed = match allowed_licences(tree) {
        Ok(allowed) => allowed,
        Err(problem) => return vec![Finding::error("deny.toml", 1, problem)],
    };
    let lock = tree.find("Cargo.lock");
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !satisfied(licence, &allowed) {
            let wanted = format!("name = \"{name}\"");
            let line = lock
                .and_then(|file| file.lines().find(|(_, line)| *line == wanted))
                .map_or(1, |(line, _)| line);
            let problem = format!(
                "{name} has the licence {licence:?}, which deny.toml does not allow: choose another \
                 package, or add the licence after reading what it asks of us"
            );
            findings.push(Finding::error("Cargo.lock", line, problem));
        }
    }
    findings
}

fn allowed_licences(tree: &Tree) -> Result<Vec<String>, String> {
    let file = tree.find("deny.toml").ok_or("missing: it lists the licences that we allow")?;
    let table: Table = file.text.parse().map_err(|error| format!("not TOML: {error}"))?;
    let allowed = table
        .get("licenses")
        .and_then(|licences| licences.get("allow"))
        .and_then(|allow| allow.as_array());
    let allowed = allowed.ok_or("has no list `allow` in [licenses]")?;
    Ok(allowed.iter().filter_map(|licence| licence.as_str()).map(str::to_string).collect())
}

/// Whether an SPDX expression can be met with `allowed` licences only. `A/B` is the old way to
/// write `A OR B`.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&words, &mut at, allowed) == Some(true) && at == words.len()
}

/// `all OR all ...`; `None` for what is no expression.
fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut met = all_of(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(words, at, allowed)?;
    }
    Some(met)
}

/// `one AND one ...`, which binds tighter than OR.
fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut met = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed)?;
    }
    Some(met)
}

/// `LICENCE`, `LICENCE WITH EXCEPTION` or `( any )`.
fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let met = any_of(words, at, allowed)?;
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return closed.then_some(met);
    }
    let mut licence = word.to_string();
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
    }
    Some(allowed.contains(&licence))
}

#[cfg(test)]
mod tests;
