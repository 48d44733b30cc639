//! Every test of this crate, in every dispatch mode and under every overload policy: the interface is one.
//!
//! The tests run in the mode that the environment names (`inline` and `reject` without it); the one here runs the whole binary again
//! for each other mode.

use kvant_server::{DispatchMode, Overload};
use std::process::Command;

const DISPATCH: &str = "KVANT_TEST_DISPATCH";
const OVERLOAD: &str = "KVANT_TEST_OVERLOAD";

const DISPATCHES: [(&str, DispatchMode); 3] = [
    ("inline", DispatchMode::Inline),
    ("pool", DispatchMode::Pool),
    ("hybrid", DispatchMode::Hybrid),
];
const OVERLOADS: [(&str, Overload); 5] = [
    ("reject", Overload::Reject),
    ("discard", Overload::Discard),
    ("discard-oldest", Overload::DiscardOldest),
    ("caller-runs", Overload::CallerRuns),
    ("adaptive", Overload::Adaptive),
];

/// The mode that tests run in.
pub(crate) fn dispatch() -> DispatchMode {
    chosen(DISPATCH, DISPATCHES)
}

/// The policy that tests run under.
pub(crate) fn overload() -> Overload {
    chosen(OVERLOAD, OVERLOADS)
}

fn chosen<T: Copy, const N: usize>(variable: &str, known: [(&str, T); N]) -> T {
    let Ok(name) = std::env::var(variable) else {
        return known[0].1;
    };
    let found = known.iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("{variable}={name} is not known"))
        .1
}

#[test]
fn the_contract_holds_in_every_mode_under_every_policy() {
    if std::env::var_os(DISPATCH).is_some() {
        return;
    }
    for (dispatch, mode) in DISPATCHES {
        for (overload, policy) in OVERLOADS {
            // Without a queue the classic policies are one; and that one is what all other tests here run in.
            if mode == DispatchMode::Inline && policy != Overload::Adaptive {
                continue;
            }
            let this = std::env::current_exe().expect("a test knows its binary");
            let done = Command::new(this)
                .env(DISPATCH, dispatch)
                .env(OVERLOAD, overload)
                .output()
                .expect("the binary can be started again");
            assert!(
                done.status.success(),
                "--dispatch {dispatch} --overload {overload}:\n{}\n{}",
                String::from_utf8_lossy(&done.stdout),
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}
