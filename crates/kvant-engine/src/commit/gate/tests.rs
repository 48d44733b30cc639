use super::*;
use kvant_base::Events;
use kvant_base::events::{Edge, Field};
use kvant_base::log::NoLog;
use kvant_env::testing::MockClock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const SLOWED: Position = Position::Slowed { reason: StallReason::L0Tables, earn: 0.5 };
const CLOSED: Position = Position::Closed { reason: StallReason::Memtables };

fn gate() -> (Gate, Arc<MockClock>) {
    let (gate, clock, _) = gate_and_events();
    (gate, clock)
}

fn gate_and_events() -> (Gate, Arc<MockClock>, Arc<Events>) {
    let clock = Arc::new(MockClock::new(0));
    let events = Events::new(100);
    let sink = EventSink::new(clock.clone(), Arc::clone(&events));
    (Gate::new(clock.clone(), Arc::new(NoLog), sink, 1_000), clock, events)
}

#[test]
fn an_open_gate_lets_everything_pass() {
    let (gate, _) = gate();
    assert_eq!(gate.admit(usize::MAX), Ok(()));
    assert_eq!(gate.stall(), None);
}

#[test]
fn a_slowed_gate_admits_the_bytes_that_compaction_has_earned() {
    let (gate, _) = gate();
    gate.set(SLOWED);
    assert_eq!(gate.admit(600), Ok(()));
    assert_eq!(gate.admit(600), Ok(()), "the last batch may overdraw");
    assert_eq!(gate.admit(1), Err(StallReason::L0Tables));
    gate.earn(StallReason::L0Tables, 400);
    assert_eq!(gate.admit(1), Err(StallReason::L0Tables), "200 earned do not cover 200 overdrawn");
    gate.earn(StallReason::L0Tables, 2);
    assert_eq!(gate.admit(1), Ok(()));
}

#[test]
fn earned_credits_are_limited_to_the_burst() {
    let (gate, _) = gate();
    gate.set(SLOWED);
    gate.earn(StallReason::L0Tables, 1 << 40);
    assert_eq!(gate.admit(1_001), Ok(()));
    assert_eq!(gate.admit(1), Err(StallReason::L0Tables));
}

#[test]
fn wakers_are_called_once_when_a_write_may_pass() {
    let (gate, _) = gate();
    let woken = Arc::new(AtomicU64::new(0));
    let wake = || {
        let woken = Arc::clone(&woken);
        Box::new(move || {
            woken.fetch_add(1, Ordering::Relaxed);
        })
    };
    gate.on_writable(wake());
    assert_eq!(woken.load(Ordering::Relaxed), 1, "an open gate wakes at once");
    gate.set(CLOSED);
    gate.on_writable(wake());
    gate.on_writable(wake());
    gate.earn(StallReason::L0Tables, 1 << 20);
    assert_eq!(woken.load(Ordering::Relaxed), 1, "earning does not open a closed gate");
    gate.set(Position::Open);
    gate.set(CLOSED);
    assert_eq!(woken.load(Ordering::Relaxed), 3);
}

#[test]
fn a_stall_is_timed_from_the_first_writer_held_to_the_release() {
    let (gate, clock) = gate();
    gate.set(CLOSED);
    clock.advance(Duration::from_millis(5));
    assert!(gate.admit(1).is_err());
    clock.advance(Duration::from_millis(7));
    assert!(gate.admit(1).is_err());
    let running = gate
        .stats()
        .into_iter()
        .find(|row| row.reason == StallReason::Memtables)
        .expect("one row per reason");
    assert_eq!((running.count, running.us_total, running.active), (1, 7_000, true));
    gate.set(Position::Open);
    clock.advance(Duration::from_millis(9));
    let over = gate
        .stats()
        .into_iter()
        .find(|row| row.reason == StallReason::Memtables)
        .expect("one row per reason");
    assert_eq!((over.count, over.us_total, over.active), (1, 7_000, false));
}

/// Edges and reasons of all events.
fn reported(events: &Events) -> Vec<(Edge, Field)> {
    let all = events.after(0, usize::MAX).into_iter();
    all.map(|event| (event.edge, event.fields[0].1.clone())).collect()
}

#[test]
fn a_slowed_phase_is_one_event_although_writers_pass_in_between() {
    let (gate, clock, events) = gate_and_events();
    let reason = text(StallReason::L0Tables.name());
    gate.set(SLOWED);
    assert_eq!(reported(&events), [], "no writer is held yet");
    for _ in 0..10 {
        while gate.admit(600).is_ok() {}
        clock.advance(Duration::from_millis(1));
        gate.earn(StallReason::L0Tables, 1_000_000);
    }
    assert_eq!(reported(&events), [(Edge::Begin, reason.clone())]);
    gate.set(Position::Closed { reason: StallReason::L0Tables });
    assert_eq!(reported(&events).len(), 1, "the stall continues with another position");
    gate.set(Position::Open);
    assert_eq!(reported(&events), [(Edge::Begin, reason.clone()), (Edge::End, reason)]);
    let end = &events.after(1, usize::MAX)[0];
    assert_eq!((end.start_ns, end.end_ns), (0, Some(10_000_000)));
}

#[test]
fn another_reason_is_another_event() {
    let (gate, _, events) = gate_and_events();
    gate.set(CLOSED);
    gate.admit(1).expect_err("closed");
    gate.set(Position::Closed { reason: StallReason::SyncOverdue });
    gate.admit(1).expect_err("closed");
    let (memtables, sync) = (text("memtables"), text("sync_overdue"));
    assert_eq!(
        reported(&events),
        [(Edge::Begin, memtables.clone()), (Edge::End, memtables), (Edge::Begin, sync)]
    );
}
