//! Ranges.

use crate::client::encode;
use crate::fixture::{Fixture, config};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kvant_base::Consumer;
use kvant_server::ServerConfig;
use std::io::Read;
use std::time::Duration;

fn with_records(count: usize) -> Fixture {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for i in 0..count {
        assert_eq!(
            client
                .request("PUT", &format!("/v0/entity?id=k{i:05}"), format!("v{i}").as_bytes())
                .status,
            201
        );
    }
    fixture
}

fn lines(chunks: &[Vec<u8>]) -> Vec<String> {
    chunks.iter().map(|chunk| String::from_utf8(chunk.clone()).unwrap()).collect()
}

#[test]
fn a_chunk_is_a_record() {
    let fixture = with_records(5);
    let mut client = fixture.client();
    let all = client.request("GET", "/v0/entities?start=k", b"");
    assert_eq!((all.status, all.header("transfer-encoding")), (200, Some("chunked")));
    assert_eq!(
        lines(&all.chunks),
        ["k00000\nv0", "k00001\nv1", "k00002\nv2", "k00003\nv3", "k00004\nv4"]
    );
    let part = client.request("GET", "/v0/entities?start=k00001&end=k00003", b"");
    assert_eq!(lines(&part.chunks), ["k00001\nv1", "k00002\nv2"]);
    let limited = client.request("GET", "/v0/entities?start=k00001&limit=3", b"");
    assert_eq!(lines(&limited.chunks), ["k00001\nv1", "k00002\nv2", "k00003\nv3"]);
    let generous =
        client.request("GET", "/v0/entities?start=k00004&limit=18446744073709551615", b"");
    assert_eq!(lines(&generous.chunks), ["k00004\nv4"]);
    client.assert_goes_on();
}

#[test]
fn empty_ranges() {
    let fixture = with_records(3);
    let mut client = fixture.client();
    for query in
        ["start=z", "start=k&end=k", "start=k2&end=k1", "start=k00000&end=k00000", "start=a&end=b"]
    {
        let response = client.request("GET", &format!("/v0/entities?{query}"), b"");
        assert_eq!(
            (response.status, response.header("transfer-encoding")),
            (200, Some("chunked")),
            "{query}"
        );
        assert!(response.chunks.is_empty() && response.complete, "{query}");
    }
}

#[test]
fn a_value_may_be_empty_or_hold_line_feeds() {
    let fixture = Fixture::new();
    fixture.put("a", b"");
    fixture.put("b", b"1\n2\r\n\0");
    let response = fixture.request("GET", "/v0/entities?start=a", b"");
    assert_eq!(response.chunks, [b"a\n".to_vec(), b"b\n1\n2\r\n\0".to_vec()]);
}

/// What hyper itself sends to a head that is too large, without its date.
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n";

/// The sixth record begins the second write of the response.
#[test]
fn a_range_of_http_1_1_is_whole_though_a_record_looks_like_a_refusal() {
    let fixture = Fixture::new();
    for number in 1..=5 {
        fixture.put(&format!("A{number}"), &[b'v'; 1000]);
    }
    fixture.put(&encode(TOO_LARGE), b"");
    let mut client = fixture.client();
    let response = client.request("GET", "/v0/entities?start=A", b"");
    assert_eq!((response.status, response.chunks.len(), response.complete), (200, 6, true));
    assert_eq!(response.chunks[5], [TOO_LARGE, b"\n"].concat());
    client.assert_goes_on();
}

/// The seventeenth record begins the second write of the response.
#[test]
fn a_range_of_http_1_0_is_whole_though_records_look_like_refusals() {
    let fixture = Fixture::new();
    let records: Vec<Vec<u8>> =
        (10..50).map(|number| [TOO_LARGE, format!("{number}\n").as_bytes()].concat()).collect();
    for record in &records {
        fixture.put(&encode(&record[..record.len() - 1]), b"");
    }
    let mut client = fixture.client();
    client.send("GET /v0/entities?start=A HTTP/1.0\r\n\r\n");
    let response = client.read_response("GET");
    assert_eq!(response.status, 200);
    let body = response.body.escape_ascii().to_string();
    assert_eq!(body, records.concat().escape_ascii().to_string());
}

