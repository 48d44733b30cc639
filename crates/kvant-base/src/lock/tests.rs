use super::*;
use crate::wait::WaitListener;
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

/// Records wait events. Each test uses its own names.
struct Recorder {
    start: std::sync::OnceLock<Instant>,
    waits: Mutex<Vec<(WaitKind, &'static str, u64)>>,
    holds: Mutex<Vec<(&'static str, u64)>>,
}

static RECORDER: Recorder = Recorder {
    start: std::sync::OnceLock::new(),
    waits: Mutex::new(Vec::new()),
    holds: Mutex::new(Vec::new()),
};

impl WaitListener for Recorder {
    fn now_ns(&self) -> u64 {
        // 0 means that no thread waits.
        1 + self.start.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    fn on_wait_start(&self, _kind: WaitKind) -> u64 {
        self.now_ns()
    }

    fn on_wait_end(&self, kind: WaitKind, name: &'static str, start_ns: u64) {
        let waited_ns = self.now_ns() - start_ns;
        self.waits.lock().unwrap().push((kind, name, waited_ns));
    }

    fn on_contended_unlock(&self, name: &'static str, since_ns: u64) {
        let waited_ns = self.now_ns() - since_ns;
        self.holds.lock().unwrap().push((name, waited_ns));
    }
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        wait::install(&RECORDER);
        wait::listen(true);
    });
}

fn waits_for(wanted: &str) -> Vec<(WaitKind, u64)> {
    let waits = RECORDER.waits.lock().unwrap();
    let of_name = waits.iter().filter(|(_, name, _)| *name == wanted);
    of_name.map(|&(kind, _, ns)| (kind, ns)).collect()
}

fn holds_of(wanted: &str) -> Vec<u64> {
    let holds = RECORDER.holds.lock().unwrap();
    let of_name = holds.iter().filter(|(name, _)| *name == wanted);
    of_name.map(|&(_, ns)| ns).collect()
}

fn spin_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn an_uncontended_lock_reports_no_wait() {
    listen();
    let mutex = NamedMutex::new("alone", 0);
    for _ in 0..100 {
        *mutex.lock() += 1;
    }
    assert_eq!(*mutex.lock(), 100);
    assert!(waits_for("alone").is_empty());
    assert!(holds_of("alone").is_empty());
}

#[test]
fn waiter_and_holder_of_a_contended_lock_are_reported() {
    listen();
    let mutex = NamedMutex::new("wanted", ());
    let held_ns = thread::scope(|scope| {
        let guard = mutex.lock();
        scope.spawn(|| drop(mutex.lock()));
        // From now on the waiter waits for the holder.
        spin_until(|| mutex.waiters.since_ns.load(Ordering::Acquire) != 0);
        let start_ns = RECORDER.now_ns();
        thread::sleep(Duration::from_millis(20));
        let held_ns = RECORDER.now_ns() - start_ns;
        drop(guard);
        held_ns
    });
    let waits = waits_for("wanted");
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].0, WaitKind::Contention);
    assert!(waits[0].1 >= held_ns, "{waits:?}, held for {held_ns} ns");
    let holds = holds_of("wanted");
    assert_eq!(holds.len(), 1);
    assert!(holds[0] >= held_ns, "{holds:?}, held for {held_ns} ns");
}

#[test]
fn a_holder_is_charged_with_its_own_time_only() {
    listen();
    let mutex = NamedMutex::new("in_turn", ());
    let second_may_go = AtomicBool::new(false);
    thread::scope(|scope| {
        let guard = mutex.lock();
        for _ in 0..2 {
            scope.spawn(|| {
                let _guard = mutex.lock();
                spin_until(|| second_may_go.load(Ordering::Acquire));
            });
        }
        spin_until(|| mutex.waiters.count.load(Ordering::Acquire) == 2);
        thread::sleep(Duration::from_millis(20));
        drop(guard);
        second_may_go.store(true, Ordering::Release);
    });
    let holds = holds_of("in_turn");
    let waits = waits_for("in_turn");
    assert_eq!(waits.len(), 2);
    assert!((1..=2).contains(&holds.len()), "{holds:?}");
    // The two waits overlap. Together the holders are charged with no more than the longer one.
    let longest_ns = waits.iter().map(|(_, ns)| *ns).max().unwrap();
    assert!(holds.iter().sum::<u64>() <= longest_ns + 1_000_000_000, "{holds:?} {waits:?}");
    assert_eq!(mutex.waiters.count.load(Ordering::Acquire), 0);
    assert_eq!(mutex.waiters.since_ns.load(Ordering::Acquire), 0);
}

#[test]
fn a_wait_on_a_condition_variable_has_its_kind() {
    listen();
    let (mutex, nothing_to_do) =
        (NamedMutex::new("queue", false), NamedCondvar::new(WaitKind::Idle, "queue_empty"));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut has_work = mutex.lock();
            while !*has_work {
                has_work = nothing_to_do.wait(has_work);
            }
        });
        thread::sleep(Duration::from_millis(5));
        *mutex.lock() = true;
        nothing_to_do.notify_all();
    });
    assert!(waits_for("queue_empty").iter().all(|(kind, _)| *kind == WaitKind::Idle));
    let guard = nothing_to_do.wait_timeout(mutex.lock(), Duration::from_millis(1));
    drop(guard);
    assert!(!waits_for("queue_empty").is_empty());
    // The mutex was released during the wait, so its holder is not charged.
    assert!(holds_of("queue").iter().all(|ns| *ns < 5_000_000_000));
}

#[test]
fn waiters_may_name_their_own_waits() {
    listen();
    let mutex = NamedMutex::new("named_by_waiter", ());
    let condition = NamedCondvar::named_by_waiters();
    let waiting = wait::begin(WaitKind::Backpressure, "named_by_waiter");
    drop(condition.wait_timeout(mutex.lock(), Duration::from_millis(1)));
    drop(waiting);
    let waits = waits_for("named_by_waiter");
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0].0, WaitKind::Backpressure);
}

#[test]
fn a_parked_thread_reports_its_wait() {
    listen();
    park(WaitKind::Idle, "parked", Some(Duration::from_millis(1)));
    let waits = waits_for("parked");
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0].0, WaitKind::Idle);
}
