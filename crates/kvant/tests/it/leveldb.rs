//! `--engine leveldb` as a process: restarts, kills, owners, directories of the other engine, a
//! full disk, and `kvant db copy`.

use crate::connection::Connection;
use crate::copy::put;
use crate::db::{db, db_done};
use crate::kvant_command::{TempDir, kvant, run};
use crate::server_process::{Ended, TestServer, serve_to_end};
use crate::small_disk::{SmallDisk, exchange, health, key, put_when_healed, request};
use crate::system_limits::set_limit;
use kvant_env::Env;
use kvant_leveldb::{Loader, Options, SyncLevel};
use rustix::process::Resource;
use std::path::Path;

const LEVELDB: [&str; 4] = ["--engine", "leveldb", "--memory", "64MiB"];

fn start(data: &Path, more: &[&str]) -> (TestServer, Connection) {
    let server = TestServer::start_with(data, &[&LEVELDB[..], more].concat());
    let connection = Connection::open(server.addr()).expect("the server listens");
    (server, connection)
}

fn status(connection: &mut Connection, method: &str, key: &str, value: &[u8]) -> u16 {
    exchange(connection, &request(method, key, value)).status
}

fn get(connection: &mut Connection, key: &str) -> Option<Vec<u8>> {
    let response = exchange(connection, &request("GET", key, b""));
    (response.status == 200).then_some(response.body)
}

/// The line of a start that has to fail.
fn refusal(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended.line("open_failed").to_string()
}

