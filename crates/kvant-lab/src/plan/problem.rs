//! What is wrong with a plan, and where.

use std::fmt;
use std::path::PathBuf;

/// A problem of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line and column, both from 1, the column in characters; `None` for the whole file.
    pub place: Option<(usize, usize)>,
    /// What is wrong, and what is expected.
    pub sentence: String,
}

/// Every problem of a plan, in the order of the text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub path: PathBuf,
    /// Its problems.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    /// A line each, such as `plan.toml:3:12: duration: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            write!(f, "{end}{}:", self.path.display())?;
            if let Some((line, column)) = problem.place {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " {}", problem.sentence)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Line and column of a byte offset, both from 1.
pub(super) fn place(text: &str, at_bytes: usize) -> (usize, usize) {
    let before = text.get(..at_bytes).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    (line, 1 + before[line_start..].chars().count())
}
