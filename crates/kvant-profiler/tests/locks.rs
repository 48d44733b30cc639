//! Compares the profiler's figures with those of programs that measure their own waits.

mod support;

use kvant_base::lock::{self, NamedCondvar, NamedMutex};
use kvant_base::wait::{self, WaitKind};
use kvant_env::Env;
use kvant_profiler::collect::{Options, Profiler};
use kvant_profiler::recording::{Kind, Recording, Sample};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{Names, assert_within, is_in, turn, weight};

/// Runs `program` while its waits are sampled: nearly all of those above 0.1 ms.
fn profile<T>(program: impl FnOnce() -> T) -> (Recording, T) {
    let _turn = turn();
    let options = Options {
        cpu: None,
        alloc_mean_bytes: None,
        wait_mean_ns: Some([50_000; 5]),
        ..Options::default()
    };
    let profiler = Profiler::start(options, &Env::posix(), None).unwrap();
    let outcome = program();
    let recording = profiler.stop();
    assert_eq!(recording.facts.dropped_count, 0);
    (recording, outcome)
}

/// Adds the time that `wait` takes to `total_ns`.
fn timed<T>(total_ns: &AtomicU64, wait: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = wait();
    total_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

fn is_named(recording: &Recording, sample: &Sample, name: &str) -> bool {
    recording.names[sample.name as usize] == name
}

fn waited_ns(recording: &Recording, kind: WaitKind, name: &str) -> f64 {
    weight(recording, Kind::Wait(kind), |s| is_named(recording, s, name))
}

#[inline(never)]
fn hold_for_long(lock: &NamedMutex<u64>) {
    let mut count = lock.lock();
    *count += 1;
    thread::sleep(Duration::from_millis(3));
}

#[inline(never)]
fn hold_briefly(lock: &NamedMutex<u64>, waited: &AtomicU64) -> u64 {
    *timed(waited, || lock.lock())
}

#[test]
fn contention_and_holders_are_attributed_to_their_lock() {
    const ROUNDS: u64 = 150;
    let (recording, waited_truth_ns) = profile(|| {
        let (wanted, unwanted) = (NamedMutex::new("wanted", 0), NamedMutex::new("unwanted", 0));
        let waited = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    hold_for_long(&wanted);
                    // Lets the other thread take the lock, as a mutex is not fair.
                    thread::sleep(Duration::from_millis(1));
                }
            });
            scope.spawn(|| {
                while hold_briefly(&wanted, &waited) < ROUNDS {
                    *unwanted.lock() += 1;
                    thread::sleep(Duration::from_micros(500));
                }
            });
        });
        waited.into_inner() as f64
    });
    let mut names = Names::of_this_binary();
    let mut waits = |function| {
        weight(&recording, Kind::Wait(WaitKind::Contention), |s| {
            is_named(&recording, s, "wanted") && is_in(&mut names, &recording, s, function)
        })
    };
    assert_within(5.0, waits("hold_briefly"), waited_truth_ns, "time waited for the lock");
    assert_eq!(waited_ns(&recording, WaitKind::Contention, "unwanted"), 0.0);
    let held_ns = weight(&recording, Kind::Holder, |s| is_named(&recording, s, "wanted"));
    let held_for_long_ns = weight(&recording, Kind::Holder, |s| {
        is_named(&recording, s, "wanted") && is_in(&mut names, &recording, s, "hold_for_long")
    });
    assert!(
        held_for_long_ns >= 0.97 * held_ns,
        "{held_for_long_ns} of {held_ns} ns are attributed to the holder of the lock"
    );
    let contended_ns = waited_ns(&recording, WaitKind::Contention, "wanted");
    // Between unlock and the next lock there is no holder to blame.
    assert!(
        held_ns <= 1.02 * contended_ns && held_ns >= 0.8 * contended_ns,
        "held for {held_ns} ns, waited for {contended_ns} ns"
    );
}

