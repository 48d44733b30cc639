use super::*;

fn texts(code: &str) -> Vec<String> {
    of(code).into_iter().map(|token| token.text).collect()
}

#[test]
fn words_and_punctuation_have_lines() {
    let lines: Vec<(String, usize)> =
        of("use a::b;\nfn f() {\n}").into_iter().map(|token| (token.text, token.line)).collect();
    let expected = [
        ("use", 1),
        ("a", 1),
        ("::", 1),
        ("b", 1),
        (";", 1),
        ("fn", 2),
        ("f", 2),
        ("(", 2),
        (")", 2),
        ("{", 2),
        ("}", 3),
    ];
    assert_eq!(lines, expected.map(|(text, line)| (text.to_owned(), line)));
    assert_eq!(texts("a => b ; c : : d"), ["a", "=>", "b", ";", "c", ":", ":", "d"]);
}

#[test]
fn comments_and_literals_are_left_out() {
    assert_eq!(texts("a // b::c\n/* d /* e */ */ f"), ["a", "f"]);
    assert_eq!(texts(r##"f("a::b", r#"c"#, 'd', b'e', 1)"##), ["f", "(", ",", ",", ",", ",", ")"]);
}

#[test]
fn what_is_not_rust_has_no_tokens() {
    assert_eq!(texts("fn f( {"), [""; 0]);
}
