use super::*;

const MARKDOWN: &str = "\
# Title
```sh
cargo test
```
## Examples
```sh
one
two
```
```text
1 ...
```
Words.
```sh
three
```
```toml
x = 1
```
## After
```sh
four
```
";

#[test]
fn the_examples_of_one_section_are_found() {
    let examples = of_section(MARKDOWN, "## Examples");
    let expected = [
        Example { line: 6, script: "one\ntwo\n".into(), expected: Some("1 ...\n".into()) },
        Example { line: 14, script: "three\n".into(), expected: None },
    ];
    assert_eq!(examples, expected);
    assert_eq!(of_section(MARKDOWN, "## Nothing"), []);
}

#[test]
fn output_is_compared_line_by_line_with_wildcards() {
    let example = |expected: &str| Example {
        line: 1,
        script: String::new(),
        expected: Some(expected.into()),
    };
    for (expected, printed) in [
        ("a\nb\n", "a\nb"),
        ("a\n...\n", "a"),
        ("a\n...\nd\n", "a\nb\nc\nd\n"),
        ("...\n", ""),
        ("date: ... GMT\n", "date: today GMT\r\n"),
        ("a...b...c\n", "a1b2b3c\n"),
    ] {
        assert_eq!(example(expected).difference(printed), None, "{expected:?} {printed:?}");
    }
    for (expected, printed) in [
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("a\n...\nd\n", "a\nb\n"),
        ("a...c\n", "ab\n"),
        ("", "a\n"),
    ] {
        assert!(example(expected).difference(printed).is_some(), "{expected:?} {printed:?}");
    }
}
