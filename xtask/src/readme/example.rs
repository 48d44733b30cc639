//! The examples of a Markdown section, and whether they print the expected output.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

/// A `sh` block and the `text` block after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// Of the opening fence, from 1.
    pub(super) line: usize,
    pub(super) script: String,
    /// `None` if only success is expected.
    expected: Option<String>,
}

/// The examples between the heading `section` and the next heading of its level.
pub(super) fn of_section(markdown: &str, section: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_section = false;
    let mut language = String::new();
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                in_section = markdown[range].trim_end() == section;
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(name))) => {
                language = name.to_string();
                if in_section && language == "sh" {
                    let line = markdown[..range.start].lines().count() + 1;
                    examples.push(Example { line, script: String::new(), expected: None });
                }
            }
            Event::End(TagEnd::CodeBlock) => language.clear(),
            Event::Text(text) if in_section => match (language.as_str(), examples.last_mut()) {
                ("sh", Some(example)) => example.script += &text,
                ("text", Some(example)) => *example.expected.get_or_insert_default() += &text,
                _ => {}
            },
            _ => {}
        }
    }
    examples
}

impl Example {
    /// What was expected and what was printed, if they differ.
    pub(super) fn difference(&self, printed: &str) -> Option<String> {
        let expected = self.expected.as_deref()?;
        let wanted: Vec<&str> = expected.lines().collect();
        let lines: Vec<&str> = printed.lines().map(|line| line.trim_end()).collect();
        (!lines_match(&wanted, &lines))
            .then(|| format!("expected\n{expected}\nbut it printed\n{printed}"))
    }
}

/// Whether `lines` are as `wanted`, where a line `...` stands for any number of lines.
fn lines_match(wanted: &[&str], lines: &[&str]) -> bool {
    match (wanted, lines) {
        ([], _) => lines.is_empty(),
        (["...", rest @ ..], _) => {
            (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..]))
        }
        ([first, rest @ ..], [line, others @ ..]) => {
            line_matches(first, line) && lines_match(rest, others)
        }
        _ => false,
    }
}

/// Whether `line` is as `wanted`, where `...` stands for any characters.
fn line_matches(wanted: &str, line: &str) -> bool {
    let Some((before, after)) = wanted.split_once("...") else { return wanted == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    (0..=rest.len()).filter_map(|at| rest.get(at..)).any(|rest| line_matches(after, rest))
}

#[cfg(test)]
mod tests;
