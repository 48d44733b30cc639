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
fn mentions_are_followed_through_imports() {
    let code = "use std::time::Instant as Now; use std::thread; fn f() { Now::now(); thread::sleep(x); y.z(); }";
    assert_eq!(paths("src/a.rs", code)[2..], ["std::time::Instant::now", "std::thread::sleep"]);
}

#[test]
fn paths_inside_macros_are_read() {
    assert_eq!(paths("src/a.rs", "fn f() { format!(\"{}\", crate::b::X) }"), ["crate::b::X"]);
}

#[test]
fn relative_paths_start_at_the_files_own_module() {
    let code = "use super::b::X; use self::c::Y; fn f() { super::super::d::e(); X::new(); }";
    let expected = ["crate::a::b::X", "crate::a::this::c::Y", "crate::d::e", "crate::a::b::X::new"];
    assert_eq!(paths("crates/k/src/a/this.rs", code), expected);
    assert_eq!(paths("crates/k/src/a/mod.rs", "use super::b;"), ["crate::b"]);
    assert_eq!(paths("crates/k/src/a.rs", "use super::b;"), ["crate::b"]);
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
