//! No result is dropped, and none is unwrapped without saying why it holds.
//!
//! An ignored failure of a write or an fsync is lost data that nobody hears of. Clippy's
//! `let_underscore_must_use` sees only some of the ways to drop a result; this sees all that are
//! written as `let _ =`, `_ =`, `.ok();` or `drop(call())`.

use super::Finding;
use super::lexer::Token;
use super::ratchet::Ratchet;
use super::tree::Tree;

/// A line that may drop a result.
pub(super) struct Exception {
    pub(super) path: &'static str,
    /// A part of the line that tells it from others of the file.
    pub(super) line: &'static str,
    pub(super) reason: &'static str,
}

/// Calls whose outcome may be given to `drop`: a receiver that is gone misses nothing, and the
/// others give out what is to be dropped.
const DROPPABLE: &[&str] = &["send", "take", "pop"];

/// Checks all code but tests.
pub(super) fn check(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust().filter(|file| !file.is_test) {
        for (index, token) in file.tokens.iter().enumerate() {
            let Some(problem) = problem_at(&file.tokens, index) else {
                continue;
            };
            let text = file.text.lines().nth(token.line - 1).unwrap_or_default();
            if !exceptions.allows(|row| row.path == file.path && text.contains(row.line)) {
                findings.push(Finding::error(&file.path, token.line, problem));
            }
        }
    }
    for row in exceptions.unneeded() {
        let problem = format!(
            "nothing is dropped by `{}` any more ({}): remove the row from DROPPED_RESULTS",
            row.line, row.reason
        );
        findings.push(Finding::error(row.path, 1, problem));
    }
    findings
}

/// What is wrong with the code that starts at token `index`.
fn problem_at(tokens: &[Token], index: usize) -> Option<&'static str> {
    let (before, after) = tokens.split_at(index);
    let starts_with = |words: &[&str]| {
        after.len() >= words.len()
            && after.iter().zip(words).all(|(token, word)| token.text == *word)
    };
    let starts_statement =
        before.last().is_none_or(|token| matches!(token.text.as_str(), ";" | "{" | "}"));
    let drops = starts_with(&["let", "_", "="])
        || starts_with(&["let", "_", ":"])
        || starts_with(&["_", "="]) && starts_statement && !is_arm(after)
        || starts_with(&[".", "ok", "(", ")", ";"]) && !is_assigned(before)
        || starts_with(&["drop", "("])
            && last_call(&after[2..]).is_some_and(|name| !DROPPABLE.contains(&name));
    if drops {
        Some("drops a result: handle it or pass it on")
    } else if starts_with(&[".", "unwrap", "(", ")"]) {
        Some("unwraps without a reason: return an error, or `expect` with the invariant that holds")
    } else {
        None
    }
}

/// Whether `_ = expression` is an arm of `select!`: an arrow follows before the statement could
/// end.
fn is_arm(after: &[Token]) -> bool {
    after.iter().map(|token| token.text.as_str()).find(|text| matches!(*text, ";" | "{" | "=>"))
        == Some("=>")
}

/// Whether the expression that ends `before` is given to something, and not a statement by itself.
fn is_assigned(before: &[Token]) -> bool {
    let mut depth = 0;
    for token in before.iter().rev() {
        match token.text.as_str() {
            ")" | "]" => depth += 1,
            "}" if depth > 0 => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            ";" | "{" | "}" | "(" if depth == 0 => return false,
            "=" | "return" | "break" if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// The name of the last call in an argument list: of `a(b).c(d))` it is `c`.
fn last_call(argument: &[Token]) -> Option<&str> {
    let mut depth = 0;
    let mut name = None;
    for (index, token) in argument.iter().enumerate() {
        match token.text.as_str() {
            "(" => {
                if depth == 0 && index > 0 {
                    name = Some(argument[index - 1].text.as_str());
                }
                depth += 1;
            }
            ")" if depth == 0 => break,
            ")" => depth -= 1,
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests;
