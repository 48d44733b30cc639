use super::*;
use crate::clock::SystemClock;
use kvant_base::log::NoLog;

fn resident_bytes() -> u64 {
    posix::private_resident_bytes().expect("Linux tells")
}

#[test]
fn freed_memory_is_released_once_it_has_grown() {
    const BYTES: u64 = 128 << 20;
    let task = FreedMemory {
        memory: MemoryBudget::new(256 << 20),
        clock: Arc::new(SystemClock::new()),
        log: Arc::new(NoLog),
        expected_bytes: AtomicU64::new(u64::MAX),
    };
    assert!(matches!(task.step(), Step::IdleUntil(_)));
    let before_bytes = resident_bytes();
    let mut blocks: Vec<Vec<u8>> = (0..BYTES / 4096).map(|_| vec![7; 4000]).collect();
    // Keeps the heap from ending before it.
    let last = blocks.pop();
    drop(blocks);
    // Other tests run meanwhile.
    let full_bytes = resident_bytes();
    assert!(full_bytes > before_bytes + BYTES / 2, "{before_bytes} {full_bytes}");
    assert!(matches!(task.step(), Step::IdleUntil(_)));
    let after_bytes = resident_bytes();
    assert!(after_bytes + BYTES / 2 < full_bytes, "{full_bytes} {after_bytes}");
    drop(last);
}
