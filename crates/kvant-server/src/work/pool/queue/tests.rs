use super::*;
use crate::http::query::RangeQuery;
use crate::http::record_format::RecordFormat;
use crate::key::Key;
use crate::store::Write;
use crate::work::RangeReader;
use crate::work::pool::GetRequest;
use crate::work::pool::tests::FakeStore;
use std::time::Duration;

mod overload;

const MS: u64 = 1_000_000;

fn config(overload: Overload, workers: usize, queue_capacity: usize) -> Arc<ServerConfig> {
    let queue_wait_max = Duration::from_secs(1);
    let default = ServerConfig::default();
    Arc::new(ServerConfig { workers, queue_capacity, overload, queue_wait_max, ..default })
}

/// A queue whose jobs are known by their slot.
struct Fixture {
    queue: Queue,
    now_ns: u64,
    next_slot: usize,
}

impl Fixture {
    fn new(overload: Overload, workers: usize, queue_capacity: usize) -> Fixture {
        Fixture {
            queue: Queue::new(config(overload, workers, queue_capacity)),
            now_ns: 10_000 * MS,
            next_slot: 0,
        }
    }

    /// Offers a job, with the next slot; returns the jobs that were removed.
    fn offer(&mut self, work: Work) -> Vec<(usize, Option<Refusal>)> {
        let ticket = Ticket { selector: 0, slot: self.next_slot };
        self.next_slot += 1;
        self.now_ns += 1;
        let mut removed = Vec::new();
        let job = Job::new(work, ticket, self.now_ns);
        self.queue.offer(job, self.now_ns, &mut removed);
        removed_slots(&removed)
    }

    /// The jobs that a worker takes, and those that are removed.
    fn take(&mut self) -> (Vec<usize>, Vec<(usize, Option<Refusal>)>) {
        let (mut taken, mut removed) = (Vec::new(), Vec::new());
        self.queue.take(self.now_ns, &mut taken, &mut removed);
        let slots = taken.iter().map(|job| job.ticket.slot).collect();
        (slots, removed_slots(&removed))
    }

    fn taken(&mut self) -> Vec<usize> {
        let (taken, removed) = self.take();
        assert!(removed.is_empty());
        taken
    }

    fn finish(&mut self, class: Class, request_count: usize, worked_ns: u64) {
        self.queue.finish(FinishedJobs { class, request_count, worked_ns });
    }
}

fn removed_slots(removed: &[RemovedJob]) -> Vec<(usize, Option<Refusal>)> {
    removed.iter().map(|removed| (removed.job.ticket.slot, removed.refusal)).collect()
}

fn get() -> Work {
    Work::Get(GetRequest { key: Key::from(&b""[..]), block_bytes_max: u32::MAX })
}

fn reader() -> Box<RangeReader> {
    let query = RangeQuery { start: Key::from(&b"1"[..]), end: None, limit: None };
    Box::new(RangeReader::new(query, RecordFormat::Plain))
}

fn range() -> Work {
    Work::Range(reader())
}

fn next_piece() -> Work {
    let mut reader = reader();
    reader.read_piece(&FakeStore::default()).expect("the store has it");
    Work::Range(reader)
}

fn writes(count: usize) -> Work {
    let write = Write { key: Key::from(&b""[..]), value: None, ttl_ms: None, expires_at_ms: None };
    Work::Write(vec![write; count])
}

#[test]
fn reads_go_before_writes_and_writes_before_ranges_and_the_oldest_first() {
    for policy in [Overload::Adaptive, Overload::Reject, Overload::DiscardOldest] {
        let mut fixture = Fixture::new(policy, 8, 100);
        for work in [range(), writes(2), get(), range(), get(), writes(1)] {
            assert!(fixture.offer(work).is_empty());
        }
        let order: Vec<usize> = (0..6).flat_map(|_| fixture.taken()).collect();
        assert_eq!(order, [2, 4, 1, 5, 0, 3]);
        assert!(fixture.taken().is_empty());
    }
}

#[test]
fn the_capacity_counts_requests() {
    let mut fixture = Fixture::new(Overload::Reject, 4, 10);
    assert!(fixture.offer(writes(6)).is_empty());
    assert_eq!(fixture.offer(writes(5)), [(1, Some(Refusal::QueueFull))]);
    assert!(fixture.offer(writes(4)).is_empty());
    assert_eq!(fixture.offer(get()), [(3, Some(Refusal::QueueFull))]);
    let stats = fixture.queue.stats();
    assert_eq!((stats.queued, stats.queued_max), ([0, 10, 0], 10));
    assert_eq!(fixture.taken(), [0]);
    assert!(fixture.offer(get()).is_empty());
}

#[test]
fn a_batch_longer_than_the_capacity_is_taken_when_nothing_waits() {
    let mut fixture = Fixture::new(Overload::Reject, 4, 10);
    assert!(fixture.offer(writes(100)).is_empty());
    assert_eq!(fixture.offer(get()), [(1, Some(Refusal::QueueFull))]);
    assert_eq!(fixture.taken(), [0]);
    assert!(fixture.offer(get()).is_empty());
    assert_eq!(fixture.offer(writes(100)), [(3, Some(Refusal::QueueFull))]);
}

#[test]
fn each_policy_handles_a_full_queue() {
    let mut caller_runs = Fixture::new(Overload::CallerRuns, 4, 1);
    caller_runs.offer(get());
    assert_eq!(caller_runs.offer(get()), [(1, None)]);
    let mut oldest = Fixture::new(Overload::DiscardOldest, 4, 3);
    for work in [range(), get(), writes(1)] {
        assert!(oldest.offer(work).is_empty());
    }
    let discarded = Some(Refusal::Discarded);
    assert_eq!(oldest.offer(writes(2)), [(0, discarded), (1, discarded)]);
    assert_eq!(oldest.offer(get()), [(2, discarded)]);
    assert_eq!((oldest.taken(), oldest.taken()), (vec![4], vec![3]));
}

