use super::{Ending, Gate, IN_FLIGHT_MAX, IN_FLIGHT_MIN, SILENT_NS};

const MS: u64 = 1_000_000;

/// A node that does `rate` requests a second, one after the other, for clients that send the next
/// request as soon as they have an answer. Returns the requests that found no room.
fn serve(
    gate: &mut Gate,
    clients: u32,
    time_ns: u64,
    from_ns: &mut u64,
    for_ns: u64,
) -> (u64, u64) {
    let (mut refused, mut done) = (0, 0);
    let mut queue = std::collections::VecDeque::new();
    let end_ns = *from_ns + for_ns;
    while *from_ns < end_ns {
        while queue.len() < clients as usize {
            if !gate.has_room() {
                refused += 1;
                break;
            }
            gate.begin(true, *from_ns);
            queue.push_back(*from_ns);
        }
        *from_ns += time_ns;
        if let Some(begin_ns) = queue.pop_front() {
            gate.end(true, Ending::Done, begin_ns, *from_ns);
            done += 1;
        }
    }
    for begin_ns in queue {
        gate.end(true, Ending::Unanswered, begin_ns, *from_ns);
    }
    (refused, done)
}

#[test]
fn the_limit_follows_what_requests_cost() {
    let (mut gate, mut now_ns) = (Gate::new(true), 0);
    // A request takes 0.1 ms: 100 of them wait for 10 ms.
    let (refused, _) = serve(&mut gate, 100, MS / 10, &mut now_ns, 3_000 * MS);
    assert_eq!((refused, gate.limit()), (0, IN_FLIGHT_MAX));
    // 2,000 would wait for 200 ms: the limit is about what can be done within the target.
    let (refused, done) = serve(&mut gate, 2_000, MS / 10, &mut now_ns, 5_000 * MS);
    assert!(refused > 0);
    assert!((150..=450).contains(&gate.limit()), "{}", gate.limit());
    // All of the node's time was used.
    assert!(done >= 49_000, "{done}");
    // The node becomes ten times as slow, and then as quick as before.
    serve(&mut gate, 2_000, MS, &mut now_ns, 5_000 * MS);
    assert_eq!(gate.limit(), IN_FLIGHT_MIN);
    serve(&mut gate, 100, MS / 10, &mut now_ns, 6_000 * MS);
    assert_eq!(gate.limit(), IN_FLIGHT_MAX);
}

#[test]
fn the_limit_rises_again_while_only_ranges_are_read() {
    let (mut gate, mut now_ns) = (Gate::new(true), 0);
    serve(&mut gate, 100, MS / 10, &mut now_ns, 3_000 * MS);
    serve(&mut gate, 2_000, MS, &mut now_ns, 5_000 * MS);
    assert_eq!(gate.limit(), IN_FLIGHT_MIN);
    // What a request owes is no good sign.
    gate.begin(true, now_ns);
    for _ in 0..100 {
        gate.begin(false, now_ns);
        gate.end(false, Ending::Done, now_ns, now_ns + 50 * MS);
        now_ns += 50 * MS;
    }
    assert_eq!(gate.limit(), IN_FLIGHT_MIN);
    gate.end(true, Ending::Unanswered, now_ns, now_ns);
    for _ in 0..100 {
        gate.begin(false, now_ns);
        gate.end(false, Ending::Done, now_ns, now_ns + 50 * MS);
        now_ns += 50 * MS;
    }
    assert!(gate.limit() > 10 * IN_FLIGHT_MIN, "{}", gate.limit());
}

#[test]
fn a_far_away_node_is_not_overloaded() {
    let (mut gate, mut now_ns) = (Gate::new(true), 0);
    for _ in 0..1_000 {
        for _ in 0..500 {
            gate.begin(true, now_ns);
        }
        let begin_ns = now_ns;
        now_ns += 150 * MS;
        for _ in 0..500 {
            gate.end(true, Ending::Done, begin_ns, now_ns);
        }
    }
    assert_eq!(gate.limit(), IN_FLIGHT_MAX);
}

#[test]
fn a_fixed_limit_stays() {
    let (mut gate, mut now_ns) = (Gate::new(false), 0);
    serve(&mut gate, 2_000, MS, &mut now_ns, 5_000 * MS);
    assert_eq!(gate.limit(), IN_FLIGHT_MAX);
    for _ in 0..IN_FLIGHT_MAX {
        gate.begin(false, now_ns);
    }
    assert!(!gate.has_room());
    gate.end(false, Ending::Failed, now_ns, now_ns);
    assert!(gate.has_room());
}

#[test]
fn a_node_is_silent_while_it_owes_answers_and_gives_none() {
    let mut gate = Gate::new(true);
    assert!(!gate.is_silent(SILENT_NS * 2));
    gate.begin(true, MS);
    assert!(!gate.is_silent(MS + SILENT_NS));
    assert!(gate.is_silent(MS + SILENT_NS + 1));
    // Giving up is no answer.
    gate.begin(true, 2 * SILENT_NS);
    gate.end(true, Ending::Unanswered, MS, 2 * SILENT_NS);
    assert!(gate.is_silent(2 * SILENT_NS));
    gate.begin(true, 2 * SILENT_NS);
    gate.end(true, Ending::Failed, 2 * SILENT_NS, 2 * SILENT_NS);
    assert!(!gate.is_silent(2 * SILENT_NS));
    // What waits for all nodes is not measured.
    gate.end(true, Ending::Done, 2 * SILENT_NS, 2 * SILENT_NS);
    gate.begin(false, 2 * SILENT_NS);
    assert!(!gate.is_silent(9 * SILENT_NS));
    assert_eq!(gate.in_flight(), 1);
}
