//! The paths that a Rust file names, as it writes them, and the names that it imports.

use super::tokens::{Token, is_word};
use std::collections::HashMap;

/// The paths of a file, and the names that it imports.
pub(super) struct FilePaths {
    /// The file's own module, as words below `crate`.
    pub(super) module: Vec<String>,
    /// Every path of two or more words and every import but unused re-exports, each with its line.
    pub(super) paths: Vec<(Vec<String>, usize)>,
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
            let is_reexport = at > 0 && matches!(tokens[at - 1].text.as_str(), "pub" | ")");
            at = read_import(tokens, at + 1, &[], is_reexport, &mut imports);
            continue;
        }
        let (words, end) = read_words(tokens, at);
        if words.len() > 1 {
            mentions.push((words, tokens[at].line));
        }
        at = end.max(at + 1);
    }
    let is_used = |import: &Import| {
        let same = tokens.iter().filter(|token| token.text == import.name);
        !import.is_reexport || same.take(2).count() == 2
    };
    let imported = imports.iter().filter(|import| is_used(import));
    let all = imported.map(|import| (import.words.clone(), import.line)).chain(mentions);
    FilePaths {
        module: module_of(path),
        paths: all.collect(),
        imports: imports.iter().map(|import| (import.name.clone(), import.words.clone())).collect(),
    }
}

/// One name of a `use` line, with its path.
struct Import {
    /// Empty for a glob.
    name: String,
    /// The last is `*` for a glob.
    words: Vec<String>,
    line: usize,
    is_reexport: bool,
}

/// The longest path that starts at token `at`, and the token after it.
fn read_words(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    while let Some(token) = tokens.get(at).filter(|token| is_word(&token.text)) {
        words.push(token.text.clone());
        at += 1;
        match &tokens[at..] {
            [separator, word, ..] if separator.text == "::" && is_word(&word.text) => at += 1,
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
    is_reexport: bool,
    imports: &mut Vec<Import>,
) -> usize {
    let text_at = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let line = tokens.get(at).map_or(0, |token| token.line);
    at += usize::from(text_at(at) == "::");
    let (words, end) = read_words(tokens, at);
    let mut words = [prefix, &words].concat();
    at = end;
    at += usize::from(text_at(at) == "::");
    if text_at(at) == "{" {
        at += 1;
        while !matches!(text_at(at), "}" | "") {
            at = match text_at(at) {
                "," => at + 1,
                _ => read_import(tokens, at, &words, is_reexport, imports).max(at + 1),
            };
        }
        return at + 1;
    }
    let mut name = String::new();
    if text_at(at) == "*" {
        words.push("*".to_owned());
        at += 1;
    } else {
        // `a::{self}` is `a`.
        if words.len() > 1 && words.last().is_some_and(|word| word == "self") {
            words.pop();
        }
        name = words.last().cloned().unwrap_or_default();
        if text_at(at) == "as" {
            name = text_at(at + 1).to_owned();
            at += 2;
        }
    }
    if !words.is_empty() {
        imports.push(Import { name, words, line, is_reexport });
    }
    at
}

/// The module of the file at `path`, as words below `crate`.
pub(super) fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or("", |(_, inside)| inside);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut words: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if matches!(words.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        words.pop();
    }
    words
}

#[cfg(test)]
mod tests;
