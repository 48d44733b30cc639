use super::*;

const ORDER: &[&str] = &["base", "engine", "server"];

fn findings(manifest: &str) -> Vec<String> {
    let tree = Tree::of(&[("crates/x/Cargo.toml", manifest)]);
    check(&tree, ORDER).iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_crate_may_use_what_is_below_it() {
    assert!(
        findings(
            "[package]\nname = \"engine\"\n[dependencies]\nbase.workspace = true\nlibc = \"1\"\n"
        )
        .is_empty()
    );
}

#[test]
fn a_crate_may_not_use_what_is_above_it_in_any_table() {
    for table in [
        "dependencies",
        "dev-dependencies",
        "build-dependencies",
        "target.'cfg(unix)'.dependencies",
    ] {
        let found = findings(&format!(
            "[package]\nname = \"engine\"\n[{table}]\nserver.workspace = true\n"
        ));
        assert_eq!(found.len(), 1, "{table}");
        assert!(
            found[0].starts_with("crates/x/Cargo.toml:4: engine depends on server"),
            "{found:?}"
        );
    }
}

#[test]
fn a_crate_without_a_place_is_found() {
    assert!(findings("[package]\nname = \"cache\"\n")[0].contains("no place in the crate order"));
    assert!(findings("[package\n")[0].contains("not TOML"));
}
