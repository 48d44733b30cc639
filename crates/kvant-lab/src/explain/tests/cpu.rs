//! What the server did while requests were slow.

use super::simulation::{MS, SECOND, Simulation};
use super::{explain, text};
use crate::explain::evidence::{CpuSecond, Evidence};
use std::collections::BTreeMap;

/// Pauses in ten of sixty seconds, during which the server merges.
fn busy_with_ranges() -> Evidence {
    let pauses = (20..30).map(|second| (second * SECOND + 100 * MS, 200 * MS)).collect();
    let mut evidence = Simulation { pauses, ..Simulation::default() }.evidence();
    evidence.cpu = (0..60)
        .map(|second| {
            let merging_ms = if (20..30).contains(&second) { 700 } else { 50 };
            CpuSecond {
                start_ns: second * SECOND,
                length_ns: SECOND,
                cpu_ns: BTreeMap::from([
                    ("get table".to_owned(), 200 * MS),
                    ("range merge".to_owned(), merging_ms * MS),
                    ("housekeeping".to_owned(), MS),
                ]),
            }
        })
        .collect();
    evidence
}

#[test]
fn what_the_server_did_while_requests_were_slow_is_told_first() {
    let explanation = explain(&busy_with_ranges());
    let purposes: Vec<&str> = explanation.cpu.iter().map(|used| used.purpose.as_str()).collect();
    assert_eq!(purposes, ["range merge", "get table"], "less than a hundredth is left out");
    let merging = &explanation.cpu[0];
    assert!(merging.slow > 0.6 && merging.calm < 0.1, "{merging:?}");
    let sentence = explanation.verdict.last().unwrap();
    assert!(sentence.contains("did more of: ") && sentence.contains("range merge ("), "{sentence}");
    assert!(text(&explanation).contains("range merge"));
}

#[test]
fn nothing_is_told_of_a_time_without_slow_requests() {
    let cpu = busy_with_ranges().cpu;
    let calm = Evidence { cpu, ..Simulation::default().evidence() }.between(0, 20 * SECOND);
    assert_eq!(calm.cpu.len(), 20);
    assert_eq!(explain(&calm).cpu, []);
}