#[test]
fn a_long_range_is_whole_and_in_order() {
    let fixture = with_records(20_000);
    let mut client = fixture.client();
    let response = client.request("GET", "/v0/entities?start=k&end=l", b"");
    assert_eq!(response.chunks.len(), 20_000);
    for (i, chunk) in response.chunks.iter().enumerate() {
        assert_eq!(chunk, format!("k{i:05}\nv{i}").as_bytes());
    }
    client.assert_goes_on();
    assert_eq!(fixture.memory.used_bytes(Consumer::Requests), 0);
}

#[test]
fn pipelined_ranges() {
    let fixture = with_records(5000);
    let mut client = fixture.client();
    for _ in 0..20 {
        client.send_request("GET", "/v0/entities?start=k", b"");
        client.send_request("GET", "/v0/entity?id=k00007", b"");
    }
    for _ in 0..20 {
        assert_eq!(client.read_response("GET").chunks.len(), 5000);
        assert_eq!(client.read_response("GET").body, b"v7");
    }
}

#[test]
fn json_lines() {
    let fixture = Fixture::new();
    fixture.put("a%22b", "ключ\n".as_bytes());
    fixture.put(&encode(b"\xff\x00"), b"text");
    fixture.put(&encode(b"\xffz"), b"\x80");
    let mut client = fixture.client();
    client.send("GET /v0/entities?start=a HTTP/1.1\r\nHost: x\r\nAccept: text/html, Application/X-NDJSON;q=0.5\r\n\r\n");
    let response = client.read_response("GET");
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
    let text = String::from_utf8(response.body).unwrap();
    assert!(text.ends_with('\n'));
    let objects: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let encoded = |bytes: &[u8]| BASE64.encode(bytes);
    assert_eq!(
        objects,
        [
            serde_json::json!({ "key": "a\"b", "value": "ключ\n" }),
            serde_json::json!({ "key_base64": encoded(b"\xff\x00"), "value": "text" }),
            serde_json::json!({ "key_base64": encoded(b"\xffz"), "value_base64": encoded(b"\x80") }),
        ]
    );
}

#[test]
fn binary_records() {
    let fixture = Fixture::new();
    fixture.put("a", b"12");
    fixture.put("bc", b"");
    let mut client = fixture.client();
    let head = "HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.kvant.records\r\n\r\n";
    client.send(format!("GET /v0/entities?start=a {head}GET /v0/entities?start=z {head}"));
    let response = client.read_response("GET");
    assert_eq!(response.header("content-type"), Some("application/vnd.kvant.records"));
    let end = |count: u8| [0xff, 0xff, 0xff, 0xff, count, 0, 0, 0, 0, 0, 0, 0];
    let records = b"\x01\0\0\0\x02\0\0\0a12\x02\0\0\0\0\0\0\0bc";
    assert_eq!(response.body, [&records[..], &end(2)].concat());
    assert_eq!(client.read_response("GET").body, end(0), "an empty range has an end record, too");
}

#[test]
fn head_opens_no_range() {
    let fixture = with_records(3);
    *fixture.store.faults.damaged_key.lock().unwrap() = Some(b"k00000".to_vec());
    assert_eq!(fixture.request("HEAD", "/v0/entities?start=k", b"").status, 200);
}

#[test]
fn an_error_before_the_first_piece_has_a_status() {
    let fixture = with_records(3);
    *fixture.store.faults.damaged_key.lock().unwrap() = Some(b"k00001".to_vec());
    let mut client = fixture.client();
    client.request("GET", "/v0/entities?start=k", b"").assert_problem(500, "corruption");
    client.assert_goes_on();
    assert!(fixture.events.has("000007.table at byte 4096"));
}

#[test]
fn an_error_after_the_start_cuts_the_body() {
    let fixture = with_records(20_000);
    *fixture.store.faults.damaged_key.lock().unwrap() = Some(b"k15000".to_vec());
    let mut client = fixture.client();
    let response = client.request("GET", "/v0/entities?start=k", b"");
    assert_eq!(response.status, 200);
    assert!(!response.complete, "a last chunk was sent");
    assert!(!response.chunks.is_empty() && response.chunks.len() <= 15_000);
    assert!(client.is_closed());
    assert!(fixture.events.has("range_aborted"));
    // HTTP/1.0 has no last chunk: the end must not look like one.
    let mut client = fixture.client();
    client.send("GET /v0/entities?start=k HTTP/1.0\r\n\r\n");
    assert!(!client.read_response("GET").complete);
}

