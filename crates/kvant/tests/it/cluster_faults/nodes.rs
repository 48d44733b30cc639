//! The nodes of the cluster that `cargo xtask torture cluster` has started: killed, paused, cut off
//! and brought back, and asked one by one, past Kvant.

use kvant_env::rng::Rng;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::policies::host_filter::AllowListHostFilter;
use scylla::statement::Consistency;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const NODE_COUNT: u8 = 3;

/// Nothing takes so long that a test waits for.
const WAIT_MAX: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`; later it starts with its data.
    Killed,
    /// `SIGSTOP`: its connections stay, and it says nothing.
    Paused,
    /// Its cable is pulled: what it sends, and what is sent to it, disappears.
    CutOff,
}

pub(crate) struct Node {
    pub(crate) number: u8,
    pub(crate) addr: SocketAddr,
    dir: PathBuf,
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < WAIT_MAX, "this does not happen: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

impl Node {
    pub(crate) fn all() -> Vec<Node> {
        let dir = std::env::var_os("KVANT_TEST_CLUSTER_DIR");
        let dir = PathBuf::from(dir.expect("`cargo xtask torture cluster` names the directory"));
        let node = |number| {
            let dir = dir.join(format!("node-{number}"));
            let addr = std::fs::read_to_string(dir.join("address")).expect("a node has an address");
            Node { number, addr: addr.parse().expect("an address"), dir }
        };
        (1..=NODE_COUNT).map(node).collect()
    }

    pub(crate) fn strike(&self, fault: Fault) {
        match fault {
            Fault::Killed => self.signal("KILL"),
            Fault::Paused => self.signal("STOP"),
            Fault::CutOff => self.connect("nomaster"),
        }
    }

    /// Ends the fault, and waits until the node accepts clients.
    pub(crate) fn heal(&self, fault: Fault) {
        match fault {
            Fault::Killed => {
                let xtask = std::env::var_os("KVANT_XTASK").expect("xtask says where it is");
                run(Command::new(xtask).args(["cluster", "start", &self.number.to_string()]));
            }
            Fault::Paused => self.signal("CONT"),
            Fault::CutOff => self.connect("master nodes"),
        }
        let connects =
            || std::net::TcpStream::connect_timeout(&self.addr, Duration::from_secs(1)).is_ok();
        wait_until("the node accepts clients again", connects);
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = std::fs::read_to_string(self.dir.join("pid")).expect("a node has a pid");
        run(Command::new("kill").args([&format!("-{name}"), pid.trim()]));
    }

    /// Changes where the node's cable ends. The network is this test's own.
    fn connect(&self, to: &str) {
        let cable = format!("node-{}", self.number);
        run(Command::new("ip").args(["link", "set", &cable]).args(to.split(' ')));
    }

    /// Whether it keeps writes for other nodes that have missed them.
    fn has_hints(&self) -> bool {
        let files = std::fs::read_dir(self.dir.join("hints")).expect("a node has such a directory");
        let mut names = files.map(|file| file.expect("a file").file_name());
        names.any(|name| name.to_string_lossy().ends_with(".hints"))
    }

    /// A session with this node alone.
    pub(crate) async fn session(&self) -> Session {
        let filter = AllowListHostFilter::new([self.addr]).expect("an address");
        let profile = ExecutionProfile::builder().request_timeout(Some(Duration::from_secs(10)));
        let builder = SessionBuilder::new()
            .known_node_addr(self.addr)
            .host_filter(Arc::new(filter))
            .default_execution_profile_handle(profile.build().into_handle());
        builder.build().await.expect("the node accepts clients")
    }
}

/// Waits until no node has anything left that another has missed.
pub(crate) fn wait_for_hints(nodes: &[Node]) {
    // Nodes write what they keep to files within a second, and send it within ten.
    let mut empty_since = Instant::now();
    wait_until("all nodes have what they missed", || {
        if nodes.iter().any(Node::has_hints) {
            empty_since = Instant::now();
        }
        empty_since.elapsed() > Duration::from_secs(4)
    });
}

/// Reads all `keys` from the node of `alone` at `ONE`, while all others are stopped: nothing but
/// its own records can be read. `None`: it has none.
pub(crate) fn read_alone(
    nodes: &[Node],
    alone: &Node,
    keyspace: &str,
    keys: &[(i32, Vec<u8>)],
) -> Vec<Option<Vec<u8>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let session = alone.session().await;
        let select = format!("SELECT value FROM {keyspace}.entity WHERE bucket = ? AND key = ?");
        let mut select = session.prepare(select).await.expect("the table is there");
        select.set_is_idempotent(true);
        let others = || nodes.iter().filter(|node| node.number != alone.number);
        others().for_each(|node| node.signal("STOP"));
        // Until it knows that it is alone, it asks others, which may still answer: a process stops
        // some time after the signal.
        select.set_consistency(Consistency::Two);
        let begin = Instant::now();
        loop {
            let found = session.execute_unpaged(&select, (keys[0].0, &keys[0].1)).await;
            if found.as_ref().is_err_and(is_unavailable) {
                break;
            }
            assert!(
                begin.elapsed() < WAIT_MAX,
                "the node does not know that it is alone: {found:?}"
            );
        }
        select.set_consistency(Consistency::One);
        let mut found = Vec::new();
        for (bucket, key) in keys {
            let rows = session.execute_unpaged(&select, (bucket, key)).await;
            let rows = rows.expect("it is up").into_rows_result().expect("rows");
            let row = rows.maybe_first_row::<(Vec<u8>,)>().expect("a value");
            found.push(row.map(|(value,)| value));
        }
        others().for_each(|node| node.signal("CONT"));
        found
    })
}

fn is_unavailable(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::Unavailable { .. },
            _
        ))
    )
}

/// A fault of each kind, in random order, again and again.
pub(crate) fn plan(rng: &mut Rng, count: u64) -> Vec<(Fault, u64)> {
    let mut faults = Vec::new();
    while (faults.len() as u64) < count {
        let mut kinds = vec![Fault::Killed, Fault::Paused, Fault::CutOff];
        while !kinds.is_empty() {
            let kind = kinds.swap_remove(rng.below(kinds.len() as u64) as usize);
            faults.push((kind, rng.below(NODE_COUNT.into())));
        }
    }
    faults.truncate(count as usize);
    faults
}

fn run(command: &mut Command) {
    let status = command.status().expect("the command exists");
    assert!(status.success(), "{command:?}: {status}");
}
