use super::*;

fn lines(path: &str, code: &str) -> Vec<usize> {
    check(&Tree::of(&[(path, code)])).iter().map(|finding| finding.line).collect()
}

#[test]
fn a_dropped_result_is_found() {
    for code in [
        "fn f() {\n _ = g();\n}",
        "fn f() { g();\n _ = g();\n}",
        "fn f() {\n drop(file.sync());\n}",
        "fn f() {\n drop(sync(file.take()));\n}",
        "fn f() { g!(\n drop(file.sync())) }",
    ] {
        assert_eq!(lines("src/a.rs", code), [2], "{code}");
        assert!(lines("src/a/tests.rs", code).is_empty(), "{code}");
    }
}

#[test]
fn what_only_looks_like_it_is_not() {
    for code in [
        "select! { x = f() => {} _ = g(h()) => break, }",
        "drop(guard);",
        "drop(lock(&x).take());",
        "drop(wake.send(done()));",
        "fn drop(&mut self) { self.stop(); }",
        "match x { _ => 1 }",
        "let f = |_| 1;",
        "// _ = g();",
    ] {
        assert!(lines("src/a.rs", code).is_empty(), "{code}");
    }
}
