use super::*;
use crate::history::testing::{add_second, add_windows, trace};
use crate::http::Operation;
use kvant_base::MemoryBudget;
use kvant_base::events::EventKind;
use kvant_base::tag::{Activity, Stage};
use kvant_env::rng::Rng;
use serde_json::Value;

const SECOND_NS: u64 = 1_000_000_000;

struct Sources {
    history: Arc<History>,
    timings: Vec<Arc<Timings>>,
    events: Arc<Events>,
}

/// Seconds 1 to 20, with two slow requests each.
fn sources() -> Sources {
    let mut rng = Rng::new(7);
    let history = History::new(600 * SECOND_NS, &MemoryBudget::new(1 << 30));
    for second in 1..=20 {
        let traces = [(); 2].map(|()| trace((second + 1) * SECOND_NS - 1, &mut rng));
        add_second(&history, second, &mut rng, &traces);
    }
    Sources { history, timings: vec![Arc::default()], events: Events::new(1000) }
}

impl Sources {
    fn document(&self, span_ns: Range<u64>) -> Document {
        let head = Head {
            format: "kvant-history",
            version: 1,
            program_version: "0",
            engine: None,
            pid: 1,
            cpus: 2,
            selectors: 1,
            monotonic_ns: span_ns.end,
            wall_ms: 5,
            window_ns: WINDOW_NS,
            bucket_highest_ns: pair_highest_ns().collect(),
        };
        let (timings, events) = (self.timings.clone(), Arc::clone(&self.events));
        Document::with(head, Arc::clone(&self.history), timings, events, span_ns)
    }