#[test]
fn a_thread_without_work_is_idle_and_a_full_queue_is_backpressure() {
    const ITEM_COUNT: usize = 60;
    const CAPACITY: usize = 4;
    let (recording, (idle_truth_ns, full_truth_ns, parked_truth_ns)) = profile(|| {
        let queue = NamedMutex::new("queue", Vec::new());
        let has_item = NamedCondvar::new(WaitKind::Idle, "queue_empty");
        let has_room = NamedCondvar::new(WaitKind::Backpressure, "queue_full");
        let (idle, full, parked) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ITEM_COUNT {
                    let mut items = queue.lock();
                    while items.is_empty() {
                        items = timed(&idle, || has_item.wait(items));
                    }
                    items.pop();
                    drop(items);
                    has_room.notify_one();
                    thread::sleep(Duration::from_millis(3));
                }
            });
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                for item in 0..ITEM_COUNT {
                    let mut items = queue.lock();
                    while items.len() == CAPACITY {
                        items = timed(&full, || has_room.wait(items));
                    }
                    items.push(item);
                    drop(items);
                    has_item.notify_one();
                }
            });
            scope.spawn(|| {
                for _ in 0..10 {
                    timed(&parked, || {
                        lock::park(WaitKind::Idle, "parked", Some(Duration::from_millis(10)))
                    });
                }
            });
        });
        (idle.into_inner() as f64, full.into_inner() as f64, parked.into_inner() as f64)
    });
    let idle_ns = waited_ns(&recording, WaitKind::Idle, "queue_empty");
    assert_within(5.0, idle_ns, idle_truth_ns, "time without work");
    let full_ns = waited_ns(&recording, WaitKind::Backpressure, "queue_full");
    assert_within(5.0, full_ns, full_truth_ns, "time before a full queue");
    let parked_ns = waited_ns(&recording, WaitKind::Idle, "parked");
    assert_within(5.0, parked_ns, parked_truth_ns, "parked time");
    for name in ["queue_empty", "queue_full", "parked"] {
        assert_eq!(
            waited_ns(&recording, WaitKind::Contention, name),
            0.0,
            "{name} is no contention"
        );
    }
    // A share of all three sums, since taking the queue's lock takes microseconds.
    let contended_ns = weight(&recording, Kind::Wait(WaitKind::Contention), |_| true);
    assert!(
        contended_ns < 0.03 * (idle_ns + full_ns + parked_ns),
        "contended for {contended_ns} ns"
    );
}

#[test]
fn a_file_system_call_is_a_wait_if_it_is_slow() {
    let (recording, ()) = profile(|| {
        for _ in 0..1_000 {
            drop(wait::begin(WaitKind::Io, "in_memory"));
        }
        let _waiting = wait::begin(WaitKind::Io, "on_disk");
        thread::sleep(Duration::from_millis(3));
    });
    assert!(waited_ns(&recording, WaitKind::Io, "on_disk") >= 3e6);
    let in_memory = |sample: &&Sample| is_named(&recording, sample, "in_memory");
    // Unless the machine stalled in between.
    let mut short = recording.samples.iter().filter(in_memory);
    assert!(short.all(|sample| sample.duration_ns >= 100_000));
}

#[test]
fn a_wait_that_began_in_an_earlier_recording_counts_from_the_start_of_this_one() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (_, waiter) = profile(|| {
        let wait = move || {
            let _waiting = wait::begin(WaitKind::Idle, "for long");
            receiver.recv().expect("a message");
        };
        let waiter = thread::spawn(wait);
        thread::sleep(Duration::from_millis(50));
        waiter
    });
    thread::sleep(Duration::from_millis(500));
    let (recording, ()) = profile(|| {
        thread::sleep(Duration::from_millis(100));
        sender.send(()).expect("a receiver");
        waiter.join().expect("it ends");
    });
    let waits: Vec<&Sample> =
        recording.samples.iter().filter(|s| is_named(&recording, s, "for long")).collect();
    let [wait] = waits[..] else {
        panic!("{} waits", waits.len());
    };
    // 0.1 s is a sample with probability 1 - exp(-2000), and then stands for itself.
    assert_eq!(wait.weight, wait.duration_ns);
    assert!(wait.duration_ns >= 100_000_000, "{wait:?}");
    assert!(wait.time_ns + wait.duration_ns <= recording.facts.duration_ns, "{wait:?}");
}
