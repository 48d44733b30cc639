use super::*;
use kvant_base::Event;
use kvant_base::events::Edge;

const MS: u64 = 1_000_000;

fn recorded(events: &Events) -> Vec<Arc<Event>> {
    events.after(0, usize::MAX)
}

#[test]
fn an_overload_event_spans_the_first_refusal_to_the_last() {
    let events = Events::new(16);
    let refusals = Refusals::new(Arc::clone(&events));
    refusals.end_if_calm(5 * MS);
    refusals.add(Class::Read, Refusal::Overloaded, 1, 10 * MS);
    refusals.add(Class::Write, Refusal::QueueFull, 5, 900 * MS);
    assert_eq!(recorded(&events).len(), 1);
    assert_eq!((recorded(&events)[0].edge, recorded(&events)[0].start_ns), (Edge::Begin, 10 * MS));
    refusals.end_if_calm(1_899 * MS);
    assert!(refusals.is_overloaded());
    refusals.end_if_calm(1_900 * MS);
    refusals.end_if_calm(3_000 * MS);
    assert!(!refusals.is_overloaded());
    let told = recorded(&events);
    assert_eq!(told.len(), 2);
    assert_eq!((told[1].edge, told[1].span), (Edge::End, told[0].span));
    assert_eq!((told[1].start_ns, told[1].end_ns), (10 * MS, Some(900 * MS)));
    assert_eq!(told[1].fields[0], ("reason", Field::Text("overloaded".into())));
    assert_eq!(told[1].fields[1], ("refused_count", Field::Number(6)));
    assert_eq!(refusals.count(Class::Write, Refusal::QueueFull), 5);
}

#[test]
fn a_refusal_after_a_calm_time_ends_one_overload_and_begins_another() {
    let events = Events::new(16);
    let refusals = Refusals::new(Arc::clone(&events));
    refusals.add(Class::Read, Refusal::Overloaded, 1, 10 * MS);
    refusals.add(Class::Read, Refusal::WaitedTooLong, 2, 5_000 * MS);
    let told = recorded(&events);
    let edges: Vec<Edge> = told.iter().map(|event| event.edge).collect();
    assert_eq!(edges, [Edge::Begin, Edge::End, Edge::Begin]);
    assert_eq!(told[1].end_ns, Some(10 * MS));
    assert_eq!(told[1].fields[1], ("refused_count", Field::Number(1)));
    assert_eq!(told[2].start_ns, 5_000 * MS);
}

#[test]
fn a_server_that_stops_is_not_overloaded() {
    let events = Events::new(16);
    let refusals = Refusals::new(Arc::clone(&events));
    refusals.add(Class::Range, Refusal::Stopping, 3, 10 * MS);
    assert_eq!(recorded(&events).len(), 0);
    assert_eq!(refusals.count(Class::Range, Refusal::Stopping), 3);
}
