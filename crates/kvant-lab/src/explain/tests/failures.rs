//! Requests that failed are told before what was slow.

use super::explain;
use super::simulation::{SECOND, Simulation};
use crate::explain::evidence::Phase;

#[test]
fn failures_are_told_first_with_their_times_and_statuses() {
    let simulation = Simulation {
        tells_phases: true,
        special: |request, _| {
            let at_s = request.start_ns / SECOND;
            if request.key.ends_with('7') && (at_s == 20 || (30..33).contains(&at_s)) {
                request.status = 507;
                // Of each second the slowest are kept.
                request.phases_ns[Phase::Storage as usize] += SECOND / 10;
            }
        },
        ..Simulation::default()
    };
    let evidence = simulation.evidence();
    let failed: u64 = evidence.windows.iter().map(|window| window.operations["get"].failed).sum();
    let told = explain(&evidence).verdict.remove(0);
    let all: u64 = evidence.windows.iter().map(|window| window.operations["get"].count).sum();
    assert!(told.starts_with(&format!("{failed} of {all} get requests (0.")), "{told}");
    assert!(told.contains("from 20.") && told.contains(" s, 30."), "{told}");
    assert!(told.ends_with(", with status 507 (the disk was full)."), "{told}");
    assert!(told.contains(" % of those that were answered then)"), "{told}");
    let calm = explain(&Simulation::default().evidence());
    assert!(!calm.verdict.iter().any(|sentence| sentence.contains("failed")), "{calm:?}");
}

#[test]
fn a_time_in_which_all_failed_is_told_and_drawn() {
    let simulation = Simulation {
        special: |request, _| {
            if (30..33).contains(&(request.start_ns / SECOND)) {
                request.status = 507;
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    let told = &explanation.verdict[0];
    let part = told.split(" s (").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(part.parse::<u32>().unwrap() >= 97, "{told}");
    let (name, spans) = &explanation.overview.lanes[0];
    assert_eq!(name, "failed requests");
    let [(from, to)] = spans[..] else { panic!("{spans:?}") };
    assert!(from.abs_diff(30 * SECOND) < SECOND / 5 && to.abs_diff(33 * SECOND) < SECOND / 5);
}
