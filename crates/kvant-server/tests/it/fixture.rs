//! A server with a store, started for one test.

use crate::client::{Client, Response};
use crate::modes;
use crate::store::FaultyStore;
use kvant_base::{Level, Log, MemoryBudget};
use kvant_env::testing::MockClock;
use kvant_env::{Clock, Env};
use kvant_server::{Backend, Server, ServerConfig};
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The wall clock of every test starts here.
pub(crate) const WALL_MS: u64 = 1_800_000_000_000;

/// Longer than any test may wait.
pub(crate) const NEVER: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<String>>);

impl Log for Events {
    fn event(&self, level: Level, name: &'static str, fields: &[(&str, &dyn Display)]) {
        let fields: String =
            fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        self.0.lock().unwrap().push(format!("{level} {name}{fields}"));
    }
}

impl Events {
    pub(crate) fn has(&self, part: &str) -> bool {
        self.0.lock().unwrap().iter().any(|event| event.contains(part))
    }
}

pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) clock: Arc<MockClock>,
    pub(crate) events: Arc<Events>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// The events of `/v0/events`.
    pub(crate) recent: Arc<kvant_base::Events>,
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        // The host that the clients of these tests send.
        allowed_hosts: vec!["x".into()],
        selectors: 2,
        dispatch: modes::dispatch(),
        overload: modes::overload(),
        queue_wait_max: NEVER,
        range_idle_max: NEVER,
        connection_idle_max: NEVER,
        head_wait_max: NEVER,
        connections_max: Some(1000),
        // Its task sleeps by the clock of the system, which is not that of a fixture.
        history: Duration::ZERO,
        ..ServerConfig::default()
    }
}

impl Fixture {
    /// A server with its store.
    pub(crate) fn new() -> Fixture {
        Fixture::with(config())
    }

    pub(crate) fn with(config: ServerConfig) -> Fixture {
        let fixture = Fixture::recovering(config);
        fixture.server.set_ready(Backend::Local(fixture.store.clone()));
        fixture
    }

    /// A server with an existing store.
    pub(crate) fn with_store(config: ServerConfig, store: Arc<FaultyStore>) -> Fixture {
        let fixture = Fixture { store, ..Fixture::recovering(config) };
        fixture.server.set_ready(Backend::Local(fixture.store.clone()));
        fixture
    }

    /// A server that waits for its store.
    pub(crate) fn recovering(config: ServerConfig) -> Fixture {
        let clock = Arc::new(MockClock::new(WALL_MS));
        let env = Env { clock: clock.clone(), ..Env::posix() };
        let events = Arc::new(Events::default());
        let memory = MemoryBudget::new(256 << 20);
        let recent = kvant_base::Events::new(64);
        let server =
            Server::start(config, env, memory.clone(), events.clone(), recent.clone()).unwrap();
        let store = FaultyStore::new(clock.clone() as Arc<dyn Clock>);
        Fixture { server, store, clock, events, memory, recent }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// One request on a connection of its own.
    pub(crate) fn request(&self, method: &str, target: &str, body: &[u8]) -> Response {
        self.client().request(method, target, body)
    }

    /// Has `send` send `bytes` in all, and waits until the server has received them. Nothing else
    /// may be on its way.
    pub(crate) fn wait_for_receipt(&self, bytes: u64, send: impl FnOnce()) {
        let received_bytes = || {
            let stats = self.request("GET", "/v0/stats", b"").json();
            stats["server"]["received_bytes"].as_u64().unwrap()
        };
        // Each request for the statistics adds to them.
        let request_bytes = "GET /v0/stats HTTP/1.1\r\nHost: x\r\n\r\n".len() as u64;
        let mut wanted = received_bytes() + request_bytes + bytes;
        let start = Instant::now();
        send();
        loop {
            let received = received_bytes();
            if received >= wanted {
                return;
            }
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(60), "{received} of {wanted} bytes received");
            wanted += request_bytes;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn put(&self, key: &str, value: &[u8]) {
        let response = self.request("PUT", &format!("/v0/entity?id={key}"), value);
        assert_eq!(response.status, 201, "{response:?}");
    }
}
