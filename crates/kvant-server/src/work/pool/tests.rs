//! Workers whose steps the test controls.

use super::queue::Job;
use super::work::PoolWork;
use super::*;
use crate::admission::Class;
use crate::admission::Refusal;
use crate::config::Overload;
use crate::http::query::RangeQuery;
use crate::http::record_format::RecordFormat;
use crate::key::Key;
use crate::store::{Backend, LocalStore, Lookup, Write};
use crate::work::RangeReader;
use crate::work::pool::GetRequest;
use kvant_base::Events;
use kvant_env::Clock;
use kvant_env::testing::{DeterministicSpawner, FaultyFs, MockClock, entropy_seed};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
pub(super) use store::FakeStore;
use tokio::runtime::{Builder, LocalOptions};

mod random;
mod store;

fn config() -> ServerConfig {
    ServerConfig {
        workers: 2,
        queue_capacity: 100,
        overload: Overload::Reject,
        queue_wait_max: Duration::from_secs(1),
        ..ServerConfig::default()
    }
}

struct Fixture {
    pool: Arc<Pool>,
    store: Arc<FakeStore>,
    refusals: Arc<Refusals>,
    clock: Arc<MockClock>,
    spawner: DeterministicSpawner,
    ports: Vec<Rc<Port>>,
}

impl Fixture {
    /// Called in a selector's runtime, which has all ports.
    fn new(config: ServerConfig) -> Fixture {
        let seed = entropy_seed();
        println!("seed {seed}");
        let clock = Arc::new(MockClock::new(0));
        clock.advance(Duration::from_secs(100));
        let spawner = DeterministicSpawner::new(seed, Arc::clone(&clock));
        let env = Env {
            fs: Arc::new(FaultyFs::in_memory()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            spawner: Arc::new(spawner.clone()),
        };
        let (pool, store, refusals) = start(config, &env, 2);
        spawner.run_until_idle();
        let ports: Vec<Rc<Port>> =
            (0..2).map(|index| Port::new(Arc::clone(&pool), index)).collect();
        ports.iter().for_each(|port| port.spawn_tasks());
        Fixture { pool, store, refusals, clock, spawner, ports }
    }

    fn get(&self, key: &str) -> Later<GetRequest> {
        self.ports[0].send(get(key))
    }

    /// Lets sent jobs reach the queue, while no worker runs.
    async fn hand_over(&self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets workers do all jobs.
    async fn work(&self) {
        self.hand_over().await;
        self.spawner.run_until_idle();
        self.hand_over().await;
    }
}

fn start(
    config: ServerConfig,
    env: &Env,
    selectors: usize,
) -> (Arc<Pool>, Arc<FakeStore>, Arc<Refusals>) {
    let lifecycle = Arc::<Lifecycle>::default();
    let store = Arc::new(FakeStore::default());
    lifecycle.set_ready(Backend::Local(Arc::clone(&store) as Arc<dyn LocalStore>));
    let refusals = Refusals::new(Events::new(16));
    let pool = Pool::start(Arc::new(config), env, lifecycle, Arc::clone(&refusals), selectors);
    (pool, store, refusals)
}

/// Runs a future as a selector would.
fn on_selector(future: impl Future<Output = ()>) {
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(future);
}

fn get(key: &str) -> GetRequest {
    GetRequest { key: Key::from(key.as_bytes()), block_bytes_max: u32::MAX }
}

fn write(keys: &[&str]) -> Vec<Write> {
    let write = |key: &&str| Write {
        key: Key::from(key.as_bytes()),
        value: None,
        ttl_ms: None,
        expires_at_ms: Some(5_000),
    };
    keys.iter().map(write).collect()
}

/// A range of `record_count` records.
fn range(record_count: u64) -> Box<RangeReader> {
    let start = Key::from(record_count.to_string().as_bytes());
    let query = RangeQuery { start, end: None, limit: None };
    Box::new(RangeReader::new(query, RecordFormat::Plain))
}

/// Work and its result in a few words.
trait Describe: PoolWork {
    fn describe(&self) -> String;
    fn describe_output(output: Self::Output) -> String;
}

impl Describe for GetRequest {
    fn describe(&self) -> String {
        format!("get {}", String::from_utf8_lossy(&self.key))
    }

    fn describe_output(found: kvant_base::Result<Lookup>) -> String {
        match found.unwrap() {
            Lookup::Known(value) => format!("got {}", String::from_utf8_lossy(&value.unwrap())),
            Lookup::Appended => unreachable!("workers have no buffer"),
            Lookup::NeedsDisk { .. } => "needs the disk".to_string(),
        }
    }
}

impl Describe for Vec<Write> {
    fn describe(&self) -> String {
        let keys = self.iter().map(|write| String::from_utf8_lossy(&write.key));
        format!("write {}", keys.collect::<Vec<_>>().join(" "))
    }

    fn describe_output(result: kvant_base::Result<()>) -> String {
        match result {
            Ok(()) => "written".to_string(),
            Err(error) => format!("{:?}", error.kind()),
        }
    }
}

impl Describe for Box<RangeReader> {
    fn describe(&self) -> String {
        "range".to_string()
    }

    fn describe_output((reader, result): (Box<RangeReader>, kvant_base::Result<()>)) -> String {
        result.unwrap();
        format!("{} records", reader.read_count())
    }
}

fn described<W: Describe>(done: Done<W>) -> String {
    match done.reply {
        PoolReply::Finished(output) => W::describe_output(output),
        PoolReply::Refused(refusal, work) => format!("{} {}", refusal.name(), work.describe()),
        PoolReply::CallerRuns(work) => format!("here {}", work.describe()),
    }
}

#[test]
fn every_kind_of_work_has_a_reply_of_its_type_and_its_times() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let read = fixture.get("a");
        let range = fixture.ports[1].send(range(5));
        let written = fixture.ports[1].send(write(&["b", "c"]));
        let full = fixture.ports[1].send(write(&["n", "d"]));
        let stalled = fixture.ports[1].send(write(&["s", "e"]));
        fixture.clock.advance(Duration::from_millis(7));
        fixture.work().await;
        let read = read.await;
        let times = read.work;
        assert_eq!(times.started_ns - times.queued_ns, 7_000_000);
        assert!(times.done_ns >= times.started_ns);
        assert_eq!(times.read.block_count, 1);
        assert_eq!(described(read), "got a");
        assert_eq!(described(range.await), "5 records");
        assert_eq!(described(written.await), "written");
        assert_eq!(described(full.await), "NoSpace");
        assert_eq!(described(stalled.await), "Stalled");
        assert_eq!(fixture.pool.stats().done, [1, 6, 1]);
        assert_eq!(fixture.pool.stats().busy_count, 0);
    });
}

