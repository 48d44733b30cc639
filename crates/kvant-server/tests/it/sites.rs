//! Requests of web pages of other sites are rejected, whatever they are.

use crate::client::{Client, Response};
use crate::fixture::{Fixture, config};
use kvant_server::ServerConfig;
use std::sync::atomic::Ordering::SeqCst;

/// No header, and one that only hyper accepts.
const BOTH_WAYS: [&str; 2] = ["", "TE: trailers\r\n"];

const REQUESTS: [(&str, &str); 15] = [
    ("GET", "/v0/status"),
    ("HEAD", "/v0/status"),
    ("GET", "/v0/entity?id=kept"),
    ("PUT", "/v0/entity?id=kept"),
    ("DELETE", "/v0/entity?id=kept"),
    ("GET", "/v0/entities?start=a"),
    ("GET", "/health"),
    ("GET", "/v0/stats"),
    ("GET", "/v0/events"),
    ("POST", "/v0/admin/flush"),
    ("POST", "/v0/admin/checkpoint"),
    ("POST", "/v0/profile"),
    ("OPTIONS", "/v0/entity?id=kept"),
    ("POST", "/v0/entity?id=kept"),
    ("GET", "/nowhere"),
];

const FOREIGN: [&str; 16] = [
    "Host: evil.example\r\n",
    "Host: evil.example:8080\r\n",
    "Host: localhost.evil.example\r\n",
    "Host: 127.0.0.1.evil.example\r\n",
    "Host: 2130706433\r\n",
    "Host: example.com.evil\r\n",
    "Host: localhost\r\nOrigin: https://example.org\r\n",
    "Host: localhost\r\nOrigin: null\r\n",
    "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
    "Host: 127.0.0.1:8080\r\nOrigin: http://localhost:8080\r\n",
    "Host: localhost\r\nOrigin: https://localhost\r\n",
    "Host: localhost\r\nOrigin:\r\n",
    "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://example.org\r\n",
    "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
    "Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
    "Host: example.com\r\nOrigin: http://example.com\r\nSec-Fetch-Site: cross-site\r\n",
];

const OWN: [&str; 10] = [
    "Host: localhost\r\n",
    "Host: LOCALHOST:8080\r\n",
    "Host: 127.0.0.1:8080\r\n",
    "Host: 10.0.0.7\r\n",
    "Host: [::1]:8080\r\n",
    "Host: EXAMPLE.com:80\r\n",
    "Host:\r\n",
    "Host: localhost:8080\r\nOrigin: http://localhost:8080\r\nSec-Fetch-Site: same-origin\r\n",
    "Host: 127.0.0.1:8080\r\nOrigin: https://example.com\r\nSec-Fetch-Site: same-origin\r\n",
    "Host: localhost\r\nSec-Fetch-Site: none\r\n",
];

fn fixture() -> Fixture {
    Fixture::with(ServerConfig {
        admin_listen: Some("127.0.0.1:0".parse().unwrap()),
        allowed_hosts: vec!["x".into(), "example.com".into()],
        ..config()
    })
}

fn request(client: &mut Client, method: &str, target: &str, headers: &str) -> Response {
    let (length, body) = match method {
        "PUT" | "POST" => ("Content-Length: 3\r\n", "new"),
        _ => ("", ""),
    };
    client.send(format!("{method} {target} HTTP/1.1\r\n{headers}{length}\r\n{body}"));
    client.read_response(method)
}

#[test]
fn requests_of_other_sites_are_403_for_every_method_and_path_and_nothing_is_done() {
    let fixture = fixture();
    fixture.put("kept", b"old");
    let (batches, reads) = (fixture.store.batches.load(SeqCst), fixture.store.reads.load(SeqCst));
    for address in [fixture.address(), fixture.server.admin_addr().unwrap()] {
        for way in BOTH_WAYS {
            let mut client = Client::connect(address);
            for (method, target) in REQUESTS {
                for headers in FOREIGN {
                    let response = request(&mut client, method, target, &format!("{headers}{way}"));
                    if method == "HEAD" {
                        assert_eq!(response.status, 403, "{headers}");
                        continue;
                    }
                    response.assert_problem(403, "foreign-site");
                    let problem = response.json();
                    let detail = problem["detail"].as_str().unwrap();
                    assert!(detail.starts_with("nothing was done: "), "{detail}");
                    assert!(detail.contains("--allowed-hosts"), "{detail}");
                }
            }
            client.assert_goes_on();
        }
    }
    assert_eq!(fixture.store.batches.load(SeqCst), batches);
    assert_eq!(fixture.store.reads.load(SeqCst), reads);
    assert!(fixture.store.checkpoints.lock().unwrap().is_empty());
    assert_eq!(fixture.request("GET", "/v0/entity?id=kept", b"").body, b"old");
}

#[test]
fn own_hosts_and_pages_are_served() {
    let fixture = fixture();
    for way in BOTH_WAYS {
        for headers in OWN {
            let headers = format!("{headers}{way}");
            let status =
                |method, target| request(&mut fixture.client(), method, target, &headers).status;
            assert_eq!(status("GET", "/v0/status"), 200, "{headers}");
            assert_eq!(status("PUT", "/v0/entity?id=k"), 201, "{headers}");
            assert_eq!(status("GET", "/v0/entity?id=k"), 200, "{headers}");
            assert_eq!(status("DELETE", "/v0/entity?id=k"), 202, "{headers}");
            assert_eq!(status("GET", "/v0/entities?start=a"), 200, "{headers}");
        }
    }
    // HTTP/1.0 clients name no host.
    let mut old = fixture.client();
    old.send("GET /v0/status HTTP/1.0\r\n\r\n");
    assert_eq!(old.read_response("GET").status, 200);
}

#[test]
fn the_host_of_an_absolute_target_is_checked_too() {
    let fixture = fixture();
    let with_user = ["http:", "//user@localhost/v0/status"].concat();
    for (target, status) in [
        ("http://localhost/v0/status", 200),
        ("http://example.org/v0/status", 403),
        (&with_user, 400),
    ] {
        let response = request(&mut fixture.client(), "GET", target, "Host: localhost\r\n");
        assert_eq!(response.status, status, "{target}");
    }
}

#[test]
fn a_foreign_put_that_expects_continue_is_refused_without_it() {
    let fixture = fixture();
    let mut client = fixture.client();
    client.send(
        "PUT /v0/entity?id=k HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
    );
    let response = client.read_response("PUT");
    response.assert_problem(403, "foreign-site");
    assert!(response.closes());
    assert!(client.is_closed());
}

#[test]
fn the_refusal_names_the_host_that_could_be_allowed() {
    let fixture = fixture();
    let detail = |headers: &str| {
        let response = request(&mut fixture.client(), "GET", "/v0/status", headers);
        response.json()["detail"].as_str().unwrap().to_string()
    };
    let named = detail("Host: db.example:8080\r\n");
    assert!(named.ends_with("--allowed-hosts db.example"), "{named}");
    let long = detail(&format!("Host: {}\r\n", "a".repeat(60_000)));
    assert!(long.ends_with("--allowed-hosts NAME"), "{}", long.len());
}
