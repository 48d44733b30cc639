use super::*;
use kvant_base::events::{EventKind, Field};
use kvant_env::testing::MockClock;
use std::future::poll_fn;
use std::task::Waker;
use tokio::runtime::{Builder, Runtime};

const WALL_MS: u64 = 1_800_000_000_000;

struct World {
    events: Arc<Events>,
    bell: Arc<Bell>,
    clock: Arc<MockClock>,
    /// Its clock advances only when every task waits for a timer.
    runtime: Runtime,
}

impl World {
    fn new(capacity_count: usize) -> World {
        World {
            events: Events::new(capacity_count),
            bell: Arc::default(),
            clock: Arc::new(MockClock::new(WALL_MS)),
            runtime: Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap(),
        }
    }

    fn stream(&self, after: Option<u64>) -> EventStream {
        let _context = self.runtime.enter();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        EventStream::new(Arc::clone(&self.events), Arc::clone(&self.bell), clock, after)
    }

    fn next(&self, stream: &mut EventStream) -> String {
        self.runtime.block_on(poll_fn(|cx| stream.poll_text(cx)))
    }

    fn is_quiet(&self, stream: &mut EventStream) -> bool {
        let _context = self.runtime.enter();
        stream.poll_text(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Adds `count` entries without fields.
    fn add(&self, count: usize) {
        for _ in 0..count {
            self.events.add_complete(EventKind::Fsync, 0, 1000, Vec::new());
        }
    }
}

/// The numbers of the entries in `text`, and its comments.
fn outline(text: &str) -> Vec<&str> {
    let shown = |line: &&str| line.starts_with("id: ") || line.starts_with(':');
    text.lines().filter(shown).collect()
}

#[test]
fn a_new_reader_gets_open_and_later_events() {
    let world = World::new(16);
    world.clock.advance(Duration::from_secs(2));
    world.add(1);
    let flush = world.events.begin(
        EventKind::Flush,
        1_500_000_000,
        vec![("table_count", Field::Number(1))],
    );
    world.add(1);
    let mut stream = world.stream(None);
    assert_eq!(
        world.next(&mut stream),
        "id: 2\nevent: flush\ndata: {\"edge\":\"begin\",\"span\":2,\"start\":\"2027-01-15T08:00:01.500Z\",\"start_ns\":1500000000,\
         \"fields\":{\"table_count\":1}}\n\nid: 3\n\n"
    );
    assert!(world.is_quiet(&mut stream));
    let fields = vec![("bytes", Field::Number(4096)), ("why", Field::Text("a\nb".into()))];
    world.events.end(EventKind::Flush, flush, 1_500_000_000, 1_501_234_567, fields);
    assert_eq!(
        world.next(&mut stream),
        "id: 4\nevent: flush\ndata: {\"edge\":\"end\",\"span\":2,\"start\":\"2027-01-15T08:00:01.500Z\",\"start_ns\":1500000000,\
         \"duration_us\":1234.567,\"fields\":{\"bytes\":4096,\"why\":\"a\\nb\"}}\n\n"
    );
    assert!(world.is_quiet(&mut stream));
}

#[test]
fn a_reader_that_reconnects_gets_the_events_it_missed() {
    let world = World::new(200);
    world.add(100);
    let mut stream = world.stream(Some(98));
    assert_eq!(outline(&world.next(&mut stream)), ["id: 99", "id: 100"]);
    assert!(world.is_quiet(&mut stream));
    // Long responses come in pieces.
    let mut stream = world.stream(Some(0));
    let [first, second] = [world.next(&mut stream), world.next(&mut stream)];
    assert_eq!(
        (outline(&first).len(), outline(&second).len()),
        (FRAME_EVENTS_MAX, 100 - FRAME_EVENTS_MAX)
    );
    let mut stream = world.stream(Some(100));
    assert!(world.is_quiet(&mut stream));
}

#[test]
fn missed_events_are_counted() {
    let world = World::new(3);
    world.add(10);
    let mut stream = world.stream(Some(4));
    assert_eq!(
        outline(&world.next(&mut stream)),
        [": missed events: 3", "id: 8", "id: 9", "id: 10"]
    );
    world.add(4);
    assert_eq!(
        outline(&world.next(&mut stream)),
        [": missed events: 1", "id: 12", "id: 13", "id: 14"]
    );
}

#[test]
fn a_number_from_before_a_restart_selects_all_events() {
    let world = World::new(16);
    world.add(2);
    let mut stream = world.stream(Some(500));
    assert!(outline(&world.next(&mut stream))[0].contains("anew"));
    assert_eq!(outline(&world.next(&mut stream)), ["id: 1", "id: 2"]);
}

#[test]
fn a_quiet_stream_sends_comments() {
    let world = World::new(16);
    let mut stream = world.stream(Some(0));
    for _ in 0..3 {
        assert_eq!(world.next(&mut stream), STILL_HERE);
    }
    world.add(1);
    assert_eq!(outline(&world.next(&mut stream)), ["id: 1"]);
    assert_eq!(world.next(&mut stream), STILL_HERE);
}

#[test]
fn streams_that_come_and_go_leave_one_listener() {
    let world = World::new(16);
    for _ in 0..100 {
        assert!(world.is_quiet(&mut world.stream(Some(0))));
    }
    // The bell is held here and by its listener in the ring.
    assert_eq!(Arc::strong_count(&world.bell), 2);
    let mut streams = [world.stream(Some(0)), world.stream(Some(0))];
    for stream in &mut streams {
        assert!(world.is_quiet(stream));
    }
    world.add(1);
    for stream in &mut streams {
        assert_eq!(outline(&world.next(stream)), ["id: 1"]);
    }
}

#[test]
fn every_reader_gets_every_event_once_from_any_thread() {
    const COUNT: u64 = 2_000;
    let world = World::new(2 * COUNT as usize);
    let mut streams = [world.stream(Some(0)), world.stream(Some(0))];
    let adders = [0, 1].map(|_| {
        let events = Arc::clone(&world.events);
        std::thread::spawn(move || {
            for _ in 0..COUNT / 2 {
                events.add_complete(EventKind::Fsync, 0, 1, Vec::new());
                std::thread::yield_now();
            }
        })
    });
    let expected: Vec<String> = (1..=COUNT).map(|number| format!("id: {number}")).collect();
    for stream in &mut streams {
        let mut heard: Vec<String> = Vec::new();
        while heard.len() < expected.len() {
            let text = world.next(stream);
            heard.extend(
                outline(&text)
                    .into_iter()
                    .filter(|line| *line != STILL_HERE.trim_end())
                    .map(Into::into),
            );
        }
        assert_eq!(heard, expected);
    }
    adders.into_iter().for_each(|adder| adder.join().unwrap());
}
