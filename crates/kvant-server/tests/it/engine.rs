//! The server on the real engine: behaviour that depends on both, and on the disk.

use crate::client::Client;
use crate::fixture::{Events, config};
use kvant_base::{MemoryBudget, Result};
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::Env;
use kvant_env::testing::{FaultOp, FaultyFs};
use kvant_server::{Backend, LsmStore, Server, ServerConfig};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const MEMORY_BYTES: u64 = 64 << 20;

pub(crate) struct Kvant {
    pub(crate) server: Server,
    db: Db,
    pub(crate) disk: FaultyFs,
    pub(crate) events: Arc<Events>,
}

impl Kvant {
    fn start(sync: SyncLevel) -> Kvant {
        Kvant::open(FaultyFs::new(1), sync)
    }

    fn open(disk: FaultyFs, sync: SyncLevel) -> Kvant {
        Kvant::with(disk, sync, config())
    }

    pub(crate) fn with(disk: FaultyFs, sync: SyncLevel, config: ServerConfig) -> Kvant {
        let env = Env { fs: Arc::new(disk.clone()), ..Env::posix() };
        let memory = MemoryBudget::new(MEMORY_BYTES);
        let events = Arc::new(Events::default());
        let recent = kvant_base::Events::new(64);
        let server =
            Server::start(config, env.clone(), memory.clone(), events.clone(), recent.clone())
                .unwrap();
        let options = Options { sync, ..Options::for_memory(MEMORY_BYTES) };
        let resources =
            Resources { memory, log: events.clone(), events: recent, progress: Arc::default() };
        let db = Db::open(env, Path::new("/data"), options, resources).unwrap();
        server.set_ready(Backend::Local(Arc::new(LsmStore::new(db.clone()))));
        Kvant { server, db, disk, events }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.server.local_addr())
    }

    pub(crate) fn stop(self) -> Result<()> {
        self.server.stop(crate::fixture::NEVER)
    }
}

#[test]
fn every_row_on_the_real_engine_and_again_after_a_restart() {
    for sync in [SyncLevel::Os, SyncLevel::Always] {
        let kvant = Kvant::start(sync);
        let mut client = kvant.client();
        for i in 0..500 {
            let target = format!("/v0/entity?id=k{i:03}");
            assert_eq!(client.request("PUT", &target, format!("v{i}").as_bytes()).status, 201);
        }
        assert_eq!(client.request("DELETE", "/v0/entity?id=k001", b"").status, 202);
        let big = vec![b'b'; 1 << 20];
        assert_eq!(client.request("PUT", "/v0/entity?id=z&ttl=1000", &big).status, 201);
        assert_eq!(client.request("POST", "/v0/admin/flush", b"").status, 200);
        assert_eq!(client.request("PUT", "/v0/entity?id=k002", b"newer").status, 201);
        let check = |client: &mut Client| {
            assert_eq!(client.request("GET", "/v0/entity?id=k000", b"").body, b"v0");
            assert_eq!(client.request("GET", "/v0/entity?id=k001", b"").status, 404);
            assert_eq!(client.request("GET", "/v0/entity?id=k002", b"").body, b"newer");
            assert!(client.request("GET", "/v0/entity?id=z", b"").body == big);
            let range = client.request("GET", "/v0/entities?start=k&end=l", b"");
            assert!(range.complete);
            assert_eq!(range.chunks.len(), 499);
            assert_eq!(range.chunks[..2], [b"k000\nv0".to_vec(), b"k002\nnewer".to_vec()]);
        };
        check(&mut client);
        assert_eq!(client.request("POST", "/v0/admin/compact", b"").status, 200);
        assert_eq!(client.request("POST", "/v0/admin/checkpoint?dir=copy", b"").status, 200);
        client.request("POST", "/v0/admin/checkpoint?dir=copy", b"").assert_problem(400, "invalid");
        check(&mut client);
        let disk = kvant.disk.clone();
        kvant.stop().unwrap();
        let kvant = Kvant::open(disk, sync);
        check(&mut kvant.client());
        kvant.stop().unwrap();
    }
}

