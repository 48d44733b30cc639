//! Rules about packages, checked on the output of `cargo metadata`: crates of the product form a
//! chain, and every package of the lock file has a licence that `deny.toml` allows.
//!
//! The second is the part of `cargo deny check` that must hold on each change.

use super::config::{self, Crate};
use super::finding::Finding;
use super::tree::Tree;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use toml::Table;

/// Packages that the product must not use directly, and their replacements.
const BANNED: &[(&str, &str)] = &[("rand", "kvant_env::rng, which a seed replays")];

/// `order` lists the crates, lowest first: each depends only on crates before it.
pub(super) fn check_order(metadata: &Value, order: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages(metadata) {
        let name = text(package, "name");
        let Some((_, manifest)) = text(package, "manifest_path").rsplit_once("/crates/") else {
            continue;
        };
        let manifest = format!("crates/{manifest}");
        let mut found = |problem: String| findings.push(Finding::new(&manifest, 1, problem));
        let Some(position) = order.iter().position(|known| known.name == name) else {
            found(format!("{name} has no place among the crates of {}", config::FILE));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let dependency = text(dependency, "name");
            if order[position..].iter().any(|above| above.name == dependency) {
                found(format!(
                    "{name} depends on {dependency}, which stands above it: crates form a chain, so that \
                     each can be understood from those below it; move the shared part down"
                ));
            }
            for (_, instead) in BANNED.iter().filter(|(banned, _)| *banned == dependency) {
                found(format!("{name} depends on {dependency}: use {instead}"));
            }
        }
    }
    findings
}

pub(super) fn check_licences(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let allowed = match allowed_licences(tree) {
        Ok(allowed) => allowed,
        Err(problem) => return vec![Finding::new("deny.toml", 1, problem)],
    };
    let mut findings = Vec::new();
    for package in packages(metadata) {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        if !is_satisfied(licence, &allowed) {
            let problem = format!(
                "{name} has the licence {licence:?}, which deny.toml does not allow: choose another \
                 package, or add the licence after reading what it asks of us"
            );
            findings.push(Finding::new("Cargo.lock", 1, problem));
        }
    }
    findings
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn allowed_licences(tree: &Tree) -> Result<Vec<String>, String> {
    let file = tree.find("deny.toml").ok_or("missing: it lists the licences that we allow")?;
    let table: Table = file.text.parse().map_err(|error| format!("not TOML: {error}"))?;
    let allowed = table.get("licenses").and_then(|licences| licences.get("allow")?.as_array());
    let allowed = allowed.ok_or("has no list `allow` in [licenses]")?;
    Ok(allowed.iter().filter_map(|licence| licence.as_str()).map(str::to_owned).collect())
}

/// Whether an SPDX expression can be met with `allowed` licences only.
fn is_satisfied(expression: &str, allowed: &[String]) -> bool {
    // Old manifests write `A/B` for `A OR B`.
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|licence| allowed.contains(&licence.to_string()))
    })
}

#[cfg(test)]
mod tests;
