//! No result is dropped: an ignored failure of a write or an fsync loses data silently.
//!
//! Clippy's `let_underscore_must_use` and `unused_result_ok` and the compiler's `unused_must_use`
//! find most; this finds `_ = call()` and `drop(call())`.

use super::finding::Finding;
use super::tokens::{Token, is_word};
use super::tree::Tree;

/// Calls whose result may be dropped: sends to a receiver that may be gone, and calls that take a
/// value out of its container.
const DROPPABLE: &[&str] = &["send", "take", "pop"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_test) {
        for (index, token) in file.tokens.iter().enumerate() {
            let after = &file.tokens[index + 1..];
            let is_dropped = match token.text.as_str() {
                "_" => starts_statement(&file.tokens[..index]) && is_assignment(after),
                "drop" => last_call(after).is_some_and(|name| !DROPPABLE.contains(&name)),
                _ => false,
            };
            if is_dropped {
                let problem = "drops a result: handle it or pass it on";
                findings.push(Finding::new(&file.path, token.line, problem));
            }
        }
    }
    findings
}

fn starts_statement(before: &[Token]) -> bool {
    before.last().is_none_or(|token| matches!(token.text.as_str(), ";" | "{" | "}"))
}

/// Whether `after` is `= expression` and not an arm of `select!`: there an arrow follows before
/// the statement could end.
fn is_assignment(after: &[Token]) -> bool {
    let mut texts = after.iter().map(|token| token.text.as_str());
    texts.next() == Some("=") && texts.find(|text| matches!(*text, ";" | "{" | "=>")) != Some("=>")
}

/// The name of the last call in `(a(b).c(d))`: `c`.
fn last_call(argument: &[Token]) -> Option<&str> {
    let mut depth = 0;
    let mut name = None;
    for (index, token) in argument.iter().enumerate() {
        match token.text.as_str() {
            "(" => {
                depth += 1;
                if depth == 2 && is_word(&argument[index - 1].text) {
                    name = Some(argument[index - 1].text.as_str());
                }
            }
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    name
}

#[cfg(test)]
mod tests;