#[test]
fn a_range_is_a_snapshot_and_waits_for_its_reader() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let value = vec![b'v'; 100_000];
    for i in 0..300 {
        assert_eq!(client.request("PUT", &format!("/v0/entity?id=k{i:03}"), &value).status, 201);
    }
    // 30 MB: more than the kernel's buffers take. The rest is read only on demand.
    client.send_request("GET", "/v0/entities?start=k", b"");
    let mut first = [0; 1];
    client.stream().peek(&mut first).unwrap();
    for i in 0..300 {
        assert_eq!(fixture.request("DELETE", &format!("/v0/entity?id=k{i:03}"), b"").status, 202);
    }
    let held_bytes = fixture.memory.used_bytes(Consumer::Requests);
    assert!((100_000..1_000_000).contains(&held_bytes), "{held_bytes}");
    let response = client.read_response("GET");
    assert!(response.chunks.len() == 300 && response.complete);
    client.assert_goes_on();
    assert_eq!(fixture.memory.used_bytes(Consumer::Requests), 0);
}

#[test]
fn a_reader_that_takes_nothing_is_cut() {
    let fixture =
        Fixture::with(ServerConfig { range_idle_max: Duration::from_millis(100), ..config() });
    let mut client = fixture.client();
    for i in 0..300 {
        assert_eq!(
            client.request("PUT", &format!("/v0/entity?id=k{i}"), &[b'v'; 100_000]).status,
            201
        );
    }
    client.send_request("GET", "/v0/entities?start=k", b"");
    let is_cut = || fixture.request("GET", "/v0/stats", b"").json()["server"]["readers_cut"] == 1;
    while !is_cut() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut rest = Vec::new();
    let result = client.stream().read_to_end(&mut rest);
    assert!(result.is_err() || !rest.ends_with(b"0\r\n\r\n"));
    assert_eq!(fixture.memory.used_bytes(Consumer::Requests), 0);
}

#[test]
fn weights_in_accept_choose_the_format() {
    let fixture = Fixture::new();
    fixture.put("a", b"1");
    const PLAIN: &str = "application/octet-stream";
    const LINES: &str = "application/x-ndjson";
    const BINARY: &str = "application/vnd.kvant.records";
    for (accept, expected) in [
        ("application/x-ndjson;q=0", PLAIN),
        ("application/x-ndjson;q=0.0, application/vnd.kvant.records", BINARY),
        ("application/x-ndjson;q=0.5, application/vnd.kvant.records;q=0.8", BINARY),
        ("application/x-ndjson; Q=0.9 , application/vnd.kvant.records;q=0.8", LINES),
        ("application/x-ndjson, application/vnd.kvant.records", LINES),
        ("application/vnd.kvant.records, application/x-ndjson", BINARY),
        ("application/x-ndjson;q=0.2, application/octet-stream;q=0.3", PLAIN),
        ("application/x-ndjson;q=0.2, */*;q=0.3", PLAIN),
        ("*/*, application/x-ndjson", LINES),
        ("application/x-ndjson;q=0.001, */*;q=0", LINES),
        ("application/octet-stream;q=0, */*", LINES),
        ("*/*", PLAIN),
        ("application/*", PLAIN),
        ("*/*;q=0", PLAIN),
        ("text/html, */*;q=0.8", PLAIN),
        ("application/x-ndjson;charset=utf-8;q=0.9, application/vnd.kvant.records;q=0.1", LINES),
        ("application/x-ndjson;q=x", LINES),
    ] {
        let mut client = fixture.client();
        client.send(format!(
            "GET /v0/entities?start=a HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"
        ));
        let response = client.read_response("GET");
        assert_eq!(response.header("content-type"), Some(expected), "{accept}");
    }
}

#[test]
fn the_problem_of_a_read_without_memory_does_not_mention_writes() {
    let fixture =
        Fixture::with(ServerConfig { queue_wait_max: Duration::from_millis(1), ..config() });
    let _taken = fixture.memory.reserve(Consumer::Requests, 1 << 40);
    let response = fixture.request("GET", "/v0/entities?start=a", b"");
    response.assert_problem(503, "no-memory");
    let problem = response.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("nothing was done: "), "{detail}");
}
