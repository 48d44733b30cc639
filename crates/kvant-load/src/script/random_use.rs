//! Detects from the text of a script whether it draws random numbers. Counting the calls would slow
//! them down.

/// Whether `source` has `math.random` outside comments and strings.
pub(super) fn uses_random(source: &[u8]) -> bool {
    let code = code_of(source);
    let mut rest = code.as_slice();
    while let Some(at) = find(rest, b"math") {
        let before = rest[..at].last().copied();
        let after = &rest[at + 4..];
        if !before.is_some_and(is_of_name) && is_field_random(after) {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether `text` begins with the field `.random`.
fn is_field_random(text: &[u8]) -> bool {
    let field = text.trim_ascii_start().strip_prefix(b".");
    let rest = field.and_then(|field| field.trim_ascii_start().strip_prefix(b"random"));
    rest.is_some_and(|rest| !rest.first().copied().is_some_and(is_of_name))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `source` with a space for each comment and each string.
fn code_of(source: &[u8]) -> Vec<u8> {
    let mut code = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(&byte) = rest.first() {
        let skipped = match byte {
            b'-' if rest.starts_with(b"--") => {
                let is_long = long_bracket_len(&rest[2..]);
                2 + is_long.unwrap_or_else(|| find(&rest[2..], b"\n").unwrap_or(rest.len() - 2))
            }
            b'[' => long_bracket_len(rest).unwrap_or(0),
            b'"' | b'\'' => quoted_len(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(byte);
            rest = &rest[1..];
        } else {
            code.push(b' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Length of the `[[...]]` or `[=[...]=]` that `text` begins with.
fn long_bracket_len(text: &[u8]) -> Option<usize> {
    let level = text.strip_prefix(b"[")?.iter().take_while(|&&byte| byte == b'=').count();
    if text.get(1 + level) != Some(&b'[') {
        return None;
    }
    let mut end = vec![b'='; level + 2];
    end[0] = b']';
    end[level + 1] = b']';
    let inside = 2 + level;
    Some(find(&text[inside..], &end).map_or(text.len(), |at| inside + at + end.len()))
}

/// Length of the string in quotes that `text` begins with.
fn quoted_len(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            byte if byte == text[0] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests;
