//! The tracked files, as the checks see them.

use super::tokens::{self, Token};
use crate::process;
use std::process::Command;

/// Names of modules and directories for tests.
const TEST_NAMES: &[&str] = &["conformance", "tests", "test_support", "testing"];

/// All tracked text files, in path order.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Of a Rust file: its code, without comments and literals. Else empty.
    pub(super) tokens: Vec<Token>,
    /// Whether the file is only compiled for tests, which its name or its directory says.
    pub(super) is_test: bool,
}

impl File {
    fn new(path: &str, text: String) -> File {
        let tokens = if path.ends_with(".rs") { tokens::of(&text) } else { Vec::new() };
        File {
            path: path.to_string(),
            text,
            tokens,
            is_test: path.split('/').any(|part| TEST_NAMES.contains(&part.trim_end_matches(".rs"))),
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Of a file below `src/` of a crate: the crate's directory, and the path below `src/`.
    pub(super) fn crate_and_module(&self) -> Option<(&str, &str)> {
        let (dir, inside) = self.path.split_once("/src/")?;
        let name = if dir == "xtask" { dir } else { dir.strip_prefix("crates/")? };
        (!name.contains('/')).then_some((name, inside))
    }

    /// Numbered lines, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

impl Tree {
    /// What git tracks, or would track (so that a new file is checked before its first commit).
    /// Files that are not UTF-8 are left out.
    pub(super) fn tracked() -> Result<Tree, String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(process::root());
        let names = process::stdout_of(&mut list)?;
        let names = String::from_utf8(names).map_err(|_| "a tracked file's name is not UTF-8")?;
        let mut files = Vec::new();
        for path in names.split_terminator('\0') {
            let bytes = match std::fs::read(process::root().join(path)) {
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
        Tree { files: files.iter().map(|(path, text)| File::new(path, text.to_string())).collect() }
    }
}
