use super::*;
use serde_json::json;

fn ok(expression: &str) -> bool {
    satisfied(
        expression,
        &["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_string),
    )
}

#[test]
fn expressions_are_met_or_not() {
    for expression in [
        "MIT",
        "GPL-3.0 OR MIT",
        "Unlicense/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "GPL-3.0 AND MIT OR Apache-2.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
    ] {
        assert!(ok(expression), "{expression}");
    }
    for expression in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND GPL-3.0",
        "MIT WITH some-exception",
        "MIT OR",
        "(MIT",
        "MIT MIT",
        "MIT)",
    ] {
        assert!(!ok(expression), "{expression}");
    }
}

#[test]
fn a_package_with_another_licence_is_found_at_its_line_of_the_lock_file() {
    let tree = Tree::of(&[
        ("deny.toml", "[licenses]\nallow = [\"MIT\"]\n"),
        ("Cargo.lock", "[[package]]\nname = \"good\"\n\n[[package]]\nname = \"bad\"\n"),
    ]);
    let metadata =
        json!({"packages": [{"name": "good", "license": "MIT"}, {"name": "bad", "license": null}]});
    let found = check(&tree, &metadata);
    assert_eq!((found.len(), found[0].line), (1, 5));
    assert_eq!(check(&Tree::of(&[]), &metadata)[0].path, "deny.toml");
}
