//! What is printed after wrk2's block: all that wrk2 does not know.

use crate::outcome::Outcome;
use crate::verdict::Verdict;

/// The block of one phase: counts, three latencies, kinds of requests, errors, the verdict.
pub fn phase(outcome: &Outcome, verdict: &Verdict) -> String {
    let _unused = (outcome, verdict);
    String::new()
}

/// A table of phases, one row each: what was planned and what came of it. For runs with several.
pub fn steps(phases: &[(Outcome, Verdict)]) -> String {
    let _unused = phases;
    String::new()
}

/// A table by second of a phase: for ramps.
pub fn seconds(outcome: &Outcome) -> String {
    let _unused = outcome;
    String::new()
}
