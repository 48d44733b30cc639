use super::*;

#[test]
fn comments_and_literals_are_blanked_in_place() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("x\"y", z)"#, r#"f(      , z)"#),
        ("r\"a\\\" b", "      b"),
        ("br#\"a\"b\"# c", "b         c"),
        ("r#type bar\"x\"", "r#type bar   "),
        ("'a' '\\'' &'a str", "         &'a str"),
        ("\"a\nb\" c", "  \n   c"),
    ] {
        assert_eq!(mask(text), code, "{text}");
    }
}

#[test]
fn an_unclosed_literal_or_comment_ends_with_the_file() {
    for text in ["\"abc", "r#\"abc\"", "/* abc", "'\\", "\"\\"] {
        assert_eq!(mask(text).trim(), "", "{text}");
        assert_eq!(mask(text).len(), text.len(), "{text}");
    }
}

#[test]
fn tokens_know_their_lines() {
    let texts: Vec<(String, usize)> =
        tokens("use a::b_1;\n x.y()").into_iter().map(|token| (token.text, token.line)).collect();
    let expected = [
        ("use", 1),
        ("a", 1),
        ("::", 1),
        ("b_1", 1),
        (";", 1),
        ("x", 2),
        (".", 2),
        ("y", 2),
        ("(", 2),
        (")", 2),
    ];
    assert_eq!(texts, expected.map(|(text, line)| (text.to_string(), line)));
}
