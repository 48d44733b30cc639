use super::*;
use crate::tidy::tokens;

fn paths(file: &str, code: &str) -> Vec<String> {
    let read = of(file, &tokens::of(code));
    read.paths.into_iter().map(|(words, _)| words.join("::")).collect()
}

#[test]
fn imports_are_unfolded() {
    assert_eq!(
        paths("src/a.rs", "use std::{io, time::{Duration, Instant as Now}, fs::{self, *}};"),
        ["std::io", "std::time::Duration", "std::time::Instant", "std::fs", "std::fs::*"]
    );
}

#[test]
fn mentions_are_paths_of_two_or_more_words() {
    let code = "use std::thread; fn f() { thread::sleep(x); y.z(); super::g() }";
    assert_eq!(paths("src/a.rs", code), ["std::thread", "thread::sleep", "super::g"]);
}

#[test]
fn paths_inside_macros_are_read() {
    assert_eq!(paths("src/a.rs", "fn f() { format!(\"{}\", crate::b::X) }"), ["crate::b::X"]);
}

#[test]
fn a_file_is_a_module() {
    let module = |path: &str| of(path, &[]).module.join("::");
    assert_eq!(module("crates/k/src/a/this.rs"), "a::this");
    assert_eq!(module("crates/k/src/a/mod.rs"), "a");
    assert_eq!(module("crates/k/src/lib.rs"), "");
}

#[test]
fn a_reexport_counts_if_the_file_uses_the_name() {
    assert_eq!(paths("src/a.rs", "pub use b::C; pub(crate) use d::{E, F};"), [""; 0]);
    assert_eq!(paths("src/a.rs", "pub use b::C; fn f() -> C {}"), ["b::C"]);
}

#[test]
fn bounds_and_broken_code_are_survived() {
    assert_eq!(paths("src/a.rs", "fn f() -> impl T + use<'a> { a::b() }"), ["a::b"]);
    for code in [
        "use",
        "use a::{}",
        "use a::{b}",
        "use a as",
        "a::",
        "::",
        "use {,};",
        "use a::{{}}",
        "use a::b",
    ] {
        paths("src/a.rs", code);
    }
    assert_eq!(paths("src/a.rs", "use a::b; use b::a; fn f() { a::c(); }").len(), 3);
}
