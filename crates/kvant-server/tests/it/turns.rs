//! Many busy connections, and one that requests the status, on one selector.

use crate::client::Client;
use crate::fixture::{Fixture, config};
use kvant_server::ServerConfig;

/// A pause of the machine lets all requests be served first: then the experiment is repeated.
const TRIES: usize = 20;
const BUSY_COUNT: usize = 400;

#[test]
fn the_status_overtakes_requests_that_wait_for_their_turn() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    fixture.put("k", b"v");
    let mut busy: Vec<Client> = (0..BUSY_COUNT).map(|_| fixture.client()).collect();
    let mut status = fixture.client();
    busy.iter_mut().for_each(Client::assert_goes_on);
    assert_eq!(status.request("GET", "/v0/status", b"").status, 200);
    let overtakes = (0..TRIES).any(|_| {
        // The first blocks in storage, so that all others arrive meanwhile.
        let held = fixture.store.hold_reads();
        for client in &mut busy {
            client.send_request("GET", "/v0/entity?id=k", b"");
        }
        status.send_request("GET", "/v0/status", b"");
        drop(held);
        assert_eq!(status.read_response("GET").status, 200);
        let overtaken_count = busy.iter().rev().filter(|client| !client.has_response()).count();
        for client in &mut busy {
            assert_eq!(client.read_response("GET").body, b"v");
        }
        overtaken_count > 0
    });
    assert!(overtakes, "the status waits for all earlier requests");
}
