//! Targets that are rejected, and targets that are not.

use crate::fixture::Fixture;

#[test]
fn bad_queries_are_400_and_the_connection_goes_on() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let entity = [
        "",
        "?",
        "?id",
        "?id=",
        "?ID=k",
        "?id=a&id=b",
        "?id=a&id=a",
        "?id=%",
        "?id=%4",
        "?id=%4g",
        "?id=%zz",
        "?id=a%",
        "?other=1",
        "?id=k&ack=1",
        "?id=k&from=1",
        "?id=k&ack=1&from=2",
        "?id=k&ack=2&from=1",
        "?id=k&ack=0&from=1",
        "?id=k&ack=x&from=1",
        "?id=k&ack=&from=",
        "?id=k&ack=1&ack=1&from=1",
        "?id=k&replicas=2/3",
        "?id=k&replicas=1",
        "?id=k&replicas=",
        "?id=k&replicas=1/1&replicas=1/1",
        "?id=k&ack=1&from=1&replicas=1/2",
    ];
    for query in entity {
        for method in ["GET", "PUT", "DELETE"] {
            let response = client.request(method, &format!("/v0/entity{query}"), b"");
            assert_eq!(response.json()["type"], "bad-query", "{method} {query:?}");
            response.assert_problem(400, "bad-query");
        }
        assert_eq!(
            client.request("HEAD", &format!("/v0/entity{query}"), b"").status,
            400,
            "{query:?}"
        );
    }
    for ttl in
        ["", "0", "-1", "+1", "1.5", "x", "315360001", "99999999999999999999", "1&ttl=1", "%2B1"]
    {
        let response = client.request("PUT", &format!("/v0/entity?id=k&ttl={ttl}"), b"v");
        assert_eq!(response.status, 400, "ttl={ttl:?}");
    }
    let ranges = [
        "",
        "?start=",
        "?end=b",
        "?start=a&start=b",
        "?start=a&end=",
        "?start=a&end=b&end=c",
        "?start=%",
        "?start=a&end=%f",
        "?start=a&limit=0",
        "?start=a&limit=",
        "?start=a&limit=-1",
        "?start=a&limit=x",
        "?start=a&limit=1&limit=2",
        "?start=a&limit=99999999999999999999",
    ];
    for query in ranges {
        client
            .request("GET", &format!("/v0/entities{query}"), b"")
            .assert_problem(400, "bad-query");
    }
    client.assert_goes_on();
}

#[test]
fn valid_queries_are_accepted() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let same = [
        "?id=a+b",
        "?id=a%2Bb",
        "?id=%61%2bb",
        "?x=1&id=a+b&y",
        "?&&id=a+b&",
        "?id=a+b&ttl=nonsense",
    ];
    assert_eq!(client.request("PUT", "/v0/entity?id=a+b", b"plus").status, 201);
    for query in same {
        let get = client.request("GET", &format!("/v0/entity{query}"), b"");
        assert_eq!((get.status, &get.body[..]), (200, &b"plus"[..]), "{query}");
    }
    assert_eq!(
        client.request("GET", "/v0/entity?id=a%20b", b"").status,
        404,
        "a plus sign is no space"
    );
    for query in ["?id=a+b&ack=1&from=1", "?id=a+b&replicas=1/1", "?id=a+b&replicas=1%2F1"] {
        for (method, status) in [("GET", 200), ("PUT", 201), ("DELETE", 202), ("PUT", 201)] {
            assert_eq!(
                client.request(method, &format!("/v0/entity{query}"), b"").status,
                status,
                "{method} {query}"
            );
        }
    }
    assert_eq!(
        client.request("PUT", "/v0/entity?id=k&ttl=%31%30", b"1").status,
        201,
        "digits may be encoded"
    );
    // A value with an equals sign, and bytes that are no UTF-8.
    assert_eq!(client.request("PUT", "/v0/entity?id=a=b&ttl=1", b"1").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=a%3Db", b"").status, 200);
    assert_eq!(client.request("PUT", "/v0/entity?id=%ff%00", b"1").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=%FF%00", b"").status, 200);
}

#[test]
fn absolute_targets_are_accepted() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    assert_eq!(fixture.request("GET", "http://localhost/v0/entity?id=k", b"").body, b"v");
}

#[test]
fn unknown_paths_are_400() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for path in [
        "/",
        "/v0",
        "/v0/",
        "/v0/status/",
        "/v0/entity/",
        "/V0/status",
        "/v1/entity?id=k",
        "//v0/status",
        "/v0/%73tatus",
    ] {
        for method in ["GET", "POST", "PUT"] {
            client.request(method, path, b"body").assert_problem(400, "unknown-path");
        }
    }
    client.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_response("OPTIONS").assert_problem(400, "unknown-path");
    client.assert_goes_on();
}

#[test]
fn other_methods_are_405_with_allow() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let rows = [
        (
            "/v0/status",
            "GET, HEAD",
            &["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"][..],
        ),
        ("/v0/entity?id=k", "GET, HEAD, PUT, DELETE", &["POST", "OPTIONS", "PATCH"]),
        ("/v0/entity", "GET, HEAD, PUT, DELETE", &["POST"]),
        ("/v0/entities?start=a", "GET, HEAD", &["POST", "PUT", "DELETE"]),
        ("/health", "GET, HEAD", &["POST"]),
        ("/metrics", "GET, HEAD", &["PUT"]),
        ("/v0/stats", "GET, HEAD", &["DELETE"]),
        ("/v0/slow", "GET, HEAD", &["POST"]),
        ("/v0/events", "GET, HEAD", &["PUT"]),
        ("/openapi.json", "GET, HEAD", &["POST"]),
        ("/v0/admin/flush", "POST", &["GET", "PUT"]),
        ("/v0/admin/compact", "POST", &["GET", "DELETE"]),
        ("/v0/admin/checkpoint", "POST", &["GET"]),
    ];
    for (path, allow, methods) in rows {
        for method in methods {
            let response = client.request(method, path, b"body");
            response.assert_problem(405, "method-not-allowed");
            assert_eq!(response.header("allow"), Some(allow), "{method} {path}");
        }
    }
    client.assert_goes_on();
}
