//! The paths that a Rust file names, with what its `use` lines say about their first word.
//!
//! This is a reading of tokens, not name resolution: a path is followed through the imports of its
//! own file, and `crate`, `self` and `super` through the file's place in its crate. That catches
//! everything but a deliberate disguise.

use super::lexer::{Token, is_word};
use std::collections::HashMap;

/// A path of two or more words, or an import, as far as it could be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    /// The words; `*` is the last of a glob import.
    pub(super) words: Vec<String>,
    /// From 1.
    pub(super) line: usize,
    /// Whether the first word is the name of a crate or `crate`, not of something that the file
    /// does not explain.
    pub(super) resolved: bool,
}

impl NamedPath {
    /// Whether this names `target` (as `std::time::Instant::now`) or something below it, or may
    /// import it by a glob.
    pub(super) fn names(&self, target: &str) -> bool {
        let target: Vec<&str> = target.split("::").collect();
        let starts_with = |words: &[String], target: &[&str]| {
            words.len() >= target.len()
                && words.iter().zip(target).all(|(word, wanted)| word == wanted)
        };
        if let [parent @ .., last] = &self.words[..]
            && last == "*"
        {
            let is_parent = target.len() > parent.len()
                && parent.iter().zip(&target).all(|(word, wanted)| word == wanted);
            return is_parent && parent.len() > 1 || starts_with(parent, &target);
        }
        // `Instant::now` in a module that has the type by `use super::*`.
        let by_its_end = !self.resolved
            && target.len() > 2
            && starts_with(&self.words, &target[target.len() - 2..]);
        by_its_end || starts_with(&self.words, &target)
    }
}

/// The paths of a file, and the names that it imports.
pub(super) struct FilePaths {
    /// The file's own module, as words below `crate`.
    pub(super) module: Vec<String>,
    pub(super) paths: Vec<NamedPath>,
    /// What each imported name stands for.
    pub(super) imports: HashMap<String, Vec<String>>,
}

/// All paths and imports in the tokens of the file at `path` (relative to the root).
pub(super) fn of(path: &str, tokens: &[Token]) -> FilePaths {
    let mut imports = Vec::new();
    let mut mentions = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // `use<'a>` is a bound, not an import.
        if tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<") {
            let first = imports.len();
            let is_reexport = at > 0 && matches!(tokens[at - 1].text.as_str(), "pub" | ")");
            at = read_import(tokens, at + 1, &[], &mut imports);
            imports[first..].iter_mut().for_each(|import| import.is_reexport = is_reexport);
            continue;
        }
        let (words, end) = read_words(tokens, at);
        if words.len() > 1 {
            mentions.push((words, tokens[at].line));
        }
        at = end.max(at + 1);
    }
    let module = module_of(path);
    let occurrences = |name: &str| tokens.iter().filter(|token| token.text == name).take(2).count();
    let names: HashMap<&str, &[String]> =
        imports.iter().map(|import| (import.name.as_str(), &import.words[..])).collect();
    let used = imports.iter().filter(|import| !import.is_reexport || occurrences(&import.name) > 1);
    let imported = used.map(|import| (import.words.clone(), import.line));
    let paths = imported
        .chain(mentions)
        .map(|(words, line)| follow(words, line, &names, &module))
        .collect();
    let followed = imports.iter().map(|import| {
        let path = follow(import.words.clone(), import.line, &names, &module);
        (import.name.clone(), path.words)
    });
    let imports = followed.collect();
    FilePaths { module, paths, imports }
}

/// What one name of a `use` line stands for.
struct Import {
    name: String,
    words: Vec<String>,
    line: usize,
    is_reexport: bool,
}

/// The longest path that starts at token `at`, and the token after it.
fn read_words(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    while let Some(token) = tokens.get(at)
        && token.text.starts_with(is_word)
    {
        words.push(token.text.clone());
        at += 1;
        match &tokens[at..] {
            [separator, word, ..] if separator.text == "::" && word.text.starts_with(is_word) => {
                at += 1
            }
            _ => break,
        }
    }
    (words, at)
}

/// Reads the import tree at `at`, below `prefix`, and returns the token after it.
fn read_import(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    imports: &mut Vec<Import>,
) -> usize {
    let text_at = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let line = tokens.get(at).map_or(0, |token| token.line);
    if text_at(at) == "::" {
        at += 1;
    }
    let (words, end) = read_words(tokens, at);
    let mut words = [prefix, &words].concat();
    at = end;
    if text_at(at) == "::" {
        at += 1;
    }
    match text_at(at) {
        "{" => {
            at += 1;
            while !matches!(text_at(at), "}" | "") {
                at = if text_at(at) == "," {
                    at + 1
                } else {
                    read_import(tokens, at, &words, imports).max(at + 1)
                };
            }
            at + 1
        }
        "*" => {
            words.push("*".to_string());
            imports.push(Import { name: String::new(), words, line, is_reexport: false });
            at + 1
        }
        _ => {
            // `a::{self}` is `a`.
            if words.len() > 1 && words.last().is_some_and(|word| word == "self") {
                words.pop();
            }
            let mut name = words.last().cloned().unwrap_or_default();
            if text_at(at) == "as" {
                name = text_at(at + 1).to_string();
                at += 2;
            }
            imports.push(Import { name, words, line, is_reexport: false });
            at
        }
    }
}

/// The module of the file at `path`, as words below `crate`.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or("", |(_, inside)| inside);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut words: Vec<String> = inside.split('/').map(str::to_string).collect();
    if matches!(words.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        words.pop();
    }
    words
}

/// Replaces the first word by what it stands for, as long as that is known.
fn follow(
    mut words: Vec<String>,
    line: usize,
    names: &HashMap<&str, &[String]>,
    module: &[String],
) -> NamedPath {
    let mut resolved = false;
    // A chain of imports that is longer than this is a cycle of names.
    for _ in 0..8 {
        let first = words[0].as_str();
        let target: Vec<String> = match (first, names.get(first)) {
            ("crate" | "std" | "core" | "alloc", _) => {
                resolved = true;
                break;
            }
            ("self", _) => [&["crate".to_string()], module].concat(),
            ("super", _) => {
                let mut base = [&["crate".to_string()], module].concat();
                let up = words.iter().take_while(|word| *word == "super").count();
                base.truncate(base.len().saturating_sub(up).max(1));
                words.drain(..up - 1);
                base
            }
            (_, Some(target)) if target[0] != first => target.to_vec(),
            (_, target) => {
                resolved = target.is_some();
                break;
            }
        };
        words.splice(..1, target);
    }
    NamedPath { words, line, resolved }
}

#[cfg(test)]
mod tests;
