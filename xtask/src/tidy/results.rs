//! No result is dropped, and none is unwrapped without saying why it holds.
//!
//! An ignored failure of a write or an fsync is lost data that nobody hears of. Clippy's `let_underscore_must_use` sees only some of the
//! ways to drop a result; this sees all that are written as `let _ =`, `_ =` or `.ok();`.

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

const SHAPES: &[(&[&str], &str)] = &[
    (&["let", "_", "="], "drops a result: handle it or pass it on"),
    (&["let", "_", ":"], "drops a result: handle it or pass it on"),
    (&[";", "_", "="], "drops a result: handle it or pass it on"),
    (&["{", "_", "="], "drops a result: handle it or pass it on"),
    (&["}", "_", "="], "drops a result: handle it or pass it on"),
    (
        &[".", "ok", "(", ")", ";"],
        "drops a result: handle it or pass it on",
    ),
    (
        &[".", "unwrap", "(", ")"],
        "unwraps without a reason: return an error, or `expect` with the invariant that holds",
    ),
];

/// Checks all code but tests.
pub(super) fn check(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Ratchet::new(exceptions);
    for file in tree.rust().filter(|file| !file.is_test) {
        for (shape, problem) in SHAPES {
            let is_hit = |window: &[Token]| window.iter().map(|token| &token.text).eq(*shape);
            for (index, window) in file
                .tokens
                .windows(shape.len())
                .enumerate()
                .filter(|(_, window)| is_hit(window))
            {
                if shape[0] == "." && shape.ends_with(&[";"]) && is_assigned(&file.tokens[..index]) {
                    continue;
                }
                // The shape's last token stands on the line that drops; the first may end the statement before.
                let line = window[shape.len() - 1].line;
                let text = file.text.lines().nth(line - 1).unwrap_or_default();
                if !exceptions.allows(|row| row.path == file.path && text.contains(row.line)) {
                    findings.push(Finding::error(&file.path, line, *problem));
                }
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

/// Whether the expression that ends `tokens` is given to something, and not a statement by itself.
fn is_assigned(tokens: &[Token]) -> bool {
    let mut depth = 0;
    for token in tokens.iter().rev() {
        match token.text.as_str() {
            ")" | "]" | "}" if depth > 0 || token.text != "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            ";" | "{" | "}" | "(" if depth == 0 => return false,
            "=" | "return" | "break" if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
