//! Crate order: a crate depends only on crates that stand before it.

use super::Finding;
use super::tree::Tree;
use toml::Table;

/// `order` names the crates of `crates/`, lowest first.
pub(super) fn check(tree: &Tree, order: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_manifest = |path: &str| path.starts_with("crates/") && path.ends_with("/Cargo.toml");
    for file in tree.files.iter().filter(|file| is_manifest(&file.path)) {
        let manifest: Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(Finding::error(&file.path, 1, format!("not TOML: {error}")));
                continue;
            }
        };
        let name = manifest
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(|name| name.as_str());
        let Some(position) = order.iter().position(|known| Some(*known) == name) else {
            let problem = "this crate has no place in the crate order: give it one in CRATE_ORDER \
                 (xtask/src/tidy/tables.rs)";
            findings.push(Finding::error(&file.path, 1, problem));
            continue;
        };
        for dependency in dependencies(&manifest) {
            if order[position..].contains(&dependency.as_str()) || dependency == "xtask" {
                let line = file
                    .lines()
                    .find(|(_, line)| line.starts_with(&dependency))
                    .map_or(1, |(line, _)| line);
                findings.push(Finding::error(
                    &file.path,
                    line,
                    format!(
                        "{} depends on {dependency}, which stands above it: crates form a chain, so that each \
                         can be understood from those below it; move the shared part down",
                        order[position]
                    ),
                ));
            }
        }
    }
    findings
}

/// Names in all dependency tables, those of targets included.
fn dependencies(manifest: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => {
                names.extend(table.keys().cloned())
            }
            "target" => names.extend(
                table.values().filter_map(|target| target.as_table()).flat_map(dependencies),
            ),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests;
