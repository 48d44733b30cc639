//! `cargo xtask tidy`: the rules that neither the compiler nor clippy checks.
//!
//! Each check is a pure function from the tracked files and the [`config`] to findings; only
//! [`run`] reads the disk.

mod circles;
mod config;
mod files;
mod finding;
mod imports;
mod markdown;
mod modules;
mod packages;
mod paths;
mod results;
mod text;
mod tokens;
mod tree;

use crate::process::{self, Verdict, about};
use clap::ArgMatches;
use config::Config;
use imports::CrateImports;
use tree::Tree;

pub(crate) fn command() -> clap::Command {
    clap::Command::new("tidy").about(
        "Check rules that no compiler checks: order of crates and modules, file sizes, Markdown, licences",
    )
}

/// Checks every tracked file, prints the findings, and passes if there is none.
pub(crate) fn run(_: &ArgMatches) -> Verdict {
    let tree = Tree::tracked()?;
    let config = process::read(&process::root().join(config::FILE))?;
    let config: Config = toml::from_str(&config).map_err(about(config::FILE))?;
    let crates = CrateImports::of_all(&tree);
    let metadata = process::metadata()?;
    let exceptions = &config.exceptions;
    let mut findings = [
        packages::check_order(&metadata, &config.crates),
        packages::check_licences(&tree, &metadata),
        modules::check_order(&crates, &config.crates, &exceptions.order),
        modules::check_fan_out(&crates, &exceptions.fan_out),
        circles::check(&crates, &exceptions.circles),
        files::check_sizes(&tree, &exceptions.long_files),
        files::check_headers(&tree),
        files::check_declared(&tree),
        files::check_leftovers(&tree),
        files::check_roots(&tree, &exceptions.roots),
        results::check(&tree),
        text::check(&tree, &config.url_hosts, &config.russian),
        markdown::check(&tree),
    ]
    .concat();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "tidy: {} files, {}, {} findings",
        tree.files.len(),
        structure(&crates),
        findings.len()
    );
    Ok(findings.is_empty())
}

/// The number of modules and circles, and the module that imports from most others.
fn structure(crates: &[CrateImports<'_>]) -> String {
    let circle_count: usize = crates.iter().map(|one| circles::of_crate(one).len()).sum();
    let used = crates.iter().flat_map(|one| {
        let modules = modules::used_modules(one).into_iter();
        modules.map(|(module, used)| (used.len(), format!("{}::{module}", one.name)))
    });
    let used: Vec<(usize, String)> = used.collect();
    let (fan_out, widest) = used.iter().max().cloned().unwrap_or_default();
    format!(
        "{} modules, {circle_count} circles of imports, fan-out at most {fan_out} ({widest})",
        used.len()
    )
}