#[test]
fn jobs_of_one_turn_are_handed_over_together() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let laters: Vec<Later<GetRequest>> =
            (0..50).map(|index| fixture.get(&index.to_string())).collect();
        assert_eq!(fixture.pool.stats().queued, [0; 3]);
        fixture.hand_over().await;
        let stats = fixture.pool.stats();
        assert_eq!((stats.queued[0], stats.hand_over_count, stats.wake_count), (50, 1, 1));
        fixture.work().await;
        // The first worker has woken the second.
        assert_eq!(fixture.pool.stats().wake_count, 2);
        for (index, later) in laters.into_iter().enumerate() {
            assert_eq!(described(later.await), format!("got {index}"));
        }
    });
}

#[test]
fn writes_have_a_reply_when_the_store_completes_them() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let mut later = fixture.ports[0].send(write(&["later"]));
        let forgotten = fixture.ports[0].send(write(&["forgotten"]));
        let dropped = fixture.ports[0].send(write(&["dropped"]));
        let elsewhere = fixture.ports[0].send(write(&["thread"]));
        fixture.work().await;
        assert_eq!(described(elsewhere.await), "written");
        assert_eq!(described(dropped.await), "OutcomeUnknown");
        poll_fn(|cx| {
            assert!(Pin::new(&mut later).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        // Workers do not wait for it.
        assert_eq!(fixture.pool.stats().busy_count, 0);
        fixture.clock.advance(Duration::from_millis(3));
        fixture.store.complete();
        let later = later.await;
        assert_eq!(later.work.done_ns - later.work.started_ns, 3_000_000);
        assert_eq!(described(later), "written");
        assert_eq!(described(forgotten.await), "OutcomeUnknown");
    });
}

