//! As much of Rust's lexical structure as the checks need: what is code, what is comment or
//! literal, and where the words are.

/// A word, `::`, `=>` or a single other character of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
}

/// Blanks comments and the contents of string and character literals. Lines and columns stay where
/// they are.
pub(super) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let kept_prefix = literal_or_comment(&chars, at);
        match kept_prefix {
            None => {
                out.push(chars[at]);
                at += 1;
            }
            Some(end) => {
                out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
                at = end;
            }
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`, if one does.
fn literal_or_comment(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let next = rest.get(1).copied();
    let in_word = at > 0 && is_word(chars[at - 1]);
    let end = match rest[0] {
        '/' if next == Some('/') => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        '/' if next == Some('*') => block_comment_len(rest),
        '"' => quoted_len(rest, '"'),
        'r' if !in_word || chars[at - 1] == 'b' || chars[at - 1] == 'c' => raw_string_len(rest)?,
        '\'' if next == Some('\\') => quoted_len(rest, '\''),
        // 'x' is a character; 'x without the closing quote is a lifetime.
        '\'' if rest.get(2) == Some(&'\'') => 3,
        _ => return None,
    };
    Some(at + end)
}

fn block_comment_len(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted_len(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"..."` or `r#"..."#`; `None` for a raw identifier or a word that starts with r.
fn raw_string_len(rest: &[char]) -> Option<usize> {
    let hash_count = rest[1..].iter().take_while(|c| **c == '#').count();
    let body = 1 + hash_count + 1;
    if rest.get(body - 1) != Some(&'"') {
        return None;
    }
    let closes = |at: usize| {
        rest[at] == '"' && rest[at + 1..].iter().take_while(|c| **c == '#').count() >= hash_count
    };
    let close = (body..rest.len()).find(|at| closes(*at));
    Some(close.map_or(rest.len(), |at| at + 1 + hash_count))
}

/// Splits masked code into words, `::`, `=>` and single characters; white space is dropped.
pub(super) fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let chars: Vec<char> = line.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let len = match chars[at] {
                c if is_word(c) => chars[at..].iter().take_while(|c| is_word(**c)).count(),
                ':' if chars.get(at + 1) == Some(&':') => 2,
                '=' if chars.get(at + 1) == Some(&'>') => 2,
                _ => 1,
            };
            if !chars[at].is_whitespace() {
                tokens.push(Token { text: chars[at..at + len].iter().collect(), line: index + 1 });
            }
            at += len;
        }
    }
    tokens
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
