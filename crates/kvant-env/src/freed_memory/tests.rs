use super::*;
use crate::testing::MockClock;
use kvant_base::log::NoLog;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const BYTES: u64 = 128 << 20;

/// Held by tests that measure or change the memory of the whole process.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn task(limit_bytes: u64) -> (FreedMemory, Arc<MockClock>) {
    let clock = Arc::new(MockClock::new(0));
    let memory = MemoryBudget::new(limit_bytes);
    let task = FreedMemory::new(memory, Events::new(8), clock.clone(), Arc::new(NoLog));
    (task, clock)
}

fn is_due(task: &FreedMemory, resident_bytes: u64, uncounted_bytes: u64) -> bool {
    task.is_due(resident_bytes, uncounted_bytes, Kind::Heaps)
}

fn resident_bytes() -> u64 {
    posix::resident_bytes().expect("Linux tells")
}

/// Leaves [`BYTES`] of freed memory in a heap; what is returned keeps the heap from ending before
/// it.
fn free_much() -> Option<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = (0..BYTES / 4096).map(|_| vec![7; 4000]).collect();
    blocks.pop()
}

#[test]
fn freed_memory_is_released_once_the_process_nears_its_limit() {
    let _turn = turn();
    let (task, _) = task(BYTES);
    assert!(matches!(task.step(), Step::IdleUntil(_)));
    let before_bytes = resident_bytes();
    let last = free_much();
    // Other tests run meanwhile.
    let full_bytes = resident_bytes();
    assert!(full_bytes > before_bytes + BYTES / 2, "{before_bytes} {full_bytes}");
    assert!(matches!(task.step(), Step::IdleUntil(_)));
    let after_bytes = resident_bytes();
    assert!(after_bytes + BYTES / 2 < full_bytes, "{full_bytes} {after_bytes}");
    let events = task.events.after(0, usize::MAX);
    assert!(events.iter().any(|event| event.kind == EventKind::Release), "{events:?}");
    drop(last);
}

#[test]
fn memory_that_may_be_used_again_is_released_after_a_minute_without_use() {
    const MIB: u64 = 1 << 20;
    let (task, clock) = task(1024 * MIB);
    // Resident, and of it uncounted.
    assert!(!is_due(&task, 100 * MIB, 10 * MIB));
    for _ in 0..3 {
        assert!(!is_due(&task, 400 * MIB, 300 * MIB), "the cache may take it again");
        clock.advance(Duration::from_secs(59));
        assert!(!is_due(&task, 400 * MIB, 300 * MIB));
        clock.advance(Duration::from_secs(59));
        assert!(!is_due(&task, 400 * MIB, 20 * MIB), "the cache has taken it");
    }
    assert!(!is_due(&task, 400 * MIB, 300 * MIB));
    clock.advance(Duration::from_secs(60));
    assert!(is_due(&task, 400 * MIB, 300 * MIB), "nothing has taken it");
}

/// So little that it is worth a release of pages, but not of heaps.
#[test]
fn free_pages_are_released_after_a_minute_although_heaps_are_not() {
    const MIB: u64 = 1 << 20;
    let (task, clock) = task(1024 * MIB);
    assert!(!is_due(&task, 100 * MIB, 0));
    for _ in 0..3 {
        assert!(!task.is_due(200 * MIB, 40 * MIB, Kind::Pages));
        assert!(!is_due(&task, 200 * MIB, 40 * MIB));
        clock.advance(Duration::from_secs(20));
    }
    assert!(task.is_due(200 * MIB, 40 * MIB, Kind::Pages));
    assert!(!is_due(&task, 200 * MIB, 40 * MIB));
}

#[test]
fn memory_is_released_when_little_is_left_of_the_budget() {
    const MIB: u64 = 1 << 20;
    let (task, _) = task(1024 * MIB);
    assert!(!is_due(&task, 1000 * MIB, 10 * MIB));
    assert!(!is_due(&task, 1000 * MIB, 60 * MIB), "it would release little");
    assert!(!is_due(&task, 960 * MIB, 70 * MIB));
    assert!(is_due(&task, 961 * MIB, 70 * MIB));
}

#[test]
fn the_task_looks_more_often_near_the_limit() {
    let _turn = turn();
    let next_ns = |limit_bytes| match task(limit_bytes).0.step() {
        Step::IdleUntil(at_ns) => at_ns,
        _ => panic!("the task waits after a step"),
    };
    assert_eq!(next_ns(resident_bytes() * 8), INTERVAL_NS);
    assert_eq!(next_ns(resident_bytes() / 8), NEAR_INTERVAL_NS);
}

#[test]
fn what_a_release_leaves_is_counted() {
    const MIB: u64 = 1 << 20;
    let _turn = turn();
    let (task, _) = task(1024 * MIB);
    let counted_bytes = || task.memory.used_bytes(Consumer::Process);
    assert!(!is_due(&task, 500 * MIB, 40 * MIB));
    assert_eq!(counted_bytes(), 40 * MIB);
    assert!(!is_due(&task, 500 * MIB, 30 * MIB));
    assert!(!is_due(&task, 500 * MIB, 60 * MIB));
    assert_eq!(counted_bytes(), 30 * MIB, "the least");
    task.release(60 * MIB);
    assert_ne!(counted_bytes(), 30 * MIB, "what this process really holds");
}

#[test]
fn the_c_library_releases_memory_at_most_once_per_second() {
    let _turn = turn();
    let (task, clock) = task(BYTES);
    assert!(task.may_release());
    task.release(0);
    clock.advance(Duration::from_millis(999));
    assert!(!task.may_release());
    clock.advance(Duration::from_millis(1));
    assert!(task.may_release());
}
