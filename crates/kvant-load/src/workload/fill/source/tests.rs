use super::*;
use crate::op::OpNames;
use crate::target::Target;
use crate::workload::{Kind, Mix, WorkloadConfig};

const SECOND_NS: u64 = 1_000_000_000;

struct Fixture {
    source: FillSource,
    progress: Arc<FillProgress>,
}

fn fixture(key_count: u64, pipeline: usize, tries_max: u32) -> Fixture {
    fixture_of_thread(key_count, pipeline, tries_max, 0, 1)
}

fn fixture_of_thread(
    keys: u64,
    pipeline: usize,
    tries_max: u32,
    thread: usize,
    threads: usize,
) -> Fixture {
    let workload = WorkloadConfig { key_count: keys, ..WorkloadConfig::new(Mix::only(Kind::Put)) };
    let config = FillConfig { pipeline, tries_max, ..FillConfig::new(workload) };
    let target = Target::parse("http://localhost/").unwrap();
    let ops = OpNames::default();
    let shared = Arc::new(Shared::new(&config.workload, &[target], &[], &ops).unwrap());
    let progress = Arc::new(FillProgress::default());
    let op = ops.intern("put");
    let source = FillSource::new(&config, shared, Arc::clone(&progress), op, thread, threads);
    Fixture { source, progress }
}

impl Fixture {
    /// The next batch: its cookie and requests.
    fn send(&mut self, now_ns: u64) -> Option<(u64, Vec<String>)> {
        if self.source.is_stopped() || self.source.paused_until(now_ns).is_some() {
            return None;
        }
        let batch = self.source.next(0).unwrap();
        let text = String::from_utf8(batch.bytes.to_vec()).unwrap();
        let requests: Vec<String> = text.split("PUT ").skip(1).map(str::to_owned).collect();
        assert!(!requests.is_empty(), "a batch is never empty");
        assert_eq!(requests.len(), batch.requests.len());
        Some((self.source.cookie(), requests))
    }

    fn settle(&mut self, cookie: u64, index: usize, status: u16, now_ns: u64) {
        self.source.settled(cookie, index, Fate::Answered { status, retry_after_s: None }, now_ns);
    }
}

#[test]
fn each_key_is_sent_once_over_all_threads() {
    let mut all = Vec::new();
    for thread in 0..3 {
        let mut fixture = fixture_of_thread(100, 7, 1, thread, 3);
        while let Some((cookie, requests)) = fixture.send(0) {
            for index in 0..requests.len() {
                fixture.settle(cookie, index, 201, 0);
            }
            all.extend(requests.iter().map(|request| request[14..26].to_owned()));
        }
        assert!(fixture.source.is_stopped());
        assert_eq!(fixture.progress.stored_keys() as usize, if thread == 0 { 34 } else { 33 });
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 100);
}

#[test]
fn a_retry_repeats_the_request_byte_for_byte() {
    let mut fixture = fixture(3, 8, 10);
    let (cookie, first) = fixture.send(0).unwrap();
    assert_eq!(fixture.source.paused_until(0), Some(u64::MAX), "all keys are in flight");
    fixture.settle(cookie, 0, 201, 0);
    fixture.settle(cookie, 1, 503, 0);
    fixture.source.settled(cookie, 2, Fate::Lost, 0);
    assert!(!fixture.source.is_stopped());
    assert!(fixture.send(0).is_none(), "not immediately");
    let (again, second) = fixture.send(SECOND_NS).unwrap();
    assert_eq!(second, first[1..], "with the same values");
    assert_eq!(fixture.progress.resent(), 2);
    fixture.settle(again, 0, 201, SECOND_NS);
    assert!(!fixture.source.is_stopped(), "one is in flight");
    fixture.settle(again, 1, 201, SECOND_NS);
    assert!(fixture.source.is_stopped());
    assert_eq!(fixture.progress.stored_keys(), 3);
    assert_eq!(fixture.progress.stored_bytes(), 3 * (12 + 12));
    assert_eq!(fixture.progress.failure.get(), None);
}

#[test]
fn retry_after_delays_the_retry() {
    let mut fixture = fixture(1, 1, 10);
    let (cookie, _) = fixture.send(0).unwrap();
    let fate = Fate::Answered { status: 503, retry_after_s: Some(2) };
    fixture.source.settled(cookie, 0, fate, 5);
    assert_eq!(fixture.source.paused_until(SECOND_NS), Some(5 + 2 * SECOND_NS));
    assert_eq!(fixture.source.paused_until(5 + 2 * SECOND_NS), None);
}

#[test]
fn other_keys_are_sent_while_one_waits() {
    let mut fixture = fixture(10, 1, 10);
    let (cookie, _) = fixture.send(0).unwrap();
    let fate = Fate::Answered { status: 503, retry_after_s: Some(5) };
    fixture.source.settled(cookie, 0, fate, 0);
    assert!(fixture.send(0).is_none(), "a refusal slows down");
    let (_, next) = fixture.send(SECOND_NS / 100).unwrap();
    assert!(next[0].contains("id=000000000001"), "{next:?}");
}

#[test]
fn consecutive_refusals_back_off_and_a_success_resets() {
    let mut fixture = fixture(1_000, 1, 1_000);
    let mut now_ns = 0;
    let mut pauses_ms = Vec::new();
    for _ in 0..10 {
        let (cookie, _) = fixture.send(now_ns).unwrap();
        fixture.settle(cookie, 0, 503, now_ns);
        let until_ns = fixture.source.paused_until(now_ns).unwrap();
        pauses_ms.push((until_ns - now_ns) / 1_000_000);
        now_ns = until_ns;
    }
    assert_eq!(pauses_ms, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]);
    let (cookie, _) = fixture.send(now_ns).unwrap();
    fixture.settle(cookie, 0, 201, now_ns);
    let (cookie, _) = fixture.send(now_ns).unwrap();
    fixture.settle(cookie, 0, 503, now_ns);
    assert_eq!(fixture.source.paused_until(now_ns), Some(now_ns + 1_000_000));
}

#[test]
fn tries_are_bounded() {
    let mut fixture = fixture(1, 1, 3);
    for round in 0..3 {
        let (cookie, _) = fixture.send(round * 10 * SECOND_NS).expect("a try");
        fixture.settle(cookie, 0, 500, round * 10 * SECOND_NS);
    }
    assert!(fixture.source.is_stopped());
    let failure = fixture.progress.failure.get().unwrap();
    assert!(failure.contains("3 times") && failure.contains("500"), "{failure}");
}

#[test]
fn a_permanent_error_ends_the_fill() {
    let mut fixture = fixture(100, 4, 100);
    let (cookie, _) = fixture.send(0).unwrap();
    fixture.settle(cookie, 0, 404, 0);
    assert!(fixture.source.is_stopped());
    assert!(fixture.progress.failure.get().unwrap().contains("404"));
}

#[test]
fn waiting_keys_are_bounded() {
    let mut fixture = fixture(10 * WAITING_MAX as u64, 1_024, u32::MAX);
    let mut now_ns = 0;
    while let Some((cookie, requests)) = fixture.send(now_ns) {
        let fate = Fate::Answered { status: 429, retry_after_s: Some(30) };
        (0..requests.len()).for_each(|index| fixture.source.settled(cookie, index, fate, now_ns));
        now_ns = fixture.source.pause_until_ns;
    }
    let waiting = fixture.source.waiting.len();
    assert!((WAITING_MAX..WAITING_MAX + 1_024).contains(&waiting), "{waiting}");
    assert!(now_ns < 30 * SECOND_NS, "nothing was due");
}
