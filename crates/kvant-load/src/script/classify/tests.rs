use super::Classifier;
use crate::op::{OPS_MAX, OpNames};

#[test]
fn classes_omit_queries_and_ids() {
    let cases = [
        ("GET / HTTP/1.1\r\n", "GET /"),
        ("GET /v0/entity?id=1/2 HTTP/1.1\r\n", "GET /v0/entity"),
        ("GET /v0/entity HTTP/1.1\r\n", "GET /v0/entity"),
        ("GET /v0/entity#x HTTP/1.1\r\n", "GET /v0/entity"),
        ("GET /v0/entities?start=a HTTP/1.1\r\n", "GET /v0/entities"),
        ("PUT /v0/entity?id=1 HTTP/1.1\r\n", "PUT /v0/entity"),
        ("GET /users/17 HTTP/1.1\r\n", "GET /users/:id"),
        ("GET /users/018 HTTP/1.1\r\n", "GET /users/:id"),
        ("GET /users/me HTTP/1.1\r\n", "GET /users/me"),
        ("GET /o/123e4567-e89b-12d3-a456-426614174000/x HTTP/1.1\r\n", "GET /o/:id/x"),
        (
            "GET /o/123e4567-e89b-12d3-a456-42661417400g/x HTTP/1.1\r\n",
            "GET /o/123e4567-e89b-12d3-a456-42661417400g/x",
        ),
        ("GET /o/0123456789abcdef HTTP/1.1\r\n", "GET /o/:id"),
        ("GET /o/0123456789abcde HTTP/1.1\r\n", "GET /o/0123456789abcde"),
        ("GET http://example.com/v0/entity?id=1 HTTP/1.1\r\n", "GET /v0/entity"),
        ("GET http://example.com HTTP/1.1\r\n", "GET /"),
        ("GET //5/ HTTP/1.1\r\n", "GET //:id/"),
    ];
    let ops = OpNames::default();
    let mut classifier = Classifier::new(ops.clone());
    // The second time they are cached.
    for (request, expected) in cases.iter().chain(&cases) {
        let op = classifier.classify(request.as_bytes()).op;
        assert_eq!(ops.all()[op.index()], *expected, "of {request:?}");
    }
}

#[test]
fn only_the_method_head_counts_as_head() {
    let mut classifier = Classifier::new(OpNames::default());
    for _ in 0..2 {
        assert!(classifier.classify(b"HEAD /a/7 HTTP/1.1\r\n").is_head);
        assert!(classifier.classify(b"HEAD /a HTTP/1.1\r\n").is_head);
        assert!(!classifier.classify(b"HEADER /a HTTP/1.1\r\n").is_head);
        assert!(!classifier.classify(b"GET /HEAD HTTP/1.1\r\n").is_head);
    }
}

#[test]
fn unbounded_paths_become_one_kind_and_take_bounded_memory() {
    let ops = OpNames::default();
    let mut classifier = Classifier::new(ops.clone());
    for n in 0..10_000 {
        classifier.classify(format!("GET /key{n}x HTTP/1.1\r\n").as_bytes());
    }
    assert_eq!(ops.all().len(), OPS_MAX);
    assert!(classifier.prefixes.len() + classifier.classes.len() < 100);
}