/// Short values are copied into the response, longer ones into memory of their own, long ones not
/// at all.
#[test]
fn values_of_every_length_are_read_from_memtables_and_tables() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    let value_of = |bytes: usize| (0..bytes).map(|i| (i % 251) as u8).collect::<Vec<u8>>();
    const LENGTHS: [usize; 8] = [0, 1, 300, 8_191, 8_192, 8_193, 65_536, 65_537];
    for bytes in LENGTHS {
        let target = format!("/v0/entity?id={bytes}");
        assert_eq!(client.request("PUT", &target, &value_of(bytes)).status, 201);
    }
    for round in ["memtable", "table", "block cache"] {
        for bytes in LENGTHS {
            let response = client.request("GET", &format!("/v0/entity?id={bytes}"), b"");
            assert!(response.body == value_of(bytes), "{bytes} bytes from the {round}");
        }
        if round == "memtable" {
            assert_eq!(client.request("POST", "/v0/admin/flush", b"").status, 200);
        }
    }
    kvant.stop().unwrap();
}

#[test]
fn stats_and_metrics_show_the_engine() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    assert_eq!(client.request("POST", "/v0/admin/flush", b"").status, 200);
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 200);
    let engine = &client.request("GET", "/v0/stats", b"").json()["engine"];
    for part in
        ["levels", "memtables", "block_cache", "stalls", "space", "snapshots", "memory", "recovery"]
    {
        assert!(!engine[part].is_null(), "{part} is missing in {engine}");
    }
    assert_eq!(engine["writes"]["operation_count"], 1);
    let mut metrics = || String::from_utf8(client.request("GET", "/metrics", b"").body).unwrap();
    // The response comes when the table can be read; the job ends when old files are removed.
    let mut text = metrics();
    for _ in 0..1_000 {
        if text.contains("kvant_engine_jobs_total{job=\"flush\"} 1\n") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        text = metrics();
    }
    for line in [
        "kvant_engine_writes_total 1",
        "kvant_engine_gets_present_total 1",
        "kvant_engine_jobs_total{job=\"flush\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a metric is declared twice");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(
            line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()),
            "{line}"
        );
    }
    kvant.stop().unwrap();
}

#[test]
fn a_failed_fsync_leaves_the_outcome_unknown_and_fences_writes() {
    let kvant = Kvant::start(SyncLevel::Always);
    let mut client = kvant.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    // Only of the log: a background task may sync the manifest at any time.
    kvant.disk.fail_next(FaultOp::SyncData, ".wal", ErrorKind::Other, u64::MAX);
    client.request("PUT", "/v0/entity?id=k2", b"v").assert_problem(500, "outcome-unknown");
    client.request("PUT", "/v0/entity?id=k3", b"v").assert_problem(500, "fenced");
    client.request("DELETE", "/v0/entity?id=k", b"").assert_problem(500, "fenced");
    let health = client.request("GET", "/health", b"");
    health.assert_problem(503, "fenced");
    assert_eq!(health.json()["writes"], "fenced");
    // The same cause in health, in problems and in the log.
    let again = client.request("PUT", "/v0/entity?id=k4", b"v");
    for named in [&health.json()["cause"], &health.json()["detail"], &again.json()["detail"]] {
        assert!(named.as_str().is_some_and(|cause| cause.contains("fsync")), "{named}");
    }
    assert!(kvant.events.has("writes_fenced cause=cannot fsync"));
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"v");
    assert!(client.request("GET", "/v0/stats", b"").json()["engine"]["fenced"].is_string());
    drop(kvant);
}

