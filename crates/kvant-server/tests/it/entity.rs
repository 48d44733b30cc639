//! One record: the success rows of the contract.

use crate::client::encode;
use crate::fixture::Fixture;
use std::time::Duration;

#[test]
fn put_get_delete() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let put = client.request("PUT", "/v0/entity?id=k", b"value");
    assert_eq!((put.status, put.body.len()), (201, 0));
    let get = client.request("GET", "/v0/entity?id=k", b"");
    assert_eq!((get.status, get.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!(get.body, b"value");
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"newer").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"newer");
    let delete = client.request("DELETE", "/v0/entity?id=k", b"");
    assert_eq!((delete.status, delete.body.len()), (202, 0));
    client.request("GET", "/v0/entity?id=k", b"").assert_problem(404, "not-found");
    assert_eq!(client.request("DELETE", "/v0/entity?id=k", b"").status, 202, "an absent key, too");
}

#[test]
fn head_is_get_without_the_body() {
    let fixture = Fixture::new();
    fixture.put("k", b"twelve bytes");
    let mut client = fixture.client();
    let head = client.request("HEAD", "/v0/entity?id=k", b"");
    assert_eq!((head.status, head.header("content-length")), (200, Some("12")));
    assert_eq!(head.header("content-type"), Some("application/octet-stream"));
    assert_eq!(client.request("HEAD", "/v0/entity?id=absent", b"").status, 404);
    for path in [
        "/v0/status",
        "/v0/entities?start=a",
        "/health",
        "/metrics",
        "/v0/stats",
        "/v0/slow",
        "/openapi.json",
    ] {
        let head = client.request("HEAD", path, b"");
        assert_eq!(head.status, 200, "{path}");
        let get = client.request("GET", path, b"");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
    }
    client.assert_goes_on();
}

#[test]
fn the_empty_value_is_a_value() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"").status, 201);
    let get = client.request("GET", "/v0/entity?id=k", b"");
    assert_eq!((get.status, get.header("content-length"), get.body.len()), (200, Some("0"), 0));
    // Without any length there is no body either.
    client.send("PUT /v0/entity?id=n HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read_response("PUT").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=n", b"").status, 200);
}

#[test]
fn a_key_of_16_kib_with_all_byte_values() {
    let fixture = Fixture::new();
    let key: Vec<u8> = (0..16_384).map(|i| (i % 256) as u8).collect();
    let target = format!("/v0/entity?id={}", encode(&key));
    let mut client = fixture.client();
    assert_eq!(client.request("PUT", &target, b"v").status, 201);
    assert_eq!(client.request("GET", &target, b"").body, b"v");
    let range = client.request("GET", &format!("/v0/entities?start={}", encode(&key)), b"");
    assert_eq!(range.chunks, [[&key[..], b"\nv"].concat()]);
    assert_eq!(client.request("DELETE", &target, b"").status, 202);
    assert_eq!(client.request("GET", &target, b"").status, 404);
}

#[test]
fn a_key_over_16_kib_is_414_and_the_connection_goes_on() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let key = "k".repeat(16_385);
    for method in ["GET", "PUT", "DELETE"] {
        client
            .request(method, &format!("/v0/entity?id={key}"), b"some body")
            .assert_problem(414, "key-too-long");
        client.assert_goes_on();
    }
    client
        .request("GET", &format!("/v0/entities?start={key}"), b"")
        .assert_problem(414, "key-too-long");
    client
        .request("GET", &format!("/v0/entities?start=a&end={key}"), b"")
        .assert_problem(414, "key-too-long");
    assert_eq!(
        client.request("PUT", &format!("/v0/entity?id={}", "k".repeat(16_384)), b"").status,
        201
    );
}

