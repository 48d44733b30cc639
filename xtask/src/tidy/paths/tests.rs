use super::*;
use crate::tidy::lexer;

fn paths(file: &str, code: &str) -> Vec<String> {
    of(file, &lexer::tokens(code)).paths.into_iter().map(|path| path.words.join("::")).collect()
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
fn relative_paths_start_at_the_files_own_module() {
    let code = "use super::b::X; use self::c::Y; fn f() { super::super::d::e(); X::new(); }";
    let expected = ["crate::a::b::X", "crate::a::this::c::Y", "crate::d::e", "crate::a::b::X::new"];
    assert_eq!(paths("crates/k/src/a/this.rs", code), expected);
    assert_eq!(paths("crates/k/src/a/mod.rs", "use super::b;"), ["crate::b"]);
    assert_eq!(paths("crates/k/src/a.rs", "use super::b;"), ["crate::b"]);
}

#[test]
fn bounds_and_broken_code_are_survived() {
    assert_eq!(paths("src/a.rs", "fn f() -> impl T + use<'a> { a::b() }"), ["a::b"]);
    for code in [
        "use",
        "use a::{",
        "use a::{b",
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

#[test]
fn a_path_names_what_it_reaches_or_may_import() {
    let named = |code: &str, target: &str| {
        of("src/a.rs", &lexer::tokens(code)).paths.iter().any(|path| path.names(target))
    };
    assert!(named("use std::fs::File;", "std::fs"));
    assert!(named("use std::thread::*;", "std::thread::spawn"));
    assert!(named("use std::fs::*;", "std::fs"));
    assert!(named("use super::*; fn f() { Instant::now() }", "std::time::Instant::now"));
    assert!(!named("use std::time::Instant;", "std::time::Instant::now"));
    assert!(!named("use std::*;", "std::fs"));
    assert!(!named("use kvant_env::fs; fn f() { fs::read() }", "std::fs"));
    assert!(!named(
        "use crate::clock::Instant; fn f() { Instant::now() }",
        "std::time::Instant::now"
    ));
}