#[test]
fn a_write_whose_log_record_cannot_be_undone_is_unknown_and_health_says_why() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    for op in [FaultOp::Write, FaultOp::SetLen] {
        kvant.disk.fail_next(op, ".wal", ErrorKind::Other, 1);
    }
    client.request("PUT", "/v0/entity?id=k2", b"v").assert_problem(500, "outcome-unknown");
    client.request("PUT", "/v0/entity?id=k3", b"v").assert_problem(500, "fenced");
    let health = client.request("GET", "/health", b"");
    health.assert_problem(503, "fenced");
    let cause = health.json()["cause"].to_string();
    assert!(cause.contains("truncate"), "{cause}");
    drop(kvant);
}

#[test]
fn health_says_503_while_writes_fail_and_200_when_one_has_succeeded() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    kvant.disk.fail_next(FaultOp::Write, ".wal", ErrorKind::Other, 3);
    for _ in 0..3 {
        client.request("PUT", "/v0/entity?id=k", b"v").assert_problem(500, "io");
        let health = client.request("GET", "/health", b"");
        health.assert_problem(503, "writes-failing");
        assert_eq!(health.json()["writes"], "failing");
        let cause = health.json()["cause"].to_string();
        assert!(cause.contains("cannot append to") && cause.contains(".wal"), "{cause}");
    }
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    assert_eq!(client.request("GET", "/health", b"").status, 200);
    kvant.stop().unwrap();
}

#[test]
fn a_full_disk_is_507_until_there_is_space_again() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    assert_eq!(client.request("PUT", "/v0/entity?id=old", b"v").status, 201);
    kvant.disk.set_capacity_bytes(Some(kvant.disk.used_bytes()));
    let value = vec![b'v'; 4 << 20];
    let mut refusals = 0;
    for i in 0..20 {
        let response = client.request("PUT", &format!("/v0/entity?id=k{i}"), &value);
        if response.status != 201 {
            response.assert_problem(507, "no-space");
            refusals += 1;
        }
    }
    assert!(refusals > 0, "the disk never filled up");
    let health = client.request("GET", "/health", b"");
    assert_eq!((health.status, &health.json()["writes"]), (200, &"no-space".into()));
    assert_eq!(client.request("GET", "/v0/entity?id=old", b"").body, b"v", "reads go on");
    assert_eq!(client.request("DELETE", "/v0/entity?id=old", b"").status, 202, "deletes go on");
    assert_eq!(client.request("GET", "/v0/entity?id=old", b"").status, 404);
    kvant.disk.set_capacity_bytes(None);
    // The engine checks for space at its own interval.
    while client.request("PUT", "/v0/entity?id=healed", &value).status != 201 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kvant.stop().unwrap();
}

#[test]
fn a_damaged_block_is_500_and_other_keys_stay_readable() {
    let kvant = Kvant::start(SyncLevel::Os);
    let mut client = kvant.client();
    for i in 0..2000 {
        let target = format!("/v0/entity?id=k{i:04}");
        assert_eq!(
            client
                .request("PUT", &target, format!("value {i} {}", "x".repeat(100)).as_bytes())
                .status,
            201
        );
    }
    kvant.db.flush().unwrap();
    let files = kvant.disk.files();
    let is_table = |path: &Path| path.extension().is_some_and(|extension| extension == "sst");
    let (table, _) = files.iter().find(|(path, _)| is_table(path)).unwrap();
    kvant.disk.flip_byte(table, 100, 0x40).unwrap();
    let statuses: Vec<u16> = (0..2000)
        .map(|i| client.request("GET", &format!("/v0/entity?id=k{i:04}"), b"").status)
        .collect();
    let damaged =
        statuses.iter().position(|status| *status == 500).expect("the damage was not found");
    client
        .request("GET", &format!("/v0/entity?id=k{damaged:04}"), b"")
        .assert_problem(500, "corruption");
    let readable = statuses.iter().filter(|status| **status == 200).count();
    assert!(readable > 1500, "{readable} keys of 2000 are readable");
    assert!(kvant.events.has("request_failed"));
    kvant.stop().unwrap();
}