#[test]
fn a_value_of_16_mib() {
    let fixture = Fixture::new();
    let value: Vec<u8> =
        (0..16 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut client = fixture.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", &value).status, 201);
    assert!(client.request("GET", "/v0/entity?id=k", b"").body == value);
    assert!(
        client.request("GET", "/v0/entities?start=k", b"").chunks
            == [[b"k\n", &value[..]].concat()]
    );
    assert_eq!(
        client.request("HEAD", "/v0/entity?id=k", b"").header("content-length"),
        Some("16777216")
    );
    client.assert_goes_on();
}

#[test]
fn values_of_all_sizes_around_the_buffers() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for size in [1, 8191, 8192, 8193, 16_384, 65_535, 65_536, 65_537, 500_000, 2_000_000] {
        let value = vec![size as u8; size];
        assert_eq!(client.request("PUT", "/v0/entity?id=k", &value).status, 201, "{size}");
        assert!(client.request("GET", "/v0/entity?id=k", b"").body == value, "{size}");
    }
}

#[test]
fn a_value_expires_by_the_wall_clock_and_never_early() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k&ttl=2", b"v").status, 201);
    assert_eq!(client.request("PUT", "/v0/entity?id=longest&ttl=315360000", b"v").status, 201);
    fixture.clock.advance(Duration::from_millis(2000));
    assert_eq!(
        client.request("GET", "/v0/entity?id=k", b"").status,
        200,
        "2 s may not be over yet to the microsecond"
    );
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 404);
    assert_eq!(client.request("GET", "/v0/entity?id=longest", b"").status, 200);
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    fixture.clock.advance(Duration::from_secs(1000));
    assert_eq!(
        client.request("GET", "/v0/entity?id=k", b"").status,
        200,
        "a later value without a ttl stays"
    );
}

#[test]
fn a_thousand_pipelined_requests_get_their_responses_in_order() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let mut requests = String::new();
    for i in 0..1000 {
        requests += &match i % 4 {
            0 => format!(
                "PUT /v0/entity?id=k{i} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n{i:04}"
            ),
            1 => format!("GET /v0/entity?id=k{} HTTP/1.1\r\nHost: x\r\n\r\n", i - 1),
            2 => format!("DELETE /v0/entity?id=k{} HTTP/1.1\r\nHost: x\r\n\r\n", i - 2),
            _ => format!("GET /v0/entity?id=k{} HTTP/1.1\r\nHost: x\r\n\r\n", i - 3),
        };
    }
    let mut sender = client.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        std::io::Write::write_all(&mut sender, requests.as_bytes()).unwrap()
    });
    for i in 0..1000 {
        let response = client.read_response("GET");
        assert_eq!(response.status, [201, 200, 202, 404][i % 4], "request {i}");
        if i % 4 == 1 {
            assert_eq!(response.body, format!("{:04}", i - 1).as_bytes());
        }
    }
    sending.join().unwrap();
    client.assert_goes_on();
}

#[test]
fn http_1_0() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    let mut client = fixture.client();
    client.send("GET /v0/entity?id=k HTTP/1.0\r\n\r\n");
    let response = client.read_response("GET");
    assert_eq!(
        (response.status, response.version.as_str(), &response.body[..]),
        (200, "HTTP/1.0", &b"v"[..])
    );
    assert!(client.is_closed());

    let mut client = fixture.client();
    for _ in 0..2 {
        client.send(
            "PUT /v0/entity?id=z HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1",
        );
        let response = client.read_response("PUT");
        assert_eq!((response.status, response.header("connection")), (201, Some("keep-alive")));
    }
    client.send("GET /v0/entities?start=k HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let range = client.read_response("GET");
    assert_eq!((range.header("transfer-encoding"), range.header("content-length")), (None, None));
    assert!(range.closes() && range.complete, "until close: {range:?}");
    assert_eq!(range.body, b"k\nvz\n1");
}

#[test]
fn connection_close_is_honoured() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(client.read_response("GET").closes());
    assert!(client.is_closed());
}

#[test]
fn a_client_that_half_closes_still_gets_its_responses() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send_request("PUT", "/v0/entity?id=k", b"v");
    client.send_request("GET", "/v0/entity?id=k", b"");
    client.shutdown_write();
    assert_eq!(client.read_response("PUT").status, 201);
    assert_eq!(client.read_response("GET").body, b"v");
    assert!(client.is_closed());
}
