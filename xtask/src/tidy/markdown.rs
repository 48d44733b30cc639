//! Rules for Markdown: one title, fences that close, links that lead somewhere, and lines of at
//! most 100 columns.

use super::finding::Finding;
use super::text::COLUMNS_MAX;
use super::tree::{File, Tree};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};
use std::ops::Range;

/// Generated from the help texts of settings.
const GENERATED: &str = "docs/configuration.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let markdown = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    markdown.flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found =
        |line: usize, problem: &str| findings.push(Finding::new(&file.path, line, problem));
    let line_at = |offset: usize| file.text[..offset].matches('\n').count() + 1;
    let mut title_count = 0;
    // Lines of code and tables, as offsets.
    let mut wide: Vec<Range<usize>> = Vec::new();
    for (event, range) in events(file) {
        let line = line_at(range.start);
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
                title_count += 1;
                match (title_count, line) {
                    (1, 1) => {}
                    (1, _) => found(line, "the title is not the first line: move it up"),
                    _ => found(line, "second title: use `##`, or another file"),
                }
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let is_closed = file.text[range.clone()].trim_end().ends_with("```");
                if matches!(kind, CodeBlockKind::Fenced(_)) && !is_closed {
                    found(line, "this fence is not closed");
                }
                wide.push(range);
            }
            Event::Start(Tag::Table(_) | Tag::HtmlBlock) => wide.push(range),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                if let Some(problem) = broken(tree, file, &dest_url) {
                    found(line, &problem);
                }
            }
            _ => {}
        }
    }
    if title_count == 0 {
        found(1, "no title: start with a line `# Title`");
    }
    let mut start = 0;
    for (index, line) in file.text.split_inclusive('\n').enumerate() {
        let is_wide = line.contains("://") || wide.iter().any(|range| range.contains(&start));
        if !is_wide && line.trim_end().chars().count() > COLUMNS_MAX && file.path != GENERATED {
            found(index + 1, "more than 100 columns: break the line");
        }
        start += line.len();
    }
    findings
}

fn events(file: &File) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(&file.text, Options::ENABLE_TABLES).into_offset_iter()
}

/// What is wrong with a link, if it is relative.
fn broken(tree: &Tree, from: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) =
        target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path) };
    let directory = format!("{path}/");
    let file = tree.find(&path);
    if file.is_none() && !tree.files.iter().any(|file| file.path.starts_with(&directory)) {
        return Some(format!("link to {path}, which is not in the repository: fix or remove it"));
    }
    let wanted = anchor?;
    let has_heading = file.is_some_and(|file| anchors(file).any(|anchor| anchor == wanted));
    (!has_heading).then(|| format!("link to #{wanted}, which is no heading of {path}: fix it"))
}

/// `target`, relative to the directory of `from`, as a path from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that GitHub gives the headings of a file.
fn anchors(file: &File) -> impl Iterator<Item = String> {
    let headings = events(file).filter_map(|(event, range)| match event {
        Event::Start(Tag::Heading { .. }) => Some(&file.text[range]),
        _ => None,
    });
    headings.map(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests;