#[test]
fn begun_ranges_are_not_refused() {
    for policy in [Overload::Adaptive, Overload::Reject, Overload::DiscardOldest] {
        let mut fixture = Fixture::new(policy, 4, 2);
        for _ in 0..5 {
            assert!(fixture.offer(next_piece()).is_empty());
        }
        let refused = fixture.offer(range());
        assert!(matches!(refused[..], [(5, Some(_))]), "{policy:?}: {refused:?}");
        // Reads go before them, so that there is room.
        assert!(fixture.offer(get()).is_empty(), "{policy:?}");
        assert_eq!(fixture.taken(), [6], "{policy:?}");
        fixture.now_ns += 10_000 * MS;
        assert_eq!(fixture.taken(), [0], "{policy:?}");
    }
}

#[test]
fn adaptive_keeps_room_for_reads() {
    let mut fixture = Fixture::new(Overload::Adaptive, 4, 100);
    for class in 0..70 {
        assert!(fixture.offer(range()).is_empty(), "{class}");
    }
    assert_eq!(fixture.offer(range()), [(70, Some(Refusal::QueueFull))]);
    assert!(fixture.offer(writes(20)).is_empty());
    assert_eq!(fixture.offer(writes(1)), [(72, Some(Refusal::QueueFull))]);
    for _ in 0..10 {
        assert!(fixture.offer(get()).is_empty());
    }
    assert_eq!(fixture.offer(get()), [(83, Some(Refusal::QueueFull))]);
}

#[test]
fn jobs_of_lower_priority_do_not_delay_a_read() {
    let mut fixture = Fixture::new(Overload::Adaptive, 4, 10_000);
    for (class, work, cost_ns) in
        [(Class::Read, get(), MS), (Class::Write, writes(1), MS), (Class::Range, range(), 3 * MS)]
    {
        fixture.offer(work);
        fixture.taken();
        fixture.finish(class, 1, cost_ns);
    }
    // 100 ms for four workers.
    assert!(fixture.offer(writes(401)).is_empty());
    let overloaded = Some(Refusal::Overloaded);
    assert_eq!(fixture.offer(writes(1)), [(4, overloaded)]);
    assert_eq!(fixture.offer(range()), [(5, overloaded)]);
    assert!(fixture.offer(get()).is_empty());
}

#[test]
fn jobs_that_waited_too_long_are_refused_under_every_policy_in_every_class() {
    for policy in [Overload::Adaptive, Overload::Reject, Overload::CallerRuns] {
        let mut fixture = Fixture::new(policy, 4, 100);
        for work in [get(), range(), writes(1)] {
            fixture.offer(work);
        }
        fixture.now_ns += 1_001 * MS;
        let late = Some(Refusal::WaitedTooLong);
        assert_eq!(fixture.take(), (vec![], vec![(0, late), (2, late), (1, late)]));
        fixture.offer(get());
        assert_eq!(fixture.taken(), [3]);
    }
}

#[test]
fn one_worker_of_two_or_more_is_never_at_work_on_ranges() {
    for (workers, ranges_at_once) in [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (16, 12)] {
        let mut fixture = Fixture::new(Overload::Reject, workers, 100);
        (0..workers).for_each(|_| assert!(fixture.offer(range()).is_empty()));
        let taken: Vec<usize> = (0..workers).flat_map(|_| fixture.taken()).collect();
        assert_eq!(taken.len(), ranges_at_once, "{workers} workers");
        assert_eq!(fixture.queue.busy_count(), ranges_at_once);
        if workers > 1 {
            assert!(!fixture.queue.can_run());
            fixture.offer(get());
            assert!(fixture.queue.can_run());
            assert_eq!(fixture.taken(), [workers]);
            fixture.finish(Class::Range, 1, MS);
            assert_eq!(fixture.taken(), [ranges_at_once]);
        }
    }
}

#[test]
fn workers_share_the_queue_and_take_small_batches() {
    let mut fixture = Fixture::new(Overload::Reject, 4, 1_000);
    for _ in 0..100 {
        fixture.offer(get());
    }
    // While the cost is unknown, the first job might be slow.
    assert_eq!(fixture.taken(), [0]);
    fixture.finish(Class::Read, 1, 10_000);
    assert_eq!(fixture.taken().len(), 16);
    assert_eq!(fixture.taken().len(), 16);
    assert_eq!(fixture.taken().len(), 16);
    // A quarter of what is left.
    assert_eq!(fixture.taken().len(), 12);
    for _ in 0..500 {
        fixture.offer(get());
    }
    for request_count in [16, 16, 16, 12] {
        fixture.finish(Class::Read, request_count, request_count as u64 * MS);
    }
    // Each measurement counts as at most eight times the smoothed cost: now 43 us.
    assert_eq!(fixture.taken().len(), 11);
    assert_eq!(fixture.queue.stats().done, [61, 0, 0]);
}

#[test]
fn a_queue_that_stops_refuses_waiting_and_new_jobs() {
    let mut fixture = Fixture::new(Overload::CallerRuns, 4, 100);
    for work in [get(), range(), writes(3)] {
        fixture.offer(work);
    }
    let mut removed = Vec::new();
    fixture.queue.stop(&mut removed);
    let stopping = Some(Refusal::Stopping);
    assert_eq!(removed_slots(&removed), [(0, stopping), (2, stopping), (1, stopping)]);
    assert_eq!(fixture.offer(get()), [(3, stopping)]);
    assert!(fixture.taken().is_empty());
}
