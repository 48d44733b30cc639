use super::*;
use serde_json::json;

fn order(name: &str, dependencies: &[&str]) -> Vec<String> {
    let dependencies: Vec<Value> =
        dependencies.iter().map(|name| json!({ "name": name })).collect();
    let metadata = json!({ "packages": [
        { "name": name, "manifest_path": "/k/crates/x/Cargo.toml", "dependencies": dependencies },
        { "name": "serde", "manifest_path": "/registry/serde/Cargo.toml", "dependencies": [] },
    ] });
    let order = ["low", "mid", "high", "xtask"];
    let order = order.map(|name| Crate { name: name.to_owned(), modules: Vec::new() });
    let found = check_order(&metadata, &order);
    found.iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_crate_depends_on_crates_below_it() {
    assert_eq!(order("mid", &["low", "serde"]), [""; 0]);
    for above in ["mid", "high", "xtask"] {
        let found = order("mid", &["low", above]);
        let expected =
            format!("crates/x/Cargo.toml:1: mid depends on {above}, which stands above it");
        assert!(found[0].starts_with(&expected), "{found:?}");
    }
    assert!(order("new", &[])[0].contains("new has no place among the crates"));
    assert!(order("low", &["rand"])[0].contains("low depends on rand: use kvant_env::rng"));
}

#[test]
fn licences_are_allowed_by_deny_toml() {
    let allowed = r#"[licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]"#;
    let tree = Tree::of(&[("deny.toml", allowed)]);
    let found = |licence: &str| {
        let metadata = json!({ "packages": [{ "name": "x", "license": licence }] });
        check_licences(&tree, &metadata).len()
    };
    for licence in [
        "MIT",
        "MIT OR GPL-3.0-only",
        "MIT/GPL-3.0",
        "MIT AND Apache-2.0",
        "(MIT OR GPL-3.0-only) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert_eq!(found(licence), 0, "{licence}");
    }
    for licence in
        ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "MIT OR", "MIT WITH LLVM-exception", "free"]
    {
        assert_eq!(found(licence), 1, "{licence}");
    }
    let metadata = json!({ "packages": [] });
    for text in ["", "[licenses", "[licenses]"] {
        assert_eq!(check_licences(&Tree::of(&[("deny.toml", text)]), &metadata).len(), 1);
    }
    assert_eq!(check_licences(&Tree::of(&[]), &metadata).len(), 1);
}
