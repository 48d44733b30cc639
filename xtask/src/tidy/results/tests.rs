use super::*;

fn lines(path: &str, code: &str, exceptions: &[Exception]) -> Vec<usize> {
    check(&Tree::of(&[(path, code)]), exceptions).iter().map(|finding| finding.line).collect()
}

#[test]
fn every_way_to_drop_a_result_is_found() {
    for code in [
        "fn f() {\n let _ = g();\n}",
        "fn f() {\n let _: R = g();\n}",
        "fn f() {\n _ = g();\n}",
        "fn f() { g();\n _ = g();\n}",
        "fn f() {\n g().ok();\n}",
        "fn f() {\n g(|x| { x = 1; }).ok();\n}",
        "fn f() { a = b;\n g(x)[1].ok();\n}",
        "fn f() {\n drop(file.sync());\n}",
        "fn f() {\n drop(sync(file.take()));\n}",
        "fn f() {\n g().unwrap()\n}",
    ] {
        assert_eq!(lines("src/a.rs", code, &[]), [2], "{code}");
        assert!(lines("src/a/tests.rs", code, &[]).is_empty(), "{code}");
    }
}

#[test]
fn what_only_looks_like_it_is_not() {
    for code in [
        "let _guard = g();",
        "let x = g().ok()?;",
        "let x = g().ok();",
        "select! { x = f() => {} _ = g(h()) => break, }",
        "drop(guard);",
        "drop(lock(&x).take());",
        "drop(wake.send(done()));",
        "fn f() { *x = g(|y| { y; }).ok(); }",
        "fn f() { return g().ok(); }",
        "match x { _ => 1 }",
        "let f = |_| 1;",
        "// let _ = g();",
        "x.unwrap_or(1);",
    ] {
        assert!(lines("src/a.rs", code, &[]).is_empty(), "{code}");
    }
}

#[test]
fn an_exception_must_be_needed() {
    let row = || {
        [Exception { path: "src/a.rs", line: "stop.send(())", reason: "the receiver may be gone" }]
    };
    assert!(lines("src/a.rs", "let _ = stop.send(());", &row()).is_empty());
    assert_eq!(lines("src/a.rs", "stop.send(())?;", &row()), [1]);
}
