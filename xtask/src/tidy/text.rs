//! Rules for every tracked text file: its characters, the width of comments, and nothing that only
//! exists on one machine.

use super::config;
use super::finding::Finding;
use super::tree::{File, Tree};

/// The widest line of a comment or of prose.
pub(super) const COLUMNS_MAX: usize = 100;

/// Top directories of paths that differ from machine to machine.
const MACHINE_DIRS: &[&str] = &["home", "root", "tmp", "work", "Users"];

/// `hosts` are those that a URL may name, `russian` the directories with Russian texts.
pub(super) fn check(tree: &Tree, hosts: &[String], russian: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        findings.extend(characters(file, russian));
        findings.extend(wide_comments(file));
        for (line, text) in file.lines() {
            if let Some(dir) = MACHINE_DIRS.iter().find(|dir| starts_path(text, dir)) {
                let problem = format!(
                    "a path below /{dir}/ exists on one machine only: use a relative path or a temporary \
                     directory"
                );
                findings.push(Finding::new(&file.path, line, problem));
            }
            for host in url_hosts(text).filter(|host| hosts.iter().all(|known| known != host)) {
                let problem = format!(
                    "URL of {host}, which is not listed: if it is public and belongs here, add it to \
                     url-hosts in {}",
                    config::FILE
                );
                findings.push(Finding::new(&file.path, line, problem));
            }
        }
    }
    findings
}

fn characters(file: &File, russian: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has_russian = russian.iter().any(|dir| file.path.starts_with(dir.as_str()));
    let is_known = |c: char| c.is_ascii() || has_russian && ('\u{400}'..='\u{4ff}').contains(&c);
    for (index, line) in file.text.split('\n').enumerate() {
        let mut found = |problem| findings.push(Finding::new(&file.path, index + 1, problem));
        if line.contains('\r') {
            found("carriage return: lines end with a line feed only");
        } else if line.ends_with(' ') {
            found("space at the end of the line: remove it");
        }
        if line.contains('\t') {
            found("tab: indent with spaces");
        }
        if file.is_rust() && !file.is_test && !line.chars().all(is_known) {
            found("character outside ASCII: write it as an escape, or in other words");
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        let problem = "no line feed at the end of the file: add one";
        findings.push(Finding::new(&file.path, file.text.lines().count(), problem));
    }
    findings
}

/// Comments that are too wide. Tables, URLs and fenced code may be.
fn wide_comments(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let marker = match file.path.rsplit('.').next() {
        Some("rs") => "//",
        Some("toml" | "ci/run") => "#",
        _ => return findings,
    };
    let mut is_fenced = false;
    for (line, text) in file.lines() {
        let Some(comment) = text.trim_start().strip_prefix(marker) else { continue };
        let comment = comment.trim_start_matches(['/', '!', ' ']);
        is_fenced ^= comment.starts_with("```");
        let may_be_wide = is_fenced || comment.starts_with('|') || comment.contains("://");
        if text.chars().count() > COLUMNS_MAX && !may_be_wide {
            let problem = format!("comment of more than {COLUMNS_MAX} columns: break the line");
            findings.push(Finding::new(&file.path, line, problem));
        }
    }
    findings
}

/// Whether `text` has an absolute path below `/dir/`.
fn starts_path(text: &str, dir: &str) -> bool {
    let wanted = format!("/{dir}/");
    let inside_longer_path = |before: char| before.is_alphanumeric() || "._-~/})*".contains(before);
    text.match_indices(&wanted).any(|(at, _)| !text[..at].ends_with(inside_longer_path))
}

/// The hosts of all URLs in a line that name one (and not a placeholder).
fn url_hosts(text: &str) -> impl Iterator<Item = &str> {
    let after_scheme = text.match_indices("://").filter_map(|(at, separator)| {
        let scheme_is_http = text[..at].ends_with("http") || text[..at].ends_with("https");
        scheme_is_http.then(|| &text[at + separator.len()..])
    });
    let hosts = after_scheme.map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-')
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    });
    hosts.filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests;
