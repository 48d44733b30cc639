use super::*;

/// The imports of `code` in the file `a/this.rs`, as paths of items.
fn imports(code: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("crates/k/src/lib.rs", "pub use a::b::X as Y;"),
        ("crates/k/src/a/mod.rs", "use std::time::Instant; pub use b::X; use self::c::Z;"),
        ("crates/k/src/a/b.rs", ""),
        ("crates/k/src/a/c.rs", ""),
        ("crates/k/src/a/this.rs", code),
        ("crates/k/src/a/this/d.rs", ""),
    ]);
    let crates = CrateImports::of_all(&tree);
    let this = crates[0].files.iter().position(|file| file.path.ends_with("this.rs"));
    let imports = crates[0].imports.iter().filter(|import| Some(import.from) == this);
    imports.map(|import| import.words.join("::")).collect()
}

#[test]
fn relative_paths_start_at_the_files_own_module() {
    for code in ["use super::b::X;", "use crate::a::b::X;", "fn f() { super::super::a::b::X }"] {
        assert_eq!(imports(code), ["crate::a::b::X"], "{code}");
    }
    for code in ["use self::d::W;", "use d::W;", "fn f() { d::W }"] {
        assert_eq!(imports(code), ["crate::a::this::d::W"], "{code}");
    }
    assert_eq!(imports("fn f() { super::super::super::a::b::X }"), [""; 0]);
}

#[test]
fn names_are_followed_to_their_definition() {
    for code in ["use super::X;", "use crate::Y;", "use crate::a; fn f() { a::X }"] {
        assert_eq!(imports(code), ["crate::a::b::X"], "{code}");
    }
    assert_eq!(imports("use super::Z as V; fn f() { V::new() }").len(), 2);
    assert_eq!(imports("use super::W;"), ["crate::a::W"]);
}

#[test]
fn other_crates_and_modules_are_no_imports() {
    for code in ["use std::fs;", "use super::Instant;", "use super::b;", "use x::y; use y::x;"] {
        assert_eq!(imports(code), [""; 0], "{code}");
    }
}
