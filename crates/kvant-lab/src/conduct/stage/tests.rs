use super::*;
use crate::record::ComparisonFacts;
use std::cell::Cell;

#[test]
fn a_subject_that_never_rests_is_known() {
    const WAITS_MAX: u32 = 5;
    // It uses 20 ms of CPU time in each of the first waits.
    let rests_after = |busy_waits: u32| {
        let waits = Cell::new(0);
        comes_to_rest(
            || {
                let cpu_ns = u64::from(waits.get().min(busy_waits)) * 20_000_000;
                Some(Used { cpu_ns, written_bytes: 0 })
            },
            || {
                waits.set(waits.get() + 1);
                waits.get() <= WAITS_MAX
            },
        )
    };
    assert!(rests_after(0) && rests_after(4));
    assert!(!rests_after(5));
    assert!(comes_to_rest(|| None, || true), "unknown");
}

#[test]
fn a_subject_that_computes_or_writes_is_not_idle() {
    let before = Used { cpu_ns: 5_000_000_000, written_bytes: 1 << 30 };
    let after = |cpu_ms: u64, written_bytes: u64| Used {
        cpu_ns: before.cpu_ns + cpu_ms * 1_000_000,
        written_bytes: before.written_bytes + written_bytes,
    };
    assert!(is_idle(before, after(0, 0)));
    assert!(is_idle(before, after(10, 64 << 10)));
    assert!(!is_idle(before, after(20, 0)));
    assert!(!is_idle(before, after(0, 1 << 20)));
}

#[test]
fn data_that_expire_are_forgotten_by_all_subjects_of_their_store() {
    let left_after = |b: &str| -> Vec<String> {
        let text = "[data]\nttl = \"1s\"\n[phase]\nheld = \"1k\"\n";
        let plan = Plan::parse(text, Path::new("t.toml")).unwrap();
        let (a, b) = ("this".to_owned(), b.to_owned());
        let plan = plan.compare(ComparisonFacts { a, b, assertions: Vec::new() }, 1).unwrap();
        let resolved = plan.resolve(&plan.cases()[0]).unwrap();
        let store = store_key(&resolved);
        let mut stage = Stage::new();
        stage.stored = SIDES.map(|side| (side.to_owned(), store.clone())).into();
        let key = format!("{} {store}", store_owner(&plan, &resolved.subject));
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        stage.stored_at.insert(key, long_ago);
        stage.drop_expiring(&plan, &resolved, &store).unwrap();
        stage.stored.into_keys().collect()
    };
    assert_eq!(left_after("workers=4"), [""; 0]);
    assert_eq!(left_after("memory=64MiB"), ["B"], "it has a store of its own");
}
