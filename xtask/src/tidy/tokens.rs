//! The code of a Rust file as words and punctuation with their lines, without comments and
//! literals.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A word, `::`, `=>` or a single other character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
}

/// The tokens of `code`; none if it is not Rust, which the compiler reports better.
pub(super) fn of(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(code.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut is_joint = false;
    for tree in stream {
        let line = tree.span().start().line;
        let mut push = |text: &str, line| tokens.push(Token { text: text.to_owned(), line });
        let was_joint = std::mem::take(&mut is_joint);
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open, line);
                flatten(group.stream(), tokens);
                tokens
                    .push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
            TokenTree::Ident(word) => push(&word.to_string(), line),
            TokenTree::Punct(punct) => match (tokens.last_mut(), punct.as_char()) {
                (Some(last), c @ (':' | '>'))
                    if was_joint && [":", "="].contains(&last.text.as_str()) =>
                {
                    last.text.push(c);
                }
                (_, c) => {
                    is_joint = punct.spacing() == Spacing::Joint;
                    tokens.push(Token { text: c.to_string(), line });
                }
            },
            TokenTree::Literal(_) => {}
        }
    }
}

pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
