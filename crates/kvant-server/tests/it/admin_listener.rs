//! A second listener for operators.

use crate::client::Client;
use crate::fixture::{Fixture, config};
use kvant_server::ServerConfig;

#[test]
fn each_listener_serves_its_own_paths() {
    let admin_listen = Some("127.0.0.1:0".parse().unwrap());
    let fixture = Fixture::with(ServerConfig { admin_listen, ..config() });
    let mut data = fixture.client();
    let mut admin = Client::connect(fixture.server.admin_addr().unwrap());
    for path in ["/health", "/metrics", "/v0/stats", "/v0/slow", "/openapi.json"] {
        data.request("GET", path, b"").assert_problem(400, "unknown-path");
        assert_eq!(admin.request("GET", path, b"").status, 200, "{path}");
    }
    data.request("GET", "/v0/events", b"").assert_problem(400, "unknown-path");
    assert_eq!(admin.request("HEAD", "/v0/events", b"").status, 200);
    data.request("POST", "/v0/admin/flush", b"").assert_problem(400, "unknown-path");
    assert_eq!(admin.request("POST", "/v0/admin/flush", b"").status, 200);
    for path in ["/v0/entity?id=k", "/v0/entities?start=k"] {
        admin.request("GET", path, b"").assert_problem(400, "unknown-path");
    }
    assert_eq!(data.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    data.assert_goes_on();
    admin.assert_goes_on();
}

#[test]
fn without_an_admin_listener_one_listener_serves_all_paths() {
    let fixture = Fixture::new();
    assert!(fixture.server.admin_addr().is_none());
    assert_eq!(fixture.request("GET", "/health", b"").status, 200);
}