#[test]
fn leveldb_keeps_records_over_stops_and_kills() {
    let dir = TempDir::new();
    let data = dir.path().join("data");
    let mut count = 0;
    for sync in ["os", "interval=10ms", "always"] {
        for is_killed in [true, false] {
            let (server, mut connection) = start(&data, &["--sync", sync]);
            for number in 0..count {
                assert_eq!(get(&mut connection, &key(number)), Some(vec![b'v'; 1_000]), "{sync}");
            }
            for number in count..count + 200 {
                assert_eq!(status(&mut connection, "PUT", &key(number), &[b'v'; 1_000]), 201);
            }
            count += 200;
            if is_killed {
                server.kill();
            } else {
                assert_eq!(server.stop().code, Some(0));
            }
        }
    }
    let (server, mut connection) = start(&data, &[]);
    assert_eq!(connection.all_records().expect("a range").len(), 1_200);
    let stats = exchange(&mut connection, b"GET /v0/stats HTTP/1.1\r\nHost: x\r\n\r\n");
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).expect("JSON");
    assert!(stats["engine"]["version"].is_string(), "{stats}");
    assert!(stats["engine"]["text"].as_str().is_some_and(|text| text.contains("Compactions")));
    assert!(stats["engine"]["approximate_memory_bytes"].as_u64().is_some(), "{stats}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_second_process_on_a_leveldb_is_refused_with_the_owner() {
    let dir = TempDir::new();
    let (server, mut connection) = start(dir.path(), &[]);
    let line = refusal(&serve_to_end(dir.path(), &LEVELDB));
    assert!(line.contains(&format!("process {}", server.pid())), "{line}");
    assert_eq!(status(&mut connection, "PUT", "a", b"b"), 201);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn each_engine_refuses_the_directory_of_the_other() {
    let dir = TempDir::new();
    let (ours, leveldb) = (dir.path().join("lsm"), dir.path().join("leveldb"));
    let server = TestServer::start(&ours);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(status(&mut connection, "PUT", "a", b"lsm"), 201);
    assert_eq!(server.stop().code, Some(0));
    let (server, mut connection) = start(&leveldb, &[]);
    assert_eq!(status(&mut connection, "PUT", "a", b"leveldb"), 201);
    assert_eq!(server.stop().code, Some(0));
    let checkpoint = dir.path().join("checkpoint");
    let made = run(kvant().args(["db", "checkpoint"]).arg(&ours).arg(&checkpoint));
    assert_eq!(made.code, Some(0), "{made:?}");

    for more in [&[][..], &["--recover-anyway"]] {
        for lsm in [&ours, &checkpoint] {
            let line = refusal(&serve_to_end(lsm, &[&LEVELDB[..], more].concat()));
            assert!(line.contains("belongs to the engine `lsm`"), "{line}");
        }
        let line = refusal(&serve_to_end(&leveldb, more));
        assert!(line.contains("belongs to LevelDB"), "{line}");
    }
    for command in ["verify", "repair", "dump", "stats", "compact"] {
        let refused = db(&[command], &leveldb);
        assert_eq!(refused.code, Some(1), "{command}: {refused:?}");
        assert!(refused.stderr.contains("belongs to LevelDB"), "{command}: {refused:?}");
    }
    for lsm in [&ours, &checkpoint] {
        assert_eq!(db_done(&["dump"], lsm), "a = lsm\n");
    }
    assert_eq!(get(&mut start(&leveldb, &[]).1, "a"), Some(b"leveldb".to_vec()));
}

#[test]
fn a_damaged_leveldb_is_refused_and_repaired_on_request() {
    let dir = TempDir::new();
    let (server, mut connection) = start(dir.path(), &[]);
    assert_eq!(status(&mut connection, "PUT", "a", b"b"), 201);
    assert_eq!(server.stop().code, Some(0));
    std::fs::remove_file(dir.path().join("CURRENT")).expect("every LevelDB has the file");
    let line = refusal(&serve_to_end(dir.path(), &LEVELDB));
    assert!(line.contains("CURRENT is missing") && line.contains("--recover-anyway"), "{line}");
    let (server, mut connection) = start(dir.path(), &["--recover-anyway"]);
    assert_eq!(get(&mut connection, "a"), Some(b"b".to_vec()));
    let ended = server.stop();
    ended.line("recovering_anyway");
    ended.line("repaired");
}

#[test]
fn a_damaged_leveldb_is_not_repaired_while_a_process_has_it_open() {
    let dir = TempDir::new();
    let (server, mut connection) = start(dir.path(), &[]);
    assert_eq!(status(&mut connection, "PUT", "a", b"before"), 201);
    std::fs::remove_file(dir.path().join("CURRENT")).expect("every LevelDB has the file");
    let anyway = [&LEVELDB[..], &["--recover-anyway"]].concat();
    let line = refusal(&serve_to_end(dir.path(), &anyway));
    assert!(line.contains(&format!("process {}", server.pid())), "{line}");
    assert_eq!(status(&mut connection, "PUT", "b", b"after"), 201);
    assert_eq!(server.stop().code, Some(0));
    let (server, mut connection) = start(dir.path(), &["--recover-anyway"]);
    assert_eq!(get(&mut connection, "a"), Some(b"before".to_vec()));
    assert_eq!(get(&mut connection, "b"), Some(b"after".to_vec()));
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_checkpoint_of_leveldb_leaves_room_for_puts() {
    let Some(disk) = SmallDisk::mount(300) else { return };
    let (server, mut connection) = start(&disk.data(), &[]);
    // Not compressible. Twice as much does not fit beside the 216 MiB that a copy leaves.
    let value: Vec<u8> = kvant_env::rng::Rng::new(1).bytes(1 << 20);
    for number in 0..60 {
        assert_eq!(status(&mut connection, "PUT", &key(number), &value), 201);
    }
    let checkpoint = b"POST /v0/admin/checkpoint?dir=copy HTTP/1.1\r\nHost: x\r\n\r\n";
    let refused = exchange(&mut connection, checkpoint);
    assert_eq!(refused.status, 507, "{}", String::from_utf8_lossy(&refused.body));
    let checkpoints = disk.data().with_file_name("checkpoints");
    for name in ["copy", "copy.unfinished"] {
        assert!(!checkpoints.join(name).exists(), "{name}");
    }
    assert_eq!(status(&mut connection, "PUT", "more", &value), 201);
    assert_eq!(health(&mut connection), "ok");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_full_disk_refuses_puts_on_leveldb_until_there_is_space() {
    let Some(disk) = SmallDisk::mount(180) else { return };
    let (server, mut connection) = start(&disk.data(), &[]);
    let mut count = 0;
    // Not compressible.
    let value: Vec<u8> = kvant_env::rng::Rng::new(1).bytes(1 << 20);
    while status(&mut connection, "PUT", &key(count), &value) == 201 {
        count += 1;
        assert!(count < 180, "the disk does not fill up");
    }
    assert!(count > 20, "{count} MiB fit");
    let refused = exchange(&mut connection, &request("PUT", "more", b"v"));
    assert_eq!(refused.status, 507);
    assert_eq!(health(&mut connection), "no-space");
    assert_eq!(get(&mut connection, &key(0)).as_deref(), Some(&value[..]));
    for number in 0..count {
        assert_eq!(status(&mut connection, "DELETE", &key(number), b""), 202);
    }
    let compact = b"POST /v0/admin/compact HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(exchange(&mut connection, compact).status, 200);
    put_when_healed(&mut connection);
    assert_eq!(health(&mut connection), "ok");
    assert_eq!(server.stop().code, Some(0));
}

/// The value of `member` in the JSON of a response.
fn member(body: &[u8], member: &str) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    body[member].as_str().unwrap_or_default().to_string()
}

#[test]
fn a_write_that_fails_fences_leveldb_until_a_restart() {
    for (sync, first_type) in [("os", "fenced"), ("always", "outcome-unknown")] {
        let dir = TempDir::new();
        let (server, mut connection) = start(dir.path(), &["--sync", sync]);
        assert_eq!(status(&mut connection, "PUT", "first", b"v"), 201);
        let before = set_limit(&server, Resource::Fsize, Some(1 << 20));
        let value = vec![b'v'; 256 << 10];
        let mut taken = 0;
        let failed = loop {
            let response = exchange(&mut connection, &request("PUT", &key(taken), &value));
            if response.status != 201 {
                break response;
            }
            taken += 1;
            assert!(taken < 8, "2 MiB do not fit into a log of 1 MiB");
        };
        assert_eq!((failed.status, member(&failed.body, "type").as_str()), (500, first_type));
        set_limit(&server, Resource::Fsize, before);
        for method in ["PUT", "DELETE"] {
            let refused = exchange(&mut connection, &request(method, "first", b"new"));
            assert_eq!((refused.status, member(&refused.body, "type").as_str()), (500, "fenced"));
            let detail = member(&refused.body, "detail");
            assert!(detail.contains("File too large"), "{detail}");
        }
        assert_eq!(get(&mut connection, "first"), Some(b"v".to_vec()));
        let health = exchange(&mut connection, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!((health.status, member(&health.body, "writes").as_str()), (503, "fenced"));
        server.stop().line("writes_fenced");

        let (server, mut connection) = start(dir.path(), &["--sync", sync]);
        for number in 0..taken {
            assert!(get(&mut connection, &key(number)).as_ref() == Some(&value), "{number}");
        }
        assert_eq!(get(&mut connection, &key(taken)), None);
        assert_eq!(status(&mut connection, "PUT", "first", b"new"), 201);
        assert_eq!(server.stop().code, Some(0));
    }
}

fn copy(args: &[&str], from: &Path, to: &Path) -> crate::kvant_command::Finished {
    run(kvant().args(["db", "copy", "--memory", "128MiB"]).args(args).arg(from).arg(to))
}

#[test]
fn records_are_copied_between_engines_and_back() {
    let dir = TempDir::new();
    let paths = ["first", "second", "third"].map(|name| dir.path().join(name));
    let server = TestServer::start(&paths[0]);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    for number in 0..3_000 {
        let value = number.to_string().repeat(usize::try_from(number % 300).expect("small"));
        assert_eq!(status(&mut connection, "PUT", &key(number), value.as_bytes()), 201);
    }
    assert_eq!(status(&mut connection, "PUT", "%00%ff", b"\0\xff"), 201);
    let records = connection.all_records().expect("a range");
    let busy = copy(&[], &paths[0], &paths[1]);
    assert_eq!(busy.code, Some(1), "{busy:?}");
    assert!(busy.stderr.contains(&format!("process {}", server.pid())), "{busy:?}");
    assert_eq!(server.stop().code, Some(0));

    for pair in paths.windows(2) {
        let copied = copy(&[], &pair[0], &pair[1]);
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert!(copied.stdout.contains(": 3001 records, "), "{copied:?}");
        assert!(copied.stdout.contains(": equal in "), "{copied:?}");
    }
    let (server, mut connection) = start(&paths[1], &[]);
    assert!(connection.all_records().expect("a range") == records);
    assert_eq!(server.stop().code, Some(0));
    assert_eq!(db_done(&["dump"], &paths[0]), db_done(&["dump"], &paths[2]));
    let taken = copy(&[], &paths[0], &paths[1]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.stderr.contains("is not empty"), "{taken:?}");
    let nothing = copy(&[], &dir.path().join("none"), &dir.path().join("fourth"));
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(!dir.path().join("fourth").exists());
    assert!(!dir.path().join("fourth.unfinished").exists());
}

#[test]
fn a_record_that_expires_is_copied_to_leveldb_on_request_only() {
    let dir = TempDir::new();
    let (from, to) = (dir.path().join("lsm"), dir.path().join("leveldb"));
    let server = TestServer::start(&from);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(status(&mut connection, "PUT", "a", b"stays"), 201);
    assert_eq!(status(&mut connection, "PUT", "b&ttl=100000", b"expires"), 201);
    assert_eq!(server.stop().code, Some(0));
    let refused = copy(&[], &from, &to);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`b` has a time to live"), "{refused:?}");
    assert!(!to.exists());
    let copied = copy(&["--forget-ttl"], &from, &to);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let (server, mut connection) = start(&to, &[]);
    assert_eq!(get(&mut connection, "b"), Some(b"expires".to_vec()));
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_record_with_the_empty_key_is_copied_to_leveldb_and_to_no_other_engine() {
    let dir = TempDir::new();
    let [from, leveldb, lsm] = ["from", "leveldb", "lsm"].map(|name| dir.path().join(name));
    let options = Options { sync: SyncLevel::Os, memory_bytes: 64 << 20, compresses: true };
    let mut loader = Loader::create(&Env::posix(), &from, &options).expect("created");
    for key in [&b""[..], b"a"] {
        loader.put(key, b"value").expect("written");
    }
    loader.finish().expect("written");
    let copied = copy(&["--to-engine", "leveldb"], &from, &leveldb);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert!(copied.stdout.contains(": 2 records, "), "{copied:?}");
    let refused = copy(&[], &from, &lsm);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("a key must have 1 to "), "{refused:?}");
    assert!(!lsm.exists());
}

#[test]
fn a_copy_that_goes_on_after_its_source_has_changed_says_how_to_begin_again() {
    let dir = TempDir::new();
    let [from, to, unfinished] = ["from", "to", "to.unfinished"].map(|name| dir.path().join(name));
    let server = TestServer::start(&from);
    put(&server, 0..2_000);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    // The last key: the first batches are copied before it ends the copy.
    assert_eq!(status(&mut connection, "PUT", "z&ttl=100000", b"expires"), 201);
    assert_eq!(server.stop().code, Some(0));
    let refused = copy(&[], &from, &to);
    assert!(refused.stderr.contains("`z` has a time to live"), "{refused:?}");

    let server = TestServer::start(&from);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(status(&mut connection, "PUT", &key(0), b"changed"), 201);
    assert_eq!(status(&mut connection, "DELETE", "z", b""), 202);
    assert_eq!(server.stop().code, Some(0));
    let differing = copy(&[], &from, &to);
    assert_eq!(differing.code, Some(1), "{differing:?}");
    assert!(differing.stderr.contains("the copy goes on after `"), "{differing:?}");
    let advice = format!("remove {} and copy again", unfinished.display());
    assert!(differing.stderr.contains(&advice), "{differing:?}");
    assert!(!differing.stderr.contains("kvant db repair"), "{differing:?}");
    std::fs::remove_dir_all(&unfinished).expect("it is there");
    let copied = copy(&[], &from, &to);
    assert_eq!(copied.code, Some(0), "{copied:?}");
}