    fn json(&self, span_ns: Range<u64>) -> Value {
        let mut document = self.document(span_ns);
        let mut bytes = Vec::new();
        while !document.has_ended() {
            bytes.extend(document.next_piece());
        }
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn starts(rows: &Value) -> Vec<u64> {
    rows.as_array().unwrap().iter().map(|row| row["start_ns"].as_u64().unwrap()).collect()
}

#[test]
fn windows_are_those_that_overlap_the_span() {
    let sources = sources();
    let all: Vec<u64> = (0..200).map(|index| SECOND_NS + index * WINDOW_NS).collect();
    for (from_ns, to_ns, first, last) in [
        (0, u64::MAX, 0, 200),
        (0, 3 * SECOND_NS, 0, 20),
        (5 * SECOND_NS, 5 * SECOND_NS + 1, 40, 41),
        (5 * SECOND_NS - 1, 5 * SECOND_NS, 39, 40),
        (15 * SECOND_NS + 50_000_000, u64::MAX, 140, 200),
        (22 * SECOND_NS, u64::MAX, 200, 200),
        (0, 1, 0, 0),
    ] {
        let document = sources.json(from_ns..to_ns);
        assert_eq!(starts(&document["windows"]), all[first..last], "{from_ns}..{to_ns}");
    }
}

#[test]
fn windows_of_the_second_in_progress_come_once_though_there_are_more_of_them_later() {
    let history = History::new(600 * SECOND_NS, &MemoryBudget::new(1 << 30));
    let sources = Sources { history, timings: Vec::new(), events: Events::new(1) };
    let mut rng = Rng::new(7);
    for second in 1..=3 {
        add_second(&sources.history, second, &mut rng, &[]);
    }
    add_windows(&sources.history, 4, 0..8, &mut rng);
    let mut document = sources.document(0..u64::MAX);
    let mut bytes = document.next_piece();
    // The seconds that were fetched at once filled the piece.
    assert!(document.part == Part::Windows && document.done_ns == 4 * SECOND_NS + 8 * WINDOW_NS);
    add_windows(&sources.history, 4, 8..9, &mut rng);
    while !document.has_ended() {
        bytes.extend(document.next_piece());
    }
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let all: Vec<u64> = (0..39).map(|index| SECOND_NS + index * WINDOW_NS).collect();
    assert_eq!(starts(&document["windows"]), all);
}

#[test]
fn events_are_joined_and_overlap_what_is_kept() {
    let sources = sources();
    let events = &sources.events;
    // Before the first window.
    events.add_complete(EventKind::Fsync, 1, SECOND_NS - 1, Vec::new());
    let span = events.begin(EventKind::Flush, 5, Vec::new());
    events.end(EventKind::Flush, span, 5, 2 * SECOND_NS, Vec::new());
    events.begin(EventKind::Stall, 3 * SECOND_NS, Vec::new());
    let kinds = |document: &Value| -> Vec<(String, Value)> {
        let rows = document["events"].as_array().unwrap();
        let kind = |row: &Value| (row["kind"].as_str().unwrap().to_owned(), row["end_ns"].clone());
        rows.iter().map(kind).collect()
    };
    let all = [("flush".to_owned(), (2 * SECOND_NS).into()), ("stall".to_owned(), Value::Null)];
    assert_eq!(kinds(&sources.json(0..u64::MAX)), all);
    assert_eq!(kinds(&sources.json(4 * SECOND_NS..u64::MAX)), all[1..]);
    assert_eq!(kinds(&sources.json(0..3 * SECOND_NS - 1)), all[..1]);
}

#[test]
fn slow_requests_of_the_second_in_progress_are_there_too() {
    let sources = sources();
    let mut current = trace(21 * SECOND_NS + 5, &mut Rng::new(1));
    current.operation = Operation::Put;
    sources.timings[0].record(&current);
    let slow = sources.json(0..u64::MAX)["slow"].take();
    assert_eq!(slow.as_array().unwrap().len(), 41);
    let last = &slow[40];
    assert_eq!(last["operation"], "put");
    assert_eq!(last["end_ns"], 21 * SECOND_NS + 5);
    let phases = last["phases_ns"].as_object().unwrap().values();
    let sum_ns: u64 = phases.map(|phase| phase.as_u64().unwrap()).sum();
    assert_eq!(sum_ns, current.stamps.phase_ns(Phase::Total));
}

#[test]
fn pieces_are_bounded() {
    let sources = sources();
    for index in 0..1000 {
        sources.events.add_complete(EventKind::Fsync, index, 5 * SECOND_NS, Vec::new());
    }
    let mut document = sources.document(0..u64::MAX);
    let mut piece_count = 0;
    while !document.has_ended() {
        let piece = document.next_piece();
        assert!((1..4 * PIECE_BYTES).contains(&piece.len()), "{}", piece.len());
        piece_count += 1;
    }
    assert!(piece_count > 2, "{piece_count}");
}

#[test]
fn an_empty_history_is_a_whole_document() {
    let sources = Sources {
        history: History::new(SECOND_NS, &MemoryBudget::new(1 << 30)),
        timings: Vec::new(),
        events: Events::new(1),
    };
    let document = sources.json(0..u64::MAX);
    assert_eq!(document["bucket_highest_ns"].as_array().unwrap().len(), 512);
    for list in ["windows", "events", "slow", "profile"] {
        assert_eq!(document[list], Value::Array(Vec::new()), "{list}");
    }
}

#[test]
fn cpu_times_are_those_that_overlap_the_span() {
    let sources = sources();
    let tag = Tag { activity: Activity::Get, stage: Stage::Table };
    let second = |number: u64| CpuSecond {
        start_ns: number * SECOND_NS,
        length_ns: SECOND_NS,
        cpu_ns: vec![(tag.code(), number)],
    };
    sources.history.add_cpu((1..=150).map(second).collect());
    for (from_ns, to_ns, first, last) in [
        (0, u64::MAX, 1, 150),
        (3 * SECOND_NS, 5 * SECOND_NS, 3, 4),
        (3 * SECOND_NS - 1, 5 * SECOND_NS + 1, 2, 5),
    ] {
        let document = sources.json(from_ns..to_ns);
        let expected: Vec<u64> = (first..=last).map(|number| number * SECOND_NS).collect();
        assert_eq!(starts(&document["profile"]), expected, "{from_ns}..{to_ns}");
    }
    let row = &sources.json(7 * SECOND_NS..7 * SECOND_NS + 1)["profile"][0];
    let cpu = serde_json::json!([{"activity": "get", "stage": "table", "cpu_ns": 7}]);
    assert_eq!(row["cpu"], cpu);
}
