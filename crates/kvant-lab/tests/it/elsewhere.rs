//! A subject on another machine: its events are on our clock.

use crate::conduct::{TempDir, calm, plan, run};
use crate::server::{AHEAD_NS, EVENT_US, Server};
use kvant_lab::conduct::{Progress, Stop};
use kvant_lab::record::{Attempt, EventFacts};
use std::fs;

const PLAN: &str = r#"
repeats = 1
connections = 1
[subject.elsewhere]
SERVER
[workload.status]
method = "GET"
path = "/"
[phase]
held = { rate = 50, duration = "1s", warmup = "100ms" }
"#;

#[test]
fn events_of_another_machine_are_on_our_clock_within_the_stated_error() {
    let (dir, server) = (TempDir::new(), Server::elsewhere());
    // Its /proc has no sockets, as if the server were not on this machine.
    let (plan, machine) = (plan(PLAN, &server), calm(&dir));
    run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();

    let journal = fs::read_to_string(dir.0.join("run/journal.jsonl")).unwrap();
    let attempt: Attempt = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let clock = attempt.clock.expect("the clocks were not matched");
    let off_ns = (clock.ahead_ns - AHEAD_NS).unsigned_abs();
    assert!(off_ns <= clock.error_ns, "{clock:?}");
    assert!(attempt.notes.iter().any(|note| note.contains("another machine")), "{attempt:?}");

    let events = fs::read_to_string(dir.0.join("run/attempts/0001/events.json")).unwrap();
    let events: Vec<EventFacts> = serde_json::from_str(&events).unwrap();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let within = attempt.start_ns - clock.error_ns..=attempt.end_ns + clock.error_ns;
    assert!(within.contains(&event.start_ns), "{event:?}, {within:?}");
    assert_eq!(event.end_ns, Some(event.start_ns + EVENT_US * 1_000));
}
