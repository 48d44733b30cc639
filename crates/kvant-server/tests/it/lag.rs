//! The server's own lag: only requests that the server kept waiting are refused for it.

use crate::fixture::{Fixture, config};
use kvant_server::ServerConfig;
use std::time::Duration;

fn with_short_waits() -> Fixture {
    Fixture::with(ServerConfig { selectors: 1, queue_wait_max: Duration::from_secs(1), ..config() })
}

#[test]
fn a_slow_client_is_served() {
    let fixture = with_short_waits();
    let (mut slow, mut other) = (fixture.client(), fixture.client());
    for _ in 0..2 {
        fixture.wait_for_receipt(29, || slow.send("GET /v0/entity?id=k HTTP/1.1\r"));
        fixture.clock.advance(Duration::from_secs(5));
        slow.send("\nHost: x\r\n\r\n");
        assert_eq!(slow.read_response("GET").status, 404);
        other.assert_goes_on();
    }
}

#[test]
fn a_reset_connection_adds_no_lag_to_others() {
    let fixture = with_short_waits();
    let mut other = fixture.client();
    for _ in 0..3 {
        let reset = fixture.client();
        other.assert_goes_on();
        reset.reset();
        while fixture.request("GET", "/v0/stats", b"").json()["server"]["connections_open"] != 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        fixture.clock.advance(Duration::from_secs(5));
        assert_eq!(other.request("GET", "/v0/entity?id=k", b"").status, 404);
    }
}

#[test]
fn a_request_after_a_slow_one_on_its_connection_is_served() {
    let fixture = with_short_waits();
    let mut client = fixture.client();
    let held = fixture.store.hold_reads();
    let get = "GET /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send([get, get].concat());
    fixture.store.wait_for_reads(1);
    fixture.clock.advance(Duration::from_secs(5));
    drop(held);
    assert_eq!(client.read_response("GET").status, 404);
    assert_eq!(client.read_response("GET").status, 404);
}
