//! The operator API.

use crate::client::encode;
use crate::fixture::{Fixture, config};
use kvant_server::{DispatchMode, ServerConfig};
use std::path::PathBuf;

#[test]
fn status_and_health() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for (path, body) in [
        ("/v0/status", serde_json::json!({ "status": "ready" })),
        ("/health", serde_json::json!({ "status": "ready", "writes": "ok", "engine": "faulty" })),
    ] {
        let response = client.request("GET", path, b"");
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("application/json")),
            "{path}"
        );
        assert_eq!(response.json(), body, "{path}");
    }
}

#[test]
fn stats_hold_the_server_and_the_engine() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    fixture.request("GET", "/nowhere", b"");
    let stats = fixture.request("GET", "/v0/stats", b"").json();
    assert_eq!(stats["engine"]["records"], 1);
    assert_eq!(stats["server"]["batched_writes"], 1);
    assert_eq!(stats["server"]["connections_max"], 1000);
    assert_eq!(stats["server"]["memory_limit_bytes"], 256 << 20);
    assert_eq!(stats["server"]["events"], 0);
    assert!(stats["latency"].is_object(), "{stats}");
    let rows = stats["server"]["requests"].as_array().unwrap();
    let row = |route, method, status| serde_json::json!({ "route": route, "method": method, "status": status, "count": 1 });
    assert!(rows.contains(&row("/v0/entity", "PUT", "2xx")), "{rows:?}");
    assert!(rows.contains(&row("unknown", "GET", "4xx")), "{rows:?}");
}

#[test]
fn metrics_are_prometheus_text() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    let response = fixture.request("GET", "/metrics", b"");
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(response.body).unwrap();
    assert!(
        text.contains(
            "\nkvant_requests_total{route=\"/v0/entity\",method=\"PUT\",status=\"2xx\"} 1\n"
        ),
        "{text}"
    );
    assert!(text.contains("\nkvant_test_store 1\n"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap();
        // The lines of a histogram are typed together.
        let parts = ["_bucket", "_sum", "_count"];
        let histogram = parts.into_iter().find_map(|part| name.strip_suffix(part));
        assert!(
            name == "kvant_test_store"
                || histogram
                    .is_some_and(|name| text.contains(&format!("# TYPE {name} histogram\n")))
                || text.contains(&format!("# TYPE {name} ")),
            "{name} has no type"
        );
    }
}

#[test]
fn flush_compact_checkpoint() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for operation in ["flush", "compact"] {
        let response = client.request("POST", &format!("/v0/admin/{operation}"), b"");
        assert_eq!(
            (response.status, &response.json()["status"]),
            (200, &"done".into()),
            "{operation}"
        );
    }
    let by_query = format!("/v0/admin/checkpoint?dir={}", encode("с пробелом".as_bytes()));
    assert_eq!(client.request("POST", &by_query, b"").status, 200);
    assert_eq!(client.request("POST", "/v0/admin/checkpoint", br#"{"dir":"b"}"#).status, 200);
    let made = fixture.store.checkpoints.lock().unwrap().clone();
    assert_eq!(made, [PathBuf::from("checkpoints/с пробелом"), PathBuf::from("checkpoints/b")]);
    client.assert_goes_on();
}

#[test]
fn bad_checkpoints_are_400() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let rows: [(&str, &[u8], &str); 15] = [
        ("", b"", "bad-query"),
        ("?dir=/absolute", b"", "bad-query"),
        ("?dir=a/b", b"", "bad-query"),
        ("?dir=..", b"", "bad-query"),
        ("?dir=.", b"", "bad-query"),
        ("?dir=..%2Fa", b"", "bad-query"),
        ("", br#"{"dir":"a/../../b"}"#, "bad-query"),
        ("", br#"{"dir":"a\u0000"}"#, "bad-query"),
        ("?dir=", b"", "bad-query"),
        ("?dir=a&dir=b", b"", "bad-query"),
        ("?dir=%ff", b"", "bad-query"),
        ("?dir=a", br#"{"dir":"a"}"#, "bad-query"),
        ("", b"not json", "bad-body"),
        ("", br#"{"dir":1}"#, "bad-body"),
        ("", br#"{"dir":"a","other":1}"#, "bad-body"),
    ];
    for (query, body, kind) in rows {
        client
            .request("POST", &format!("/v0/admin/checkpoint{query}"), body)
            .assert_problem(400, kind);
    }
    let long = client.request("POST", "/v0/admin/checkpoint", &[b' '; 70_000]);
    long.assert_problem(413, "value-too-long");
    // Not the limit of values, which is a setting.
    let detail = long.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("65536") && !detail.contains("--value-bytes-max"), "{detail}");
    client.assert_goes_on();
    assert!(fixture.store.checkpoints.lock().unwrap().is_empty());
}

#[test]
fn openapi_is_json() {
    let fixture = Fixture::new();
    let response = fixture.request("GET", "/openapi.json", b"");
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert!(response.json()["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
}

#[test]
fn refusals_and_workers_are_shown() {
    let fixture = Fixture::with(ServerConfig {
        dispatch: DispatchMode::Pool,
        workers: 3,
        queue_capacity: 17,
        ..config()
    });
    fixture.put("k", b"v");
    let mut client = fixture.client();
    // A worker counts a job just after it has delivered the reply.
    let server = loop {
        let server = client.request("GET", "/v0/stats", b"").json()["server"].take();
        if server["pool"]["done"]["write"] != 0 {
            break server;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(server["refused"], serde_json::json!([]));
    assert_eq!(server["overloaded"], false);
    let pool = &server["pool"];
    assert_eq!((&pool["workers"], &pool["queue_capacity"]), (&3.into(), &17.into()));
    assert_eq!(pool["done"]["write"], 1, "{pool}");
    let text = String::from_utf8(client.request("GET", "/metrics", b"").body).unwrap();
    for line in [
        "kvant_refused_total{class=\"read\",reason=\"queue-full\"} 0",
        "kvant_overloaded 0",
        "kvant_pool_workers 3",
        "kvant_pool_done_total{class=\"write\"} 1",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
}
