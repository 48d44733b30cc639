use super::testing::{add_second, trace, window};
use super::*;
use crate::timing::{Phase, SECOND_NS, Stamps};
use kvant_env::rng::Rng;

#[test]
fn what_is_kept_comes_back() {
    let seed = 1;
    let mut rng = Rng::new(seed);
    let history = History::new(600 * SECOND_NS, &MemoryBudget::new(1 << 30));
    for second in 1..50 {
        let traces: Vec<Trace> =
            (0..rng.below(9)).map(|_| trace(second * SECOND_NS, &mut rng)).collect();
        let windows = add_second(&history, second, &mut rng, &traces);
        let kept = history.seconds_after(second * SECOND_NS, 10);
        assert_eq!(kept.len(), 1, "seed {seed}");
        assert_eq!(kept[0].windows().collect::<Vec<_>>(), windows, "seed {seed}");
        let again: Vec<Trace> = kept[0].slowest().collect();
        assert_eq!(format!("{again:?}"), format!("{traces:?}"), "seed {seed}");
    }
}

#[test]
fn a_stage_that_was_skipped_backwards_takes_no_time() {
    let stamps = Stamps {
        arrival_ns: 100,
        parsed_ns: 90,
        queued_ns: 130,
        started_ns: 120,
        done_ns: 150,
        written_ns: 160,
    };
    let slow = slow::SlowTraces::of(&[Trace { stamps, ..Trace::default() }]);
    let again = slow.traces().next().unwrap().stamps;
    for phase in [Phase::Selector, Phase::Queue, Phase::Answer, Phase::Total] {
        assert_eq!(again.phase_ns(phase), stamps.phase_ns(phase), "{phase:?}");
    }
}

#[test]
fn the_second_in_progress_is_shown_and_pages_follow_each_other() {
    let mut rng = Rng::new(2);
    let history = History::new(600 * SECOND_NS, &MemoryBudget::new(1 << 30));
    let mut all = Vec::new();
    for second in 1..6 {
        all.extend(add_second(&history, second, &mut rng, &[]));
    }
    all.push(window(6 * SECOND_NS, &mut rng));
    history.add(&all[50]);
    let mut found = Vec::new();
    let mut done_ns = 0;
    loop {
        let seconds = history.seconds_after(done_ns, 4);
        let Some(last) = seconds.last() else { break };
        done_ns = last.end_ns();
        found.extend(seconds.iter().flat_map(|second| second.windows().collect::<Vec<_>>()));
    }
    assert_eq!(found, all);
}

#[test]
fn the_oldest_goes_after_its_time() {
    let mut rng = Rng::new(3);
    let history = History::new(10 * SECOND_NS, &MemoryBudget::new(1 << 30));
    for second in 1..100 {
        add_second(&history, second, &mut rng, &[]);
        history.add_cpu(vec![cpu_second(second)]);
    }
    let kept = history.seconds_after(0, 1000);
    let first_ns = kept[0].windows().next().unwrap().start_ns;
    assert_eq!((first_ns, kept.len()), (90 * SECOND_NS, 10));
    let cpu = history.cpu_after(0, 1000);
    assert_eq!((cpu[0].start_ns, cpu.len()), (90 * SECOND_NS, 10));
}

fn cpu_second(second: u64) -> CpuSecond {
    let start_ns = second * SECOND_NS;
    CpuSecond { start_ns, length_ns: SECOND_NS, cpu_ns: vec![(1, 2), (3, 4)] }
}

#[test]
fn memory_is_bounded_and_counted() {
    let mut rng = Rng::new(4);
    for (budget_bytes, most_bytes) in [(64 << 20, 4 << 20), (1 << 30, 8 << 20)] {
        let budget = MemoryBudget::new(budget_bytes);
        let history = History::new(u64::MAX, &budget);
        for second in 1..3000 {
            let traces: Vec<Trace> = (0..28).map(|_| trace(second * SECOND_NS, &mut rng)).collect();
            add_second(&history, second, &mut rng, &traces);
            history.add_cpu(vec![cpu_second(second)]);
            assert!(budget.used_bytes(Consumer::History) <= most_bytes);
        }
        // What goes makes room for no more than one second.
        assert!(budget.used_bytes(Consumer::History) > most_bytes - (64 << 10));
        let windows = history.seconds_after(0, 10_000);
        let cpu = history.cpu_after(0, 10_000);
        let counted = windows.iter().map(|second| second.memory_bytes()).sum::<u64>()
            + cpu.iter().map(|second| second.memory_bytes()).sum::<u64>();
        assert_eq!(counted, budget.used_bytes(Consumer::History));
        drop(history);
        assert_eq!(budget.used_bytes(Consumer::History), 0);
    }
}
