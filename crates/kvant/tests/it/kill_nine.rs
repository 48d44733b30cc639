//! `kill -9` at random moments while clients write: acknowledged writes survive, and no other
//! records appear.
//!
//! One database goes through all cycles. Memory is small, so that kills interrupt flushes and
//! compactions too; some cycles kill the process again while it recovers. A seed repeats requests
//! and moments (counted in acknowledged writes), but not the schedule of threads.

use crate::clients::{Clients, Plan, number, seed};
use crate::kvant_command::{TempDir, kvant, run};
use crate::server_process::TestServer;
use kvant_env::rng::Rng;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const CYCLES_DEFAULT: u64 = 20;
/// Most writes to wait for in a cycle: several memtables.
const WRITES_MAX: u64 = 30_000;
const SYNC_LEVELS: [&str; 3] = ["os", "interval=100ms", "always"];

fn start(dir: &Path, sync: &str) -> TestServer {
    TestServer::start_with(dir, &["--memory", "64MiB", "--sync", sync])
}

#[test]
fn acknowledged_writes_survive_kill_nine() {
    let cycle_count = number("KVANT_TORTURE_CYCLES").unwrap_or(CYCLES_DEFAULT);
    let mut rng = Rng::new(seed("kill_nine"));
    let mut clients = Clients::new(rng.next_u64());
    let dir = TempDir::new();
    let mut acknowledged_total = 0;
    for cycle in 0..cycle_count {
        let sync = SYNC_LEVELS[(cycle % 3) as usize];
        let logs_left = logs(dir.path());
        let recoveries_killed = kill_recoveries(dir.path(), sync, &mut rng);
        let server = start(dir.path(), sync);
        let found = clients.check(&server);
        let tables = tables(&server);
        let plan = Plan {
            writes: below_magnitude(&mut rng, WRITES_MAX),
            delay: Duration::from_micros(below_magnitude(&mut rng, 20_000)),
            operator: rng.one_in(3),
        };
        let (acknowledged, ()) = clients.write_until(server, &plan, TestServer::kill);
        println!(
            "cycle {cycle}, {sync}: {logs_left} logs, {recoveries_killed} recoveries killed; {} records, {tables:?} tables by \
             level, {} of {} pending requests performed; killed after {acknowledged} acknowledged writes{}",
            found.records,
            found.performed,
            found.pending,
            if plan.operator { ", compacting" } else { "" }
        );
        acknowledged_total += acknowledged;
    }
    let server = start(dir.path(), "always");
    clients.check(&server);
    let tables = tables(&server);
    assert_eq!(server.stop().code, Some(0));
    let verified = run(kvant().args(["db", "verify"]).arg(dir.path()));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    println!(
        "{acknowledged_total} acknowledged writes in {cycle_count} cycles, {tables:?} tables by level"
    );
    assert!(acknowledged_total > 0, "nothing was acknowledged: nothing was tested");
    if cycle_count >= CYCLES_DEFAULT {
        assert!(tables[1..].iter().any(|count| *count > 0), "nothing was compacted: {tables:?}");
    }
}

/// Kills the process a few times, or not at all, while it recovers.
fn kill_recoveries(dir: &Path, sync: &str, rng: &mut Rng) -> u64 {
    let count = rng.below(6).saturating_sub(3);
    for _ in 0..count {
        let server = TestServer::start_listening(dir, &["--memory", "64MiB", "--sync", sync]);
        std::thread::sleep(Duration::from_micros(below_magnitude(rng, 50_000)));
        server.kill();
    }
    count
}

/// A number below `bound`, on a logarithmic scale.
fn below_magnitude(rng: &mut Rng, bound: u64) -> u64 {
    let magnitude = rng.below(6);
    rng.below(bound >> magnitude)
}

/// Log files: more than one after an interrupted flush.
fn logs(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "wal")).count()
}

/// The number of tables of each level.
fn tables(server: &TestServer) -> Vec<u64> {
    let response = server.exchange(b"GET /v0/stats HTTP/1.0\r\n\r\n");
    let text = String::from_utf8(response).expect("JSON is UTF-8");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let stats: Value = serde_json::from_str(body).expect("JSON");
    let levels = stats["engine"]["levels"].as_array().expect("levels");
    levels.iter().map(|level| level["table_count"].as_u64().expect("a count")).collect()
}
