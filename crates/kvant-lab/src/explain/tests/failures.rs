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
    let calm = explain(&Simulation::default().evidence());
    assert!(!calm.verdict.iter().any(|sentence| sentence.contains("failed")), "{calm:?}");
}
