use super::*;

fn findings(path: &str, text: &str) -> Vec<String> {
    check(&Tree::of(&[(path, text)]), &["example.org".to_owned()], &["lab/".to_owned()])
        .iter()
        .map(|finding| finding.to_string())
        .collect()
}

#[test]
fn characters_that_surprise_are_found() {
    for (text, problem) in [
        ("a\r\n", "carriage return"),
        ("a \n", "space at the end"),
        ("a\tb\n", "tab"),
        ("// caf\u{e9}\n", "outside ASCII"),
        ("a", "no line feed"),
    ] {
        let found = findings("src/a.rs", text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert!(found[0].starts_with("src/a.rs:1: ") && found[0].contains(problem), "{found:?}");
    }
    assert!(findings("README.md", "caf\u{e9}\n").is_empty());
    assert!(findings("src/a.rs", "fn f() {}\n").is_empty());
    let russian = "// \u{434}\u{430}\n";
    assert_eq!(findings("src/a.rs", russian).len(), 1);
    assert!(findings("lab/a.rs", russian).is_empty());
    assert_eq!(findings("lab/a.rs", "// caf\u{e9}\n").len(), 1);
}

#[test]
fn paths_of_one_machine_are_found() {
    let below = |dir: &str| format!("/{dir}/x");
    for dir in MACHINE_DIRS {
        for text in [below(dir), format!("cd {}", below(dir)), format!("\"{}\"", below(dir))] {
            assert_eq!(findings("a.sh", &format!("{text}\n")).len(), 1, "{text}");
        }
        for text in [
            format!("$dir{}", below(dir)),
            format!("./a{}", below(dir)),
            format!("https://example.org{}", below(dir)),
        ] {
            assert!(findings("a.sh", &format!("{text}\n")).is_empty(), "{text}");
        }
    }
}

#[test]
fn hosts_that_are_not_listed_are_found() {
    let url = |host: &str| format!("see {}://{host}\n", "https");
    assert_eq!(findings("Cargo.lock", &url("mirror.example.net/index")).len(), 1);
    assert!(findings("Cargo.lock", &url("example.org/x")).is_empty());
    assert!(findings("Cargo.lock", &url("example.org.")).is_empty());
    assert!(findings("a.rs", &format!("// {}", url("{address}/v0"))).is_empty());
}

#[test]
fn comments_have_at_most_100_columns() {
    let words = "word ".repeat(21);
    for (path, text) in [
        ("src/a.rs", format!("// {words}x\n")),
        ("src/a.rs", format!("    /// {words}x\n")),
        ("a.toml", format!("# {words}x\n")),
    ] {
        let found = findings(path, &text);
        assert!(found.len() == 1 && found[0].contains("more than 100 columns"), "{found:?}");
    }
    for (path, text) in [
        ("src/a.rs", format!("let x = \"{words}\";\n")),
        ("src/a.rs", format!("//! | {words}|\n")),
        ("src/a.rs", format!("//! ```\n//! {words}x\n//! ```\n")),
        ("a.txt", format!("// {words}x\n")),
    ] {
        assert_eq!(findings(path, &text), [""; 0]);
    }
}
