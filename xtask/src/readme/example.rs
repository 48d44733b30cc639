//! The examples of a markdown section, and whether what they print is what is written.

/// A `sh` block and the `text` block after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// Of the opening fence, from 1.
    pub(super) line: usize,
    pub(super) script: String,
    /// `None` when only success is expected.
    expected: Option<String>,
}

/// The examples between the heading `section` and the next heading of its level.
pub(super) fn of_section(markdown: &str, section: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_section = false;
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: String = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```")
                .fold(String::new(), |body, line| body + line + "\n");
            match (in_section, language, examples.last_mut()) {
                (true, "sh", _) => {
                    examples.push(Example { line: index + 1, script: body, expected: None })
                }
                (true, "text", Some(example)) if example.expected.is_none() => {
                    example.expected = Some(body)
                }
                _ => {}
            }
        } else if line.starts_with("## ") {
            in_section = line == section;
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
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => {
            (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

/// Whether `line` is as `wanted`, where `...` stands for any characters.
fn line_matches(wanted: &str, line: &str) -> bool {
    match wanted.split_once("...") {
        None => wanted == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| line_matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests;
