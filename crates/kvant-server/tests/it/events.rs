//! Server-sent events.

use crate::client::Client;
use crate::fixture::{Fixture, NEVER};
use kvant_base::events::{EventKind, Field};

fn begin(client: &mut Client, target: &str, header: &str) {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n{header}\r\n"));
    let head = client.read_head().unwrap();
    assert_eq!(
        (
            head.status,
            head.header("content-type"),
            head.header("transfer-encoding"),
            head.header("cache-control"),
        ),
        (200, Some("text/event-stream"), Some("chunked"), Some("no-store"))
    );
}

fn next(client: &mut Client) -> String {
    String::from_utf8(client.read_chunk().expect("another chunk")).unwrap()
}

fn add(fixture: &Fixture) {
    fixture.recent.add_complete(EventKind::Fsync, 0, 2_000_000, Vec::new());
}

#[test]
fn events_come_as_they_happen() {
    let fixture = Fixture::new();
    let span = fixture.recent.begin(EventKind::Stall, 0, Vec::new());
    add(&fixture);
    let mut client = fixture.client();
    begin(&mut client, "/v0/events", "");
    assert_eq!(
        next(&mut client),
        "id: 1\nevent: stall\ndata: {\"edge\":\"begin\",\"span\":1,\"start\":\"2027-01-15T08:00:00.000Z\",\"start_ns\":0,\"fields\":{}}\n\n\
         id: 2\n\n"
    );
    let fields = vec![("reason", Field::Text("memtables".into()))];
    fixture.recent.end(EventKind::Stall, span, 0, 1_500_000, fields);
    assert_eq!(
        next(&mut client),
        "id: 3\nevent: stall\ndata: {\"edge\":\"end\",\"span\":1,\"start\":\"2027-01-15T08:00:00.000Z\",\"start_ns\":0,\
         \"duration_us\":1500.0,\"fields\":{\"reason\":\"memtables\"}}\n\n"
    );
    for number in 4..20 {
        add(&fixture);
        assert!(next(&mut client).starts_with(&format!("id: {number}\nevent: fsync\n")));
    }
}

#[test]
fn a_reader_resumes_after_its_last_event() {
    let fixture = Fixture::new();
    (0..5).for_each(|_| add(&fixture));
    for (target, header, expected) in [
        ("/v0/events?after=4", "", "id: 5\n"),
        ("/v0/events", "Last-Event-ID: 3\r\n", "id: 4\n"),
        ("/v0/events?after=0", "Last-Event-ID: 2\r\n", "id: 3\n"),
        ("/v0/events?after=1", "Last-Event-ID: elsewhere\r\n", "id: 2\n"),
        ("/v0/events?after=0&other=1", "", "id: 1\n"),
        ("/v0/events?after=6", "", ": the server has started anew"),
        ("/v0/events", "", "id: 5\n\n"),
    ] {
        let mut client = fixture.client();
        begin(&mut client, target, header);
        let first = next(&mut client);
        assert!(first.starts_with(expected), "{target} {header}: {first}");
    }
    for query in ["after=", "after=-1", "after=x", "after=1&after=1"] {
        fixture
            .request("GET", &format!("/v0/events?{query}"), b"")
            .assert_problem(400, "bad-query");
    }
}

#[test]
fn a_head_request_has_no_events() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let head = client.request("HEAD", "/v0/events", b"");
    assert_eq!(
        (head.status, head.header("content-type"), head.header("cache-control")),
        (200, Some("text/event-stream"), Some("no-store"))
    );
    client.assert_goes_on();
}

#[test]
fn http_1_0_clients_get_events_without_chunks() {
    let fixture = Fixture::new();
    add(&fixture);
    let mut client = fixture.client();
    client.send("GET /v0/events?after=0 HTTP/1.0\r\n\r\n");
    let head = client.read_head().unwrap();
    assert_eq!((head.header("transfer-encoding"), head.closes()), (None, true));
    let mut first = [0; 6];
    client.read_exact(&mut first);
    assert_eq!(&first, b"id: 1\n");
}

#[test]
fn streams_end_when_the_server_stops() {
    let fixture = Fixture::new();
    let mut clients: Vec<Client> = (0..4).map(|_| fixture.client()).collect();
    for client in &mut clients {
        begin(client, "/v0/events", "");
        assert_eq!(next(client), "id: 0\n\n");
    }
    fixture.server.stop(NEVER).unwrap();
    assert!(!fixture.events.has("connections_cut"));
    for client in &mut clients {
        assert_eq!(next(client), "", "the last chunk");
        assert!(client.is_closed());
    }
}

#[test]
fn later_events_detect_a_disconnected_reader() {
    let fixture = Fixture::new();
    let mut reader = fixture.client();
    begin(&mut reader, "/v0/events", "");
    next(&mut reader);
    let mut operator = fixture.client();
    let mut open =
        || operator.request("GET", "/v0/stats", b"").json()["server"]["connections_open"].clone();
    assert_eq!(open(), 2);
    drop(reader);
    while open() != 1 {
        add(&fixture);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_blocked_reader_learns_how_many_events_it_missed() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    begin(&mut client, "/v0/events", "");
    assert_eq!(next(&mut client), "id: 0\n\n");
    // The fixture's ring holds 64 of these, the kernel and hyper some megabytes.
    let text = "x".repeat(32 << 10);
    const COUNT: usize = 2_000;
    for _ in 0..COUNT {
        let fields = vec![("text", Field::Text(text.clone().into()))];
        fixture.recent.add_complete(EventKind::Fsync, 0, 1000, fields);
    }
    add(&fixture);
    let (mut received, mut missed) = (0, 0);
    while received + missed < COUNT + 1 {
        for line in next(&mut client).lines() {
            if let Some(count) = line.strip_prefix(": missed events: ") {
                missed += count.parse::<usize>().unwrap();
            }
            received += usize::from(line.starts_with("id: "));
        }
    }
    assert_eq!(received + missed, COUNT + 1);
    assert!(missed > 0 && received >= 64, "{received} received, {missed} missed");
    assert!(received < COUNT, "no event was dropped");
}
