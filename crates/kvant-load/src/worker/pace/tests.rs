use super::Pace;
use crate::config::{Arrival, LoadConfig, Phase, Rate, StatusSet};
use std::time::Duration;

const S: u64 = 1_000_000_000;
const BEGIN_NS: u64 = 7 * S;

fn config(arrival: Arrival, wrk2_exact: bool) -> LoadConfig {
    LoadConfig {
        targets: Vec::new(),
        thread_count: 2,
        connection_count: 5,
        timeout: Duration::from_secs(1),
        arrival,
        seed: 1,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact,
        spin: Duration::ZERO,
        interval: Duration::from_secs(1),
        ca_pem: None,
    }
}

/// The plans of both threads for one second at 100 requests a second.
fn paces(arrival: Arrival, wrk2_exact: bool, phase_number: u64) -> Vec<Pace> {
    let phase = Phase {
        rate: Rate::Constant(100.0),
        warmup: Duration::ZERO,
        duration: Duration::from_secs(1),
        request_count_max: None,
    };
    let config = config(arrival, wrk2_exact);
    [3, 2]
        .into_iter()
        .enumerate()
        .map(|(thread, connections)| {
            Pace::new(&config, &phase, phase_number, thread, connections, BEGIN_NS)
        })
        .collect()
}

/// All planned times within `from_ns..to_ns`, in nanoseconds since the beginning.
fn unsent(paces: &[Pace], from_ns: u64, to_ns: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for pace in paces {
        pace.each_unsent(from_ns, to_ns, |_| 0, |at_ns, _| all.push(at_ns - BEGIN_NS));
    }
    all.sort_unstable();
    all
}

#[test]
fn private_plans_together_are_as_even_as_a_shared_one() {
    let even: Vec<u64> = (0..100).map(|number| number * S / 100).collect();
    for arrival in [Arrival::Uniform, Arrival::Wrk2] {
        let paces = paces(arrival, false, 1);
        assert_eq!(unsent(&paces, 0, BEGIN_NS + S), even, "{arrival:?}");
        assert_eq!(unsent(&paces, BEGIN_NS + S / 2, BEGIN_NS + S), even[50..], "{arrival:?}");
    }
}

#[test]
fn counts_equal_the_times_shown() {
    for (arrival, wrk2_exact) in
        [(Arrival::Uniform, false), (Arrival::Poisson, false), (Arrival::Wrk2, true)]
    {
        let mut paces = paces(arrival, wrk2_exact, 1);
        for at_ns in [BEGIN_NS, BEGIN_NS + S / 3, BEGIN_NS + S] {
            let shown = unsent(&paces, 0, at_ns).len() as u64;
            let counted = paces.iter_mut().map(|pace| pace.unsent_before(0, at_ns, |_| 0));
            let sums: Vec<_> = counted.map(|unsent| (unsent.measured, unsent.total)).collect();
            assert_eq!(
                sums.iter().map(|(measured, _)| measured).sum::<u64>(),
                shown,
                "{arrival:?}"
            );
            assert_eq!(sums.iter().map(|(_, all)| all).sum::<u64>(), shown, "{arrival:?}");
        }
    }
}

#[test]
fn requests_left_by_the_warm_up_do_not_count_as_measured() {
    for arrival in [Arrival::Uniform, Arrival::Poisson, Arrival::Wrk2] {
        let mut pace = paces(arrival, false, 1).swap_remove(0);
        let measured_ns = BEGIN_NS + S / 2;
        pace.begin_measuring(measured_ns);
        let unsent = pace.unsent_before(measured_ns, BEGIN_NS + S, |_| 0);
        let mut shown = 0;
        pace.each_unsent(measured_ns, BEGIN_NS + S, |_| 0, |_, count| shown += count);
        assert_eq!(unsent.measured, shown, "{arrival:?}");
        assert!(unsent.total > shown, "{arrival:?}: {unsent:?}");
    }
}

#[test]
fn sent_requests_are_not_in_the_backlog() {
    let mut shared = paces(Arrival::Uniform, false, 1).swap_remove(0);
    let Pace::Shared(plan) = &mut shared else { panic!("it is shared") };
    assert_eq!(plan.next_ns(), BEGIN_NS);
    plan.take(3);
    assert_eq!(
        plan.next_ns(),
        BEGIN_NS + 6 * S / 100,
        "every second one belongs to the other thread"
    );
    assert_eq!(shared.unsent_before(0, BEGIN_NS + S, |_| 0).total, 47);

    let mut private = paces(Arrival::Wrk2, false, 1).swap_remove(0);
    let Pace::Private(plans) = &mut private else { panic!("they are private") };
    plans[0].complete(3);
    let unsent = private.unsent_before(0, BEGIN_NS + S, |index| u64::from(index == 1));
    assert_eq!(unsent.total, 56);
}

#[test]
fn random_arrivals_differ_from_phase_to_phase() {
    let of_phase = |number| unsent(&paces(Arrival::Poisson, false, number), 0, BEGIN_NS + S);
    assert_eq!(of_phase(1), of_phase(1));
    assert_ne!(of_phase(1), of_phase(2));
}
