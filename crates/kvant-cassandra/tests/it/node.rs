//! The node, and keyspaces of its own for each test.

use kvant_base::{Error, Level, Log, Result};
use kvant_cassandra::{Cluster, Options};
use kvant_env::Env;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Cassandra's first user.
pub(crate) const USER: &str = "cassandra";

fn address() -> String {
    std::env::var("KVANT_TEST_CLUSTER").expect("`cargo xtask cluster-check` names a node")
}

/// Settings with a keyspace that does not exist.
pub(crate) fn options() -> Options {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Options {
        nodes: vec![address()],
        must_exist: false,
        keyspace: format!("test_{}_{number}", std::process::id()),
        datacenter: None,
        credentials: Some((USER.to_string(), USER.to_string())),
        tls_ca: None,
        replica_count: Some(1),
        bucket_count: Some(16),
        ack_count: None,
        timeout: Duration::from_secs(10),
        connection_count: 1,
        has_second_reads: false,
        limits_adapt: true,
    }
}

pub(crate) struct NoLog;

impl Log for NoLog {
    fn event(&self, _level: Level, _name: &'static str, _fields: &[(&str, &dyn Display)]) {}
}

pub(crate) fn open(options: &Options) -> Result<Cluster> {
    let log: Arc<dyn Log> = Arc::new(NoLog);
    Cluster::open(options, Env::posix().clock, &log, &|error: &Error| panic!("away: {error}"))
}

/// The error of a start that does not succeed.
pub(crate) fn refusal(options: &Options) -> Error {
    open(options).map(|_| ()).expect_err("must be refused")
}

/// Waits for a future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

async fn other_session() -> Session {
    let session = SessionBuilder::new().known_node(address()).user(USER, USER).build().await;
    session.expect("the node is up")
}

/// Runs CQL as another program would.
pub(crate) fn cql(statements: &[String]) {
    wait(async {
        let session = other_session().await;
        for statement in statements {
            session.query_unpaged(statement.as_str(), ()).await.expect("valid CQL");
        }
    });
}

/// The requests that the node has had by each of its connections, by the client's port.
pub(crate) async fn requests_by_port() -> HashMap<i32, u64> {
    let select = "SELECT port, request_count FROM system_views.clients";
    let rows = other_session().await.query_unpaged(select, ()).await.expect("valid CQL");
    let rows = rows.into_rows_result().expect("rows");
    let rows = rows.rows::<(i32, i64)>().expect("of two numbers");
    let rows = rows.map(|row| row.expect("two numbers"));
    rows.map(|(port, count)| (port, count.unsigned_abs())).collect()
}
