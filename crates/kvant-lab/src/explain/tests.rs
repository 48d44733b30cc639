//! Servers of known behaviour, and what is said of them.

mod client;
mod cpu;
mod failures;
mod reads;
pub(super) mod simulation;
mod slow_time;

use super::evidence::{LockWait, Phase};
use super::model::{Cause, Row, Share};
use super::{Evidence, Explanation, explain, text};
use kvant_env::rng::Rng;
use simulation::{MS, SECOND, Simulation, event, exponential};

/// Pauses of 200 ms, one each 5 s, at a constant distance.
fn regular() -> Vec<(u64, u64)> {
    (1..12).map(|at| (at * 5 * SECOND, 200 * MS)).collect()
}

fn marked(kind: &str, spans: &[(u64, u64)]) -> Vec<crate::record::EventFacts> {
    spans.iter().map(|(start, length)| event(kind, *start, *length)).collect()
}

/// Random spans of a length that do not overlap each other, one within each stretch of `period`.
fn random_spans(count: u64, period: u64, length: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut rng = Rng::new(seed);
    (0..count).map(|at| (at * period + rng.below(period - length), length)).collect()
}

fn row(explanation: &Explanation, operation: &str, percent: f64) -> Row {
    let found =
        explanation.rows.iter().find(|row| row.operation == operation && row.percent == percent);
    found.cloned().unwrap_or_else(|| panic!("{}", text(explanation)))
}

fn part(row: &Row, cause: &Cause) -> f64 {
    row.shares.iter().find(|share| share.cause == *cause).map_or(0.0, |share| share.part)
}

fn event_named(name: &str) -> Cause {
    Cause::Event(name.to_owned())
}

#[track_caller]
fn assert_first(explanation: &Explanation, operation: &str, percent: f64, cause: &Cause) {
    let row = row(explanation, operation, percent);
    let first = row.shares.first().map(|share| &share.cause);
    assert_eq!(first, Some(cause), "{}", text(explanation));
}

#[test]
fn a_marked_stall_gets_the_excess() {
    let random = random_spans(12, 5 * SECOND, 200 * MS, 7);
    for (seed, kind, pauses) in
        [(1, "housekeeping", regular()), (2, "housekeeping", random), (3, "release", regular())]
    {
        let events = marked(kind, &pauses);
        let simulation = Simulation { seed, pauses, events, ..Simulation::default() };
        let explanation = explain(&simulation.evidence());
        for percent in [99.0, 99.9] {
            let row = row(&explanation, "get", percent);
            let cause = if kind == "release" { Cause::Allocator } else { event_named(kind) };
            let share = part(&row, &cause);
            assert!(share >= 0.95, "seed {seed}: {share}\n{}", text(&explanation));
        }
    }
}

