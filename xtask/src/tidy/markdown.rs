//! Rules for markdown: one title, fences that close, and links that lead somewhere.

use super::Finding;
use super::tree::{File, Tree};

/// Checks every markdown file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let prose: Vec<(usize, &str)> = prose(file);
        let mut titles = prose.iter().filter(|(_, line)| line.starts_with("# "));
        match titles.next() {
            None => findings.push(Finding::error(
                &file.path,
                1,
                "no title: start with a line `# Title`",
            )),
            Some((1, _)) => {}
            Some((line, _)) => findings.push(Finding::error(
                &file.path,
                *line,
                "the title is not the first line: move it up",
            )),
        }
        findings.extend(titles.map(|(line, _)| {
            Finding::error(&file.path, *line, "second title: use `##`, or another file")
        }));
        if prose
            .last()
            .is_some_and(|(line, text)| is_fence(text) && *line < file.text.lines().count())
        {
            findings.push(Finding::error(
                &file.path,
                prose[prose.len() - 1].0,
                "this fence is not closed",
            ));
        }
        for (line, text) in &prose {
            for target in link_targets(text) {
                if let Some(problem) = broken(tree, file, target) {
                    findings.push(Finding::error(&file.path, *line, problem));
                }
            }
        }
    }
    findings
}

/// Lines outside fenced code; of a fence the opening line stays.
fn prose(file: &File) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (line, text) in file.lines() {
        let was_fenced = fenced;
        fenced ^= is_fence(text);
        if !was_fenced {
            lines.push((line, text));
        }
    }
    lines
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// Targets of `[text](target)` and `[name]: target`, code spans left out.
fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    if let Some((name, target)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        targets.push(target.trim());
    }
    // Every second part is inside backquotes; a link whose text is code is cut there, and its
    // target follows.
    for part in line.split('`').step_by(2) {
        for (at, opening) in part.match_indices("](") {
            let rest = &part[at + opening.len()..];
            targets.extend(rest.split_once(')').map(|(target, _)| target));
        }
    }
    targets
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
        return Some(format!("link to {path}, which is not in the repository: mend or remove it"));
    }
    let wanted = anchor?;
    let has_heading = file.is_some_and(|file| {
        prose(file).iter().any(|(_, line)| heading_anchor(line).as_deref() == Some(wanted))
    });
    (!has_heading).then(|| format!("link to #{wanted}, which is no heading of {path}: mend it"))
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

/// The anchor that GitHub gives a heading.
fn heading_anchor(line: &str) -> Option<String> {
    let heading =
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?;
    let kept = heading.to_lowercase();
    Some(
        kept.chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect(),
    )
}

#[cfg(test)]
mod tests;
