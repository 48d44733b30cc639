//! `POST /v0/profile`. A process records one profile at a time, so these tests take turns.

use crate::client::{Client, Response};
use crate::fixture::{Fixture, NEVER};
use flate2::read::GzDecoder;
use kvant_profiler::recording::{self, Kind, Recording};
use kvant_profiler::symbols;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests a profile while the server is busy.
fn profile(fixture: &Fixture, query: &str) -> Response {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = fixture.client();
            while !is_over.load(Ordering::Relaxed) {
                let put = client.request("PUT", "/v0/entity?id=k", &[b'v'; 2000]);
                assert_eq!(put.status, 201);
                assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 200);
            }
        });
        let response = fixture.request("POST", &format!("/v0/profile?{query}"), b"");
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.header("cache-control"), Some("no-store"));
        response
    })
}

fn decode(response: &Response) -> Recording {
    assert_eq!(response.header("content-type"), Some("application/vnd.kvant.profile"));
    recording::decode(&response.body).unwrap()
}

fn has_function(recording: &Recording, part: &str) -> bool {
    let functions = recording.symbols.iter().flatten();
    functions.into_iter().any(|function| function.name.contains(part))
}

/// A function of the server that every request goes through.
const KNOWN: &str = "kvant_server::conn::connection::serve";

#[test]
fn a_recording_has_samples_times_threads_and_names() {
    let _turn = turn();
    let fixture = Fixture::new();
    let recording = decode(&profile(&fixture, "duration=1s&format=kprof&rate=1000"));
    let facts = &recording.facts;
    assert!(facts.duration_ns >= 1_000_000_000, "{facts:?}");
    assert!(
        facts.cpu.is_some() && facts.alloc_mean_bytes.is_some() && facts.wait_mean_ns.is_some()
    );
    assert!(
        recording.threads.iter().any(|thread| thread.name == "selector-0"),
        "{:?}",
        recording.threads
    );
    let mut kinds = recording.samples.iter().map(|sample| sample.kind);
    assert!(kinds.any(|kind| kind == Kind::Cpu), "{} samples", recording.samples.len());
    assert!(!recording.needs_symbols());
    assert!(has_function(&recording, KNOWN));
}

#[test]
fn events_and_the_rate_are_chosen() {
    let _turn = turn();
    let fixture = Fixture::new();
    let facts = decode(&profile(&fixture, "duration=100ms&format=kprof&event=cpu&rate=50")).facts;
    let cpu = facts.cpu.expect("CPU time was sampled");
    assert_eq!((cpu.engine.as_str(), cpu.period_ns), ("timer", 20_000_000));
    assert_eq!((facts.alloc_mean_bytes, facts.wait_mean_ns), (None, None));
    let facts = decode(&profile(&fixture, "duration=100ms&format=kprof&event=alloc,lock")).facts;
    assert!(
        facts.cpu.is_none() && facts.alloc_mean_bytes.is_some() && facts.wait_mean_ns.is_some()
    );
}

#[test]
fn the_client_resolves_symbols_that_it_knows() {
    let _turn = turn();
    let fixture = Fixture::new();
    let known = symbols::visible().to_text();
    let mut recording = decode(&profile(
        &fixture,
        &format!("duration=500ms&event=cpu&format=kprof&rate=1000&known={known}"),
    ));
    assert!(recording.needs_symbols());
    symbols::resolve(&mut recording);
    assert!(has_function(&recording, KNOWN));
}

#[test]
fn recordings_are_exported_for_other_tools() {
    let _turn = turn();
    let fixture = Fixture::new();
    let collapsed = profile(&fixture, "duration=1s&event=cpu&format=collapsed&rate=1000");
    assert_eq!(collapsed.header("content-type"), Some("text/plain; charset=utf-8"));
    let text = String::from_utf8(collapsed.body).unwrap();
    assert!(text.contains(KNOWN), "{text}");
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        assert!(
            (stack.contains(';') || stack == "[not sampled]") && weight.parse::<u64>().unwrap() > 0,
            "{line}"
        );
    }
    let pprof = profile(&fixture, "duration=1s&format=pprof&rate=1000");
    assert_eq!(pprof.header("content-type"), Some("application/gzip"));
    let mut raw = Vec::new();
    GzDecoder::new(&pprof.body[..]).read_to_end(&mut raw).unwrap();
    assert!(raw.windows(KNOWN.len()).any(|window| window == KNOWN.as_bytes()));
    let html = profile(&fixture, "duration=500ms");
    assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(html.body.starts_with(b"<!"), "{}", html.body.escape_ascii());
}

#[test]
fn an_unknown_parameter_is_400_and_the_valid_ones_are_listed() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let response = client.request("POST", "/v0/profile?seconds=1&format=kprof", b"");
    response.assert_problem(400, "bad-query");
    let text = String::from_utf8(response.body.clone()).unwrap();
    for part in ["`seconds`", "event, duration, format, rate, engine, kind, known"] {
        assert!(text.contains(part), "{text}");
    }
    client.assert_goes_on();
}

#[test]
fn invalid_parameters_are_400() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for query in [
        "event=wall",
        "duration=2h",
        "duration=1",
        "format=svg",
        "format=collapsed",
        "rate=0",
        "engine=wall",
        "engine=timer&event=lock",
        "kind=cpu",
        "event=cpu&event=lock",
    ] {
        client
            .request("POST", &format!("/v0/profile?{query}"), b"")
            .assert_problem(400, "bad-query");
    }
    client.request("GET", "/v0/profile", b"").assert_problem(405, "method-not-allowed");
    client.assert_goes_on();
}

/// Begins a long recording, and waits until the server records.
fn begin(fixture: &Fixture) -> Client {
    let mut client = fixture.client();
    client.send_request("POST", "/v0/profile?duration=60m&format=kprof&event=lock", b"");
    loop {
        let other =
            fixture.request("POST", "/v0/profile?duration=100ms&format=kprof&event=lock", b"");
        match other.status {
            409 => {
                other.assert_problem(409, "profile-running");
                return client;
            }
            status => assert_eq!(status, 200, "{other:?}"),
        }
        if client.has_response() {
            // Another recording runs.
            client.read_response("POST").assert_problem(409, "profile-running");
            client.send_request("POST", "/v0/profile?duration=60m&format=kprof&event=lock", b"");
        }
    }
}

/// Waits until nothing is recorded any more.
fn wait_for_end(fixture: &Fixture) {
    while fixture.request("POST", "/v0/profile?duration=100ms&event=lock", b"").status == 409 {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_disconnects_ends_its_recording() {
    let _turn = turn();
    let fixture = Fixture::new();
    drop(begin(&fixture));
    wait_for_end(&fixture);
    begin(&fixture).reset();
    wait_for_end(&fixture);
}

#[test]
fn a_client_that_half_closes_receives_the_recording_so_far() {
    let _turn = turn();
    let fixture = Fixture::new();
    let mut client = begin(&fixture);
    client.shutdown_write();
    let recording = decode(&client.read_response("POST"));
    assert!(recording.facts.duration_ns < 3_600_000_000_000);
    wait_for_end(&fixture);
}

#[test]
fn a_server_that_stops_sends_the_recording_so_far() {
    let _turn = turn();
    let fixture = Fixture::new();
    let mut client = begin(&fixture);
    fixture.server.stop(NEVER).unwrap();
    decode(&client.read_response("POST"));
    assert!(client.is_closed());
}
