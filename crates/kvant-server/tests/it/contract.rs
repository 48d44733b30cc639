//! The contract of storage engines, on each engine of the product. Requests for missing
//! capabilities are rejected with an explanation.

use crate::client::Client;
use crate::engine::Kvant;
use crate::fixture::{self, Events};
use kvant_base::MemoryBudget;
use kvant_engine::SyncLevel;
use kvant_env::Env;
use kvant_env::testing::FaultyFs;
use kvant_server::{Backend, Capability, MemoryStore, Server, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MEMORY_BYTES: u64 = 64 << 20;

/// A directory of the real file system, which LevelDB needs.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvant-contract-{}-{number}", std::process::id());
        TempDir(std::env::temp_dir().join(name))
    }
}

impl Drop for TempDir {
    /// Stays after a failed test.
    fn drop(&mut self) {
        if !std::thread::panicking() && self.0.exists() {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

/// A server, and the capabilities of its engine.
struct Engine {
    name: &'static str,
    server: Server,
    capabilities: &'static [Capability],
    events: Arc<Events>,
    /// Removed after the server has ended.
    _dir: TempDir,
}

impl Engine {
    fn client(&self) -> Client {
        Client::connect(self.server.local_addr())
    }

    fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

fn memory() -> Engine {
    let memory = MemoryBudget::new(MEMORY_BYTES);
    let events = Arc::new(Events::default());
    let recent = kvant_base::Events::new(64);
    let server =
        Server::start(fixture::config(), Env::posix(), memory.clone(), events.clone(), recent)
            .unwrap();
    server.set_ready(Backend::Local(Arc::new(MemoryStore::new(memory))));
    let capabilities = &[Capability::Range];
    Engine { name: "memory", server, capabilities, events, _dir: TempDir::new() }
}

#[cfg(feature = "leveldb")]
fn leveldb() -> Engine {
    use kvant_leveldb::{LevelDb, Options, Resources, SyncLevel};

    let (dir, memory) = (TempDir::new(), MemoryBudget::new(MEMORY_BYTES));
    let events = Arc::new(Events::default());
    let recent = kvant_base::Events::new(64);
    let config =
        kvant_server::ServerConfig { checkpoints: dir.0.join("checkpoints"), ..fixture::config() };
    let server =
        Server::start(config, Env::posix(), memory.clone(), events.clone(), recent).unwrap();
    let options = Options { sync: SyncLevel::Always, memory_bytes: MEMORY_BYTES, compresses: true };
    let resources = Resources { memory, log: events.clone() };
    let env = Env::posix();
    let clock = Arc::clone(&env.clock);
    let db = LevelDb::open(env, &dir.0.join("data"), options, resources).unwrap();
    server.set_ready(Backend::Local(Arc::new(kvant_server::LevelDbStore::new(db, clock))));
    let capabilities = &[
        Capability::Persistence,
        Capability::Range,
        Capability::Snapshots,
        Capability::Checkpoint,
        Capability::Compaction,
    ];
    Engine { name: "leveldb", server, capabilities, events, _dir: dir }
}

/// The nodes that `cargo xtask cluster-check` has started.
#[cfg(feature = "cassandra")]
fn cluster_nodes() -> Option<Vec<String>> {
    let nodes = std::env::var("KVANT_TEST_CLUSTER").ok()?;
    Some(nodes.split(',').map(str::to_string).collect())
}

#[cfg(feature = "cassandra")]
fn cassandra() -> Engine {
    use kvant_cassandra::{Cluster, Options};
    use std::time::Duration;

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let (env, memory) = (Env::posix(), MemoryBudget::new(MEMORY_BYTES));
    let events = Arc::new(Events::default());
    let recent = kvant_base::Events::new(64);
    let server =
        Server::start(fixture::config(), env.clone(), memory, events.clone(), recent).unwrap();
    let options = Options {
        nodes: cluster_nodes().unwrap(),
        must_exist: false,
        keyspace: format!("contract_{}_{number}", std::process::id()),
        datacenter: None,
        // Of a node that wants none, too.
        credentials: Some(("cassandra".to_string(), "cassandra".to_string())),
        tls_ca: None,
        replica_count: Some(1),
        bucket_count: Some(16),
        ack_count: None,
        timeout: Duration::from_secs(10),
        connection_count: 1,
        has_second_reads: true,
        limits_adapt: true,
    };
    let log: Arc<dyn kvant_base::Log> = events.clone();
    let cluster = Cluster::open(&options, env.clock, &log, &|error| panic!("{error}")).unwrap();
    let store = kvant_server::CassandraStore::new(cluster);
    server.set_ready(Backend::Remote(Arc::new(store)));
    let capabilities = &[Capability::Persistence, Capability::Ttl, Capability::Range];
    Engine { name: "cassandra", server, capabilities, events, _dir: TempDir::new() }
}

fn lsm() -> Engine {
    let kvant = Kvant::with(FaultyFs::new(0), SyncLevel::Os, fixture::config());
    let Kvant { server, events, .. } = kvant;
    let capabilities = &Capability::ALL;
    Engine { name: "lsm", server, capabilities, events, _dir: TempDir::new() }
}

fn on_each_engine(test: impl Fn(&Engine)) {
    let engines: Vec<fn() -> Engine> = vec![
        memory,
        lsm,
        #[cfg(feature = "leveldb")]
        leveldb,
    ];
    #[cfg(feature = "cassandra")]
    let engines: Vec<fn() -> Engine> =
        engines.into_iter().chain(cluster_nodes().map(|_| cassandra as fn() -> Engine)).collect();
    for engine in engines {
        let engine = engine();
        test(&engine);
        // Before its directory is removed.
        engine.server.stop(fixture::NEVER).unwrap();
    }
}

#[test]
fn a_record_is_stored_read_replaced_and_deleted() {
    on_each_engine(|engine| {
        let mut client = engine.client();
        let path = "/v0/entity?id=key";
        client.request("GET", path, b"").assert_problem(404, "not-found");
        for value in [&b"first"[..], b"", &vec![b'v'; 100_000]] {
            assert_eq!(client.request("PUT", path, value).status, 201);
            let response = client.request("GET", path, b"");
            assert_eq!((response.status, &response.body[..]), (200, value));
            assert_eq!(client.request("HEAD", path, b"").status, 200);
        }
        for _ in 0..2 {
            assert_eq!(client.request("DELETE", path, b"").status, 202);
            client.request("GET", path, b"").assert_problem(404, "not-found");
        }
    });
}

#[test]
fn a_range_has_the_records_between_its_bounds_in_key_order() {
    on_each_engine(|engine| {
        let mut client = engine.client();
        for number in (0..300).rev() {
            let path = format!("/v0/entity?id=key-{number:03}");
            assert_eq!(client.request("PUT", &path, format!("{number}").as_bytes()).status, 201);
        }
        assert_eq!(client.request("DELETE", "/v0/entity?id=key-150", b"").status, 202);
        let mut range = |query: &str| {
            let response = client.request("GET", &format!("/v0/entities?{query}"), b"");
            assert_eq!(response.status, 200);
            response.chunks.concat()
        };
        let records = |numbers: &mut dyn Iterator<Item = u32>| {
            numbers.map(|number| format!("key-{number:03}\n{number}")).collect::<String>()
        };
        let whole = records(&mut (0..300).filter(|number| *number != 150));
        assert_eq!(range("start=k"), whole.as_bytes());
        assert_eq!(range("start=key-010&end=key-013"), records(&mut (10..13)).as_bytes());
        assert_eq!(range("start=key-149&limit=2"), records(&mut [149, 151].into_iter()).as_bytes());
        assert_eq!(range("start=key-2&end=key-1"), b"");
        assert_eq!(range("start=l"), b"");
    });
}

#[test]
fn a_range_whose_end_is_before_its_start_is_empty_in_memory() {
    let store = MemoryStore::new(MemoryBudget::new(MEMORY_BYTES));
    for (start, end) in [(&b"b"[..], &b"a"[..]), (b"a", b"a")] {
        let mut records = store.range(start, Some(end), u64::MAX).unwrap();
        assert_eq!(records.next().unwrap(), None);
    }
}

#[test]
fn writes_of_many_clients_are_all_there() {
    on_each_engine(|engine| {
        let mut clients: Vec<Client> = (0..20).map(|_| engine.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let value = format!("{number:02}");
            client.send_request("PUT", &format!("/v0/entity?id=c{number}"), value.as_bytes());
        }
        for client in &mut clients {
            assert_eq!(client.read_response("PUT").status, 201);
        }
        for number in 0..20 {
            let response = clients[0].request("GET", &format!("/v0/entity?id=c{number}"), b"");
            assert_eq!(response.body, format!("{number:02}").as_bytes());
        }
    });
}

#[test]
fn an_engine_rejects_requests_for_missing_capabilities() {
    on_each_engine(|engine| {
        let mut client = engine.client();
        let dir = "/v0/admin/checkpoint?dir=copy";
        for (method, path, capability, status) in [
            ("PUT", "/v0/entity?id=key&ttl=1000", Capability::Ttl, 201),
            ("POST", "/v0/admin/flush", Capability::Compaction, 200),
            ("POST", "/v0/admin/compact", Capability::Compaction, 200),
            ("POST", dir, Capability::Checkpoint, 200),
            ("POST", "/v0/admin/pause?for=1ms", Capability::Pause, 200),
        ] {
            let response = client.request(method, path, b"");
            if engine.has(capability) {
                assert_eq!(response.status, status, "{path}");
            } else {
                response.assert_problem(501, "not-supported");
                let detail = response.json()["detail"].as_str().unwrap().to_string();
                assert!(detail.contains(&format!("`{}`", engine.name)), "{detail}");
            }
        }
        let is_stored = client.request("GET", "/v0/entity?id=key", b"").status == 200;
        assert_eq!(is_stored, engine.has(Capability::Ttl), "a refused write writes nothing");
    });
}

#[test]
fn an_engine_without_persistence_says_so_at_start_and_in_health() {
    on_each_engine(|engine| {
        let health = engine.client().request("GET", "/health", b"").json();
        assert_eq!(health["engine"], engine.name);
        let is_persistent = engine.has(Capability::Persistence);
        assert_eq!(health["persistence"].is_null(), is_persistent, "{health}");
        assert_eq!(engine.events.has("not_persistent engine=memory"), !is_persistent);
    });
}

#[test]
fn memory_that_is_full_refuses_puts_and_takes_deletes() {
    let engine = memory();
    let mut client = engine.client();
    let value = vec![b'v'; 4 << 20];
    let stored = (0..20)
        .take_while(|number| {
            client.request("PUT", &format!("/v0/entity?id=k{number}"), &value).status == 201
        })
        .count();
    assert!((6..8).contains(&stored), "half of the budget is 8 values, less what they add");
    client.request("PUT", "/v0/entity?id=more", &value).assert_problem(507, "no-space");
    assert_eq!(client.request("GET", "/health", b"").json()["writes"], "no-space");
    assert_eq!(client.request("DELETE", "/v0/entity?id=k0", b"").status, 202);
    assert_eq!(client.request("PUT", "/v0/entity?id=more", &value).status, 201);
    assert_eq!(client.request("GET", "/health", b"").json()["writes"], "ok");
}