#[test]
fn a_write_does_not_expire_early_because_it_waited() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let written = fixture.ports[0].send(write(&["a"]));
        fixture.clock.advance(Duration::from_micros(20_100));
        fixture.work().await;
        written.await;
        let written = fixture.store.written.lock().unwrap();
        assert_eq!(written[0].expires_at_ms, Some(5_021));
    });
}

#[test]
fn a_job_may_come_after_its_worker_has_read_the_clock() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let ticket = work::Ticket { selector: 0, slot: 0 };
        let now_ns = fixture.clock.monotonic_ns();
        let job = Job::new(write(&["a"]).into_work(), ticket, now_ns + 1_000_000);
        fixture.pool.hand_over(&mut vec![job], &mut Vec::new(), now_ns);
        fixture.spawner.run_until_idle();
        assert_eq!(fixture.store.written.lock().unwrap()[0].expires_at_ms, Some(5_000));
    });
}

#[test]
fn a_reply_to_a_dropped_future_goes_to_no_other() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let before = fixture.get("before");
        drop(before);
        let first = fixture.get("first");
        fixture.work().await;
        assert_eq!(fixture.store.read_count.load(Ordering::Relaxed), 2);
        let after = fixture.get("after");
        fixture.work().await;
        // Its reply has arrived and was not taken.
        drop(after);
        let second = fixture.get("second");
        fixture.work().await;
        assert_eq!(described(second.await), "got second");
        assert_eq!(described(first.await), "got first");
    });
}

#[test]
fn a_full_queue_returns_work_by_policy() {
    on_selector(async {
        for (overload, response) in
            [(Overload::Reject, "queue-full get 1"), (Overload::CallerRuns, "here get 1")]
        {
            let fixture = Fixture::new(ServerConfig { queue_capacity: 1, overload, ..config() });
            let (first, second) = (fixture.get("0"), fixture.get("1"));
            assert_eq!(described(second.await), response);
            fixture.work().await;
            assert_eq!(described(first.await), "got 0");
        }
    });
}

#[test]
fn a_discarded_job_of_another_selector_has_a_reply() {
    on_selector(async {
        let fixture = Fixture::new(ServerConfig {
            queue_capacity: 2,
            overload: Overload::DiscardOldest,
            ..config()
        });
        let old = [fixture.get("0"), fixture.get("1")];
        fixture.hand_over().await;
        fixture.clock.advance(Duration::from_millis(1));
        let new = fixture.ports[1].send(write(&["a", "b"]));
        for (index, later) in old.into_iter().enumerate() {
            assert_eq!(described(later.await), format!("discarded get {index}"));
        }
        fixture.work().await;
        assert_eq!(described(new.await), "written");
        assert_eq!(fixture.refusals.count(Class::Read, Refusal::Discarded), 2);
        assert_eq!(fixture.pool.stats().queued_max, 2);
    });
}

#[test]
fn a_job_that_waits_too_long_is_refused_while_all_workers_are_busy() {
    on_selector(async {
        let fixture =
            Fixture::new(ServerConfig { queue_wait_max: Duration::from_millis(20), ..config() });
        let later = fixture.ports[0].send(write(&["a", "b"]));
        fixture.hand_over().await;
        fixture.clock.advance(Duration::from_millis(21));
        assert_eq!(described(later.await), "waited-too-long write a b");
        assert_eq!(fixture.refusals.count(Class::Write, Refusal::WaitedTooLong), 2);
    });
}

#[test]
fn a_pool_that_stops_refuses_waiting_and_later_jobs() {
    on_selector(async {
        let fixture = Fixture::new(config());
        let waiting = fixture.get("waiting");
        fixture.hand_over().await;
        fixture.pool.stop();
        fixture.pool.stop();
        assert_eq!(described(waiting.await), "stopping get waiting");
        assert_eq!(described(fixture.get("late").await), "stopping get late");
        assert_eq!(fixture.store.read_count.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn without_a_store_nothing_is_done() {
    on_selector(async {
        let env = Env::posix();
        let refusals = Refusals::new(Events::new(16));
        let pool = Pool::start(Arc::new(config()), &env, Arc::default(), refusals, 1);
        let port = Port::new(Arc::clone(&pool), 0);
        port.spawn_tasks();
        assert_eq!(described(port.send(get("a")).await), "stopping get a");
        pool.stop();
    });
}
