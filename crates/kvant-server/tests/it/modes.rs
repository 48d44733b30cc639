//! Every test of this crate, in every dispatch mode and under every overload policy: the interface
//! is the same.
//!
//! The tests run in the mode that the environment names (default: `inline` and `reject`). The test
//! here runs the whole binary again for each other mode.

use kvant_server::{DispatchMode, Overload};
use std::process::{Child, Command, Stdio};

const DISPATCH: &str = "KVANT_TEST_DISPATCH";
const OVERLOAD: &str = "KVANT_TEST_OVERLOAD";

const DISPATCHES: [(&str, DispatchMode); 3] = [
    ("inline", DispatchMode::Inline),
    ("pool", DispatchMode::Pool),
    ("hybrid", DispatchMode::Hybrid),
];
const OVERLOADS: [(&str, Overload); 4] = [
    ("reject", Overload::Reject),
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
    found.unwrap_or_else(|| panic!("{variable}={name} is not known")).1
}

#[test]
fn the_contract_holds_in_every_mode_under_every_policy() {
    if std::env::var_os(DISPATCH).is_some() {
        return;
    }
    let modes = DISPATCHES.iter().flat_map(|(dispatch, mode)| {
        OVERLOADS.iter().filter_map(move |(overload, policy)| {
            // Without a queue the classic policies are the same, and the default covers them.
            let is_new = *mode != DispatchMode::Inline || *policy == Overload::Adaptive;
            is_new.then_some((*dispatch, *overload))
        })
    });
    let modes: Vec<_> = modes.collect();
    // They mostly wait.
    for modes in modes.chunks(4) {
        let running: Vec<_> = modes
            .iter()
            .map(|(dispatch, overload)| (dispatch, overload, start(dispatch, overload)))
            .collect();
        for (dispatch, overload, child) in running {
            let done = child.wait_with_output().expect("it was started");
            let stdout = String::from_utf8_lossy(&done.stdout);
            // Behind the list of all tests.
            let failures = stdout.split_once("failures:").map_or(&*stdout, |(_, rest)| rest);
            assert!(
                done.status.success(),
                "--dispatch {dispatch} --overload {overload}:\n{failures}\n{}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}

/// Starts all tests that use storage.
fn start(dispatch: &str, overload: &str) -> Child {
    let this = std::env::current_exe().expect("a test knows its binary");
    Command::new(this)
        .args(["--skip", "time_limits", "--skip", "heads"])
        .env(DISPATCH, dispatch)
        .env(OVERLOAD, overload)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started again")
}
