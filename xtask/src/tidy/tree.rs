//! The tracked files, as the checks see them.

use super::tokens::{self, Token};
use crate::cargo;
use std::process::Command;

/// Directories whose code is a tool for developers, not part of the product: it may touch the world
/// directly.
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
    /// Whether the file is only compiled for tests: `foo/tests.rs`, anything under a `tests/`
    /// directory, or a module that its parent declares for tests only.
    pub(super) is_test: bool,
}

impl File {
    fn new(path: &str, text: String) -> File {
        let tokens = if path.ends_with(".rs") { tokens::of(&text) } else { Vec::new() };
        File {
            path: path.to_string(),
            text,
            tokens,
            is_test: path.split('/').any(|part| matches!(part, "tests" | "tests.rs")),
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_tool(&self) -> bool {
        TOOLS.iter().any(|dir| self.path.starts_with(dir))
    }

    /// Of a file below `src/` of a crate: the crate's directory, and the path below `src/`.
    pub(super) fn crate_and_module(&self) -> Option<(&str, &str)> {
        let (dir, inside) = self.path.split_once("/src/")?;
        let name = if dir == "xtask" { dir } else { dir.strip_prefix("crates/")? };
        (!name.contains('/')).then_some((name, inside))
    }

    /// The modules that this file declares with `#[cfg(test)] mod name;`, as paths without `.rs` or
    /// `/mod.rs`.
    fn test_modules(&self) -> Vec<String> {
        let (dir, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let dir = match name {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_string(),
            name => format!("{dir}/{}", name.trim_end_matches(".rs")),
        };
        let mut modules = Vec::new();
        let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
        for (index, window) in self.tokens.windows(attribute.len()).enumerate() {
            if !window.iter().map(|token| token.text.as_str()).eq(attribute) {
                continue;
            }
            // The item's words up to its name, without a visibility.
            let item =
                self.tokens[index + attribute.len()..].iter().map(|token| token.text.as_str());
            let mut item =
                item.skip_while(|word| matches!(*word, "pub" | "(" | "crate" | "super" | ")"));
            if let (Some("mod"), Some(name), Some(";")) = (item.next(), item.next(), item.next()) {
                modules.push(format!("{dir}/{name}"));
            }
        }
        modules
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
        Ok(Tree::new(files))
    }

    fn new(mut files: Vec<File>) -> Tree {
        let modules: Vec<String> = files.iter().flat_map(File::test_modules).collect();
        for file in &mut files {
            file.is_test |= modules.iter().any(|module| {
                let rest = file.path.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            });
        }
        Tree { files }
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree::new(files.iter().map(|(path, text)| File::new(path, text.to_string())).collect())
    }
}

#[cfg(test)]
mod tests;
