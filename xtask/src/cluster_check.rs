//! `cargo xtask cluster-check`: the engine `cassandra` on a real node.
//!
//! Starts a node that requires a login, runs the tests that need one, and ends it.

use crate::cluster;
use crate::process::{self, Verdict};
use clap::{ArgMatches, Command};

const NODE: &str = "127.0.0.1:9042";

pub(crate) fn command() -> Command {
    Command::new("cluster-check")
        .about("Test the engine `cassandra` on a real node. Needs what `cluster up` needs")
}

pub(crate) fn run(_matches: &ArgMatches) -> Verdict {
    let modules = [
        &["copies::", "keyspaces::", "ranges::", "records::", "--include-ignored"][..],
        &["contract::"],
        &["cluster_copy::", "--include-ignored"],
        // Alone: it counts the node's requests.
        &["own_connections::", "--include-ignored"],
        // Alone: it stops the node for a while.
        &["cluster_away::", "--include-ignored"],
    ];
    let passed = cluster::with(1, true, || {
        let pid = cluster::process_of(1)?;
        modules.iter().try_for_each(|arguments| {
            let mut command = process::cargo();
            // Of all packages, as in `cargo test`: for one alone, the driver and the crates above
            // it are built anew, with other features.
            command.args(["test", "--test", "it", "--"]).args(*arguments);
            command.env("KVANT_TEST_CLUSTER", NODE);
            process::run(command.env("KVANT_TEST_CLUSTER_PID", pid.to_string()))
        })
    });
    println!("cluster-check: {}", if passed.is_ok() { "passed" } else { "failed" });
    passed.map(|()| true)
}
