//! The tracked files, as the checks see them.

use super::lexer::{self, Token};
use crate::cargo;
use std::process::Command;

/// Directories whose code is a tool for developers, not part of the product: it may touch the world directly.
const TOOLS: &[&str] = &["bench/", "xtask/"];

/// All tracked text files, in path order.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One tracked text file.
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Of a Rust file: its code, without comments and literals. Else empty.
    pub(super) tokens: Vec<Token>,
}

impl File {
    fn new(path: &str, text: String) -> File {
        let tokens = if path.ends_with(".rs") {
            lexer::tokens(&lexer::mask(&text))
        } else {
            Vec::new()
        };
        File {
            path: path.to_string(),
            text,
            tokens,
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is only compiled for tests: `foo/tests.rs`, anything under a `tests/` directory, and `testing.rs`.
    pub(super) fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "testing" | "testing.rs"))
    }

    pub(super) fn is_tool(&self) -> bool {
        TOOLS.iter().any(|dir| self.path.starts_with(dir))
    }

    /// Numbered lines, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

impl Tree {
    /// What git tracks, or would track (so that a new file is checked before its first commit). Files that are not UTF-8 are left out.
    pub(super) fn tracked() -> Result<Tree, String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(cargo::root());
        let names = cargo::stdout_of(&mut list)?;
        let names = String::from_utf8(names).map_err(|_| "a tracked file's name is not UTF-8")?;
        let mut files = Vec::new();
        for path in names.split_terminator('\0') {
            let bytes = match std::fs::read(cargo::root().join(path)) {
                Ok(bytes) => bytes,
                // Removed, but not yet in the index; or a link to a directory.
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(format!("{path}: {error}")),
            };
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(path, text));
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files
                .iter()
                .map(|(path, text)| File::new(path, text.to_string()))
                .collect(),
        }
    }
}