#[test]
fn an_unmarked_stall_is_unexplained() {
    let simulation = Simulation { pauses: regular(), ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    let row = row(&explanation, "get", 99.0);
    assert!(row.excess_ns > 50 * MS, "{}", text(&explanation));
    assert_eq!(part(&row, &Cause::Unexplained), 1.0, "{}", text(&explanation));
}

#[test]
fn an_event_at_other_times_explains_nothing() {
    // A hundred decoys of the same rate and length. Each may be named with a probability of 1 %.
    let mut named = 0;
    for seed in 0..100 {
        let decoys = random_spans(12, 5 * SECOND, 200 * MS, 1_000 + seed);
        let simulation = Simulation {
            seed,
            pauses: random_spans(12, 5 * SECOND, 200 * MS, seed),
            events: marked("decoy", &decoys),
            ..Simulation::default()
        };
        let explanation = explain(&simulation.evidence());
        named += usize::from(part(&row(&explanation, "get", 99.0), &event_named("decoy")) > 0.0);
    }
    assert!(named <= 5, "{named} of 100");
}

#[test]
fn an_event_that_is_always_there_explains_nothing() {
    let events = vec![event("always", 0, 60 * SECOND)];
    let simulation = Simulation { pauses: regular(), events, ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    assert_eq!(part(&row(&explanation, "get", 99.0), &event_named("always")), 0.0);
    assert!(explanation.warnings.iter().any(|warning| warning.starts_with("always was there")));
}

#[test]
fn a_companion_of_the_cause_gets_nothing_where_it_can_be_told_apart() {
    let pauses = random_spans(12, 5 * SECOND, 200 * MS, 3);
    let mut events = marked("cause", &pauses);
    // Half of its occurrences are with the cause.
    let alone = random_spans(12, 5 * SECOND, 200 * MS, 4);
    events.extend(marked("companion", &pauses[..6]));
    events.extend(marked("companion", &alone[6..]));
    let simulation = Simulation { pauses, events, ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    let row = row(&explanation, "get", 99.0);
    assert!(part(&row, &event_named("cause")) >= 0.95, "{}", text(&explanation));
    assert_eq!(part(&row, &event_named("companion")), 0.0, "{}", text(&explanation));
}

#[test]
fn twins_share_equally_and_the_row_says_so() {
    let pauses = random_spans(12, 5 * SECOND, 200 * MS, 3);
    let mut events = marked("one", &pauses);
    events.extend(marked("other", &pauses));
    let simulation = Simulation { pauses, events, ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    let row = row(&explanation, "get", 99.0);
    assert!(part(&row, &event_named("one")) > 0.45);
    assert_eq!(part(&row, &event_named("one")), part(&row, &event_named("other")));
    assert!(!row.shares[0].or.is_empty());
    // They are told as one.
    let told = &explanation.told_shares(&row)[0];
    assert!(told.part > 0.9 && told.low <= told.part && told.part <= told.high, "{told:?}");
    assert_eq!(explanation.verdict[0].matches("cannot be told apart").count(), 1);
}

#[test]
fn two_causes_get_their_parts() {
    let long = random_spans(6, 10 * SECOND, 300 * MS, 5);
    let short: Vec<(u64, u64)> = long.iter().map(|(at, _)| (at + 3 * SECOND, 250 * MS)).collect();
    let mut events = marked("long", &long);
    events.extend(marked("short", &short));
    let pauses = [long, short].concat();
    let simulation = Simulation { pauses, events, length_ns: 70 * SECOND, ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    let row = row(&explanation, "get", 99.0);
    let (long, short) = (part(&row, &event_named("long")), part(&row, &event_named("short")));
    // p99 is 217 ms: of each long pause 83 ms of arrivals are slower, of each short one 33 ms.
    let counts = (83.0 * 258.0) / (83.0 * 258.0 + 33.0 * 233.0);
    assert!((long - counts).abs() < 0.08, "{long} {counts}\n{}", text(&explanation));
    assert!(long + short > 0.95, "{long} {short}");
}

#[test]
fn shares_add_up_and_intervals_contain_them() {
    let simulation = Simulation {
        pauses: regular(),
        events: marked("housekeeping", &regular()[..6]),
        tells_phases: true,
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    let mut checked = 0;
    for row in explanation.rows.iter().filter(|row| row.excess_ns > 0) {
        let sum: f64 = row.shares.iter().map(|share| share.part).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        for Share { part, low, high, .. } in &row.shares {
            assert!(low <= part && part <= high && *low >= 0.0 && *high <= 1.0 + 1e-9);
        }
        checked += 1;
    }
    assert!(checked > 0);
    // Half of the pauses are marked; the other half is queueing, as the phases say.
    let row = row(&explanation, "get", 99.0);
    let (marked, queueing) =
        (part(&row, &event_named("housekeeping")), part(&row, &Cause::Queueing));
    assert!((0.4..0.65).contains(&marked), "{}", text(&explanation));
    assert!((0.35..0.6).contains(&queueing), "{}", text(&explanation));
}

#[test]
fn a_calm_server_has_nothing_to_explain() {
    let simulation = Simulation { tells_phases: false, ..Simulation::default() };
    let explanation = explain(&simulation.evidence());
    for row in &explanation.rows {
        assert!((row.excess_ns as f64) < 0.5 * row.value_ns as f64, "{}", text(&explanation));
    }
}

/// Marks windows of the machine during the spans.
fn in_windows(
    evidence: &mut Evidence,
    spans: &[(u64, u64)],
    mark: fn(&mut super::evidence::MachineWindow),
) {
    for window in &mut evidence.windows {
        let end_ns = window.end_ns();
        if spans.iter().any(|(from, length)| *from < end_ns && from + length > window.start_ns) {
            mark(&mut window.machine);
        }
    }
}

#[test]
fn disturbances_of_the_machine_are_named() {
    type Mark = fn(&mut super::evidence::MachineWindow);
    let cases: [(Cause, Mark); 6] = [
        (Cause::Stolen, |machine| machine.stolen_ns = Some(60 * MS)),
        (Cause::Neighbours, |machine| machine.all_cpu_ns = Some(190 * MS)),
        (Cause::Scheduler, |machine| machine.run_queue_wait_ns = Some(80 * MS)),
        (Cause::Network, |machine| machine.has_resent = true),
        (Cause::Generator, |machine| machine.is_generator_paused = true),
        (Cause::SlowMemory, |machine| machine.is_memory_slow = true),
    ];
    for (cause, mark) in cases {
        let pauses = random_spans(12, 5 * SECOND, 200 * MS, 9);
        let simulation = Simulation { pauses: pauses.clone(), ..Simulation::default() };
        let mut evidence = simulation.evidence();
        for window in &mut evidence.windows {
            window.machine.stolen_ns = Some(0);
            window.machine.server_cpu_ns = Some(20 * MS);
            window.machine.all_cpu_ns = Some(25 * MS);
            window.machine.run_queue_wait_ns = Some(MS);
        }
        in_windows(&mut evidence, &pauses, mark);
        let explanation = explain(&evidence);
        let row = row(&explanation, "get", 99.0);
        assert!(part(&row, &cause) >= 0.95, "{cause:?}\n{}", text(&explanation));
    }
}

#[test]
fn slow_clients_are_named() {
    let reader = Simulation {
        tells_phases: true,
        special: |request, rng| {
            if rng.below(50) == 0 {
                request.sent_bytes = 1 << 20;
                request.phases_ns[Phase::Answer as usize] = 30 * MS + exponential(9 * MS, rng);
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&reader.evidence());
    let first = row(&explanation, "get", 99.0);
    assert!(part(&first, &Cause::ClientReader) >= 0.95, "{}", text(&explanation));
    let sender = Simulation {
        special: |request, rng| {
            request.operation = "put".to_owned();
            if rng.below(50) == 0 {
                request.phases_ns[Phase::Body as usize] = 30 * MS + exponential(9 * MS, rng);
            }
        },
        ..reader
    };
    let explanation = explain(&sender.evidence());
    let first = row(&explanation, "put", 99.0);
    assert!(part(&first, &Cause::ClientBody) >= 0.95, "{}", text(&explanation));
}

#[test]
fn a_disk_with_slow_fsyncs_is_named_although_it_is_always_slow() {
    // Writes wait for the fsync in progress and for the next one.
    let simulation = Simulation {
        tells_phases: true,
        special: |request, _| {
            request.operation = "put".to_owned();
            let period = 50 * MS;
            let end_ns = (request.start_ns / period + 2) * period;
            request.phases_ns[Phase::Queue as usize] = 0;
            request.phases_ns[Phase::Storage as usize] = end_ns - request.start_ns;
        },
        events: (0..1_200)
            .map(|at| {
                let mut fsync = event("fsync", at * 50 * MS, 50 * MS);
                fsync.fields.insert("file".to_owned(), "wal".into());
                fsync
            })
            .collect(),
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    for percent in [50.0, 99.0] {
        assert_first(&explanation, "put", percent, &Cause::Fsync);
        let row = row(&explanation, "put", percent);
        assert!(row.level_ns < row.value_ns / 5, "{}", text(&explanation));
    }
}

#[test]
fn stalls_are_named_by_their_reason() {
    let pauses = regular();
    let mut events = marked("stall", &pauses);
    for event in &mut events {
        event.fields.insert("reason".to_owned(), "l0_tables".into());
    }
    events.extend(marked("compaction", &pauses));
    let simulation = Simulation {
        pauses,
        events,
        tells_phases: true,
        special: |request, _| {
            request.operation = "put".to_owned();
            if request.phases_ns[Phase::Queue as usize] > 5 * MS {
                request.stall = Some("l0_tables".to_owned());
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    assert_first(&explanation, "put", 99.0, &Cause::Stall("l0_tables".to_owned()));
    let row = row(&explanation, "put", 99.0);
    assert!(part(&row, &Cause::Stall("l0_tables".to_owned())) > 0.9, "{}", text(&explanation));
}

/// One event loop at nine tenths of its capacity: all of the waiting is for the loop.
fn busy_event_loop() -> Simulation {
    Simulation {
        tells_phases: true,
        rate_per_s: 4_500,
        special: |request, _| {
            request.phases_ns.swap(Phase::Selector as usize, Phase::Queue as usize);
        },
        ..Simulation::default()
    }
}

#[test]
fn a_small_cache_and_a_busy_event_loop_are_named() {
    let cache = Simulation {
        tells_phases: true,
        special: |request, rng| {
            if rng.below(20) == 0 {
                let read_ns = 5 * MS + exponential(MS, rng);
                (request.block_reads, request.block_read_ns) = (1, read_ns);
                request.phases_ns[Phase::Storage as usize] += read_ns;
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&cache.evidence());
    assert_first(&explanation, "get", 99.0, &Cause::BlockReads);
    let explanation = explain(&busy_event_loop().evidence());
    for percent in [50.0, 99.0] {
        assert_first(&explanation, "get", percent, &Cause::Queueing);
    }
}

#[test]
fn a_hot_lock_is_named() {
    let simulation = Simulation {
        special: |request, rng| {
            request.phases_ns[Phase::Storage as usize] += exponential(2 * MS, rng);
        },
        ..Simulation::default()
    };
    let mut evidence = simulation.evidence();
    add_lock_waits(&mut evidence, |latency_ns| latency_ns.saturating_sub(200_000));
    let explanation = explain(&evidence);
    for percent in [50.0, 99.0] {
        assert_first(&explanation, "get", percent, &registry());
    }
}

#[test]
fn a_lock_that_all_requests_wait_for_shortly_does_not_explain_the_slow_ones() {
    let simulation = Simulation {
        special: |request, rng| {
            let is_slow = rng.below(50) == 0;
            request.phases_ns[Phase::Storage as usize] += if is_slow { 5 * MS } else { 0 };
        },
        ..Simulation::default()
    };
    let mut evidence = simulation.evidence();
    add_lock_waits(&mut evidence, |_| 150_000);
    let explanation = explain(&evidence);
    assert_first(&explanation, "get", 99.0, &Cause::Unexplained);
    assert!(row(&explanation, "get", 99.0).shares.iter().all(|share| share.cause != registry()));
}

fn registry() -> Cause {
    Cause::Lock("registry".to_owned())
}

/// Adds a wait to each request, of a length that follows from its latency.
fn add_lock_waits(evidence: &mut Evidence, length_ns: fn(u64) -> u64) {
    for (window, of) in evidence.windows.iter().enumerate() {
        for (latency_ns, count) in of.operations.get("get").into_iter().flat_map(|of| &of.values) {
            let length_ns = length_ns(*latency_ns);
            evidence.lock_waits.push(LockWait {
                name: "registry".to_owned(),
                window,
                operation: "get".to_owned(),
                length_ns,
                waited_ns: length_ns * count,
            });
        }
    }
}

#[test]
fn slow_requests_are_told_with_what_happened_meanwhile() {
    let simulation = Simulation {
        pauses: regular(),
        events: marked("housekeeping", &regular()),
        tells_phases: true,
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    assert_eq!(explanation.moments.len(), 10);
    let slowest = &explanation.moments[0];
    assert!(slowest.total_ns > 190 * MS);
    assert!(slowest.sentence.contains("coincides with housekeeping (for "), "{}", slowest.sentence);
    assert!(slowest.sentence.contains("waiting for its turn"), "{}", slowest.sentence);
    let ordered = explanation.moments.windows(2).all(|pair| pair[0].total_ns >= pair[1].total_ns);
    assert!(ordered);
    // Not all of one moment.
    let first = &explanation.moments[0];
    let near = |at: u64| at.abs_diff(first.start_ns) < SECOND / 2;
    assert!(explanation.moments.iter().filter(|one| near(one.start_ns)).count() <= 3);
}

#[test]
fn nothing_is_said_to_be_a_cause() {
    let simulation = Simulation {
        pauses: regular(),
        events: marked("housekeeping", &regular()),
        ..Simulation::default()
    };
    let text = text(&explain(&simulation.evidence())).to_lowercase();
    assert!(text.contains("coincides with housekeeping"));
    assert!(!text.contains("cause"), "{text}");
}

#[test]
fn empty_evidence_is_explained() {
    let explanation = explain(&Evidence::default());
    assert!(explanation.rows.is_empty() && explanation.moments.is_empty());
    assert!(explanation.verdict[0].contains("too few requests"));
}
