//! One node: its directory, its settings, its process.
//!
//! In a network that tests may break, each node has a network of its own inside, which a cable, a
//! pair of `veth`, connects with the switch of the cluster.

use crate::process::about;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CLIENT_PORT: u16 = 9042;
const NODE_PORT: u16 = 7000;
const JMX_PORT: u16 = 7199;
const HEAP: &str = "768M";
const START_MAX: Duration = Duration::from_secs(180);
/// What a node logs when there is a user to log in as.
const FIRST_USER: &str = "Created default superuser role";
const STOP_MAX: Duration = Duration::from_secs(30);

/// Packages of the JDK that Cassandra uses although they are internal.
const EXPORTS: [&str; 8] = [
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.base/java.lang.ref",
    "java.base/sun.nio.ch",
    "jdk.unsupported/sun.misc",
];
const OPENS: [&str; 17] = [
    "java.base/java.lang.module",
    "java.base/java.net",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/jdk.internal.util",
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
];

/// What connects the nodes in an isolated network, and its own address.
pub(super) const SWITCH: &str = "nodes";
pub(super) const SWITCH_ADDRESS: &str = "10.0.0.254/24";

/// Connects a new network with the switch in the network of the parent process, and runs the rest
/// of the arguments in it. The cable of a node that has just ended may still be there.
const IN_NETWORK: &str = r#"
set -e
switch=$1 cable=$2 address=$3; shift 3
ip link set lo up
until ip link add eth0 type veth peer name "$cable" netns "$PPID"; do sleep 0.1; done
ip address add "$address/24" dev eth0
ip link set eth0 up
nsenter --net="/proc/$PPID/ns/net" ip link set "$cable" master "$switch" up
exec "$@"
"#;

/// Set for chores in a network of their own.
pub(super) const ISOLATED: &str = "KVANT_XTASK_ISOLATED";

/// Whether this chore is alone with its network.
pub(crate) fn is_isolated() -> bool {
    std::env::var_os(ISOLATED).is_some()
}

pub(super) struct Node {
    dir: PathBuf,
    number: u8,
}

impl Node {
    /// The node of this number, from 1.
    pub(super) fn new(cluster: &Path, number: u8) -> Node {
        Node { dir: cluster.join(format!("node-{number}")), number }
    }

    fn ip(&self) -> Ipv4Addr {
        let first = if is_isolated() { 10 } else { 127 };
        Ipv4Addr::new(first, 0, 0, self.number)
    }

    /// Where clients connect.
    pub(super) fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip(), CLIENT_PORT)
    }

    /// Starts it, and waits until it accepts clients.
    pub(super) fn start(&self, java: &Path, jars: &Path, needs_login: bool) -> Result<(), String> {
        let write = |name: &str, text: &str| {
            let path = self.dir.join(name);
            fs::write(&path, text).map_err(about(path.display()))
        };
        fs::create_dir_all(&self.dir).map_err(about(self.dir.display()))?;
        write("cassandra.yaml", &self.settings(needs_login))?;
        write("logback.xml", include_str!("logback.xml"))?;
        let path = self.dir.join("output");
        let output = fs::File::create(&path).map_err(about(path.display()))?;
        let mut command = self.in_network(java);
        command
            .current_dir(&self.dir)
            .args([format!("-Xms{HEAP}"), format!("-Xmx{HEAP}")])
            .args(["-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-Xss512k"])
            .args(EXPORTS.map(|package| format!("--add-exports={package}=ALL-UNNAMED")))
            .args(OPENS.map(|package| format!("--add-opens={package}=ALL-UNNAMED")))
            .arg("--add-exports=java.sql/java.sql=ALL-UNNAMED")
            .arg("-Djdk.attach.allowAttachSelf=true")
            .arg(format!("-Dcassandra.config=file://{}/cassandra.yaml", self.dir.display()))
            .arg(format!("-Dcassandra.storagedir={}", self.dir.display()))
            .arg(format!("-Dlogback.configurationFile={}/logback.xml", self.dir.display()))
            .arg(format!("-Dcassandra.jmx.local.port={}", JMX_PORT + u16::from(self.number)))
            .args([
                "-Dcassandra.ring_delay_ms=2000",
                "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            ])
            .arg("-Dcassandra.superuser_setup_delay_ms=0")
            .arg("-cp")
            .arg(format!("{}:{}/*", self.dir.display(), jars.display()))
            .arg("org.apache.cassandra.service.CassandraDaemon")
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(about(path.display()))?)
            .stderr(output);
        let mut child = command.spawn().map_err(about(java.display()))?;
        write("pid", &child.id().to_string())?;
        write("address", &self.address().to_string())?;
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            // The port opens last, and the first user may come later.
            let has_user = !needs_login || self.number > 1 || self.log_has(FIRST_USER)?;
            if has_user && TcpStream::connect(self.address()).is_ok() {
                return Ok(());
            }
            if child.try_wait().map_err(about("a node"))?.is_some() {
                break;
            }
            sleep(Duration::from_millis(200));
        }
        Err(format!("the node {} does not start: see {}", self.address(), self.log().display()))
    }

    /// `program` where the node's address is.
    fn in_network(&self, program: &Path) -> Command {
        if !is_isolated() {
            return Command::new(program);
        }
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "sh", "-c", IN_NETWORK, "sh", SWITCH]);
        command.arg(format!("node-{}", self.number)).arg(self.ip().to_string()).arg(program);
        command
    }

    /// Ends the process at once; whether there was one.
    pub(super) fn kill(&self) -> Result<bool, String> {
        let Some(pid) = self.pid() else { return Ok(false) };
        let begin = Instant::now();
        while self.pid().is_some() {
            let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
            status.map_err(about("kill"))?;
            if begin.elapsed() > STOP_MAX {
                return Err(format!("the process {pid} of {} does not end", self.address()));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(true)
    }

    pub(super) fn remove(&self) -> Result<(), String> {
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(about(self.dir.display())(error))
            }
            _ => Ok(()),
        }
    }

    /// The process, if it is this node's and has not ended.
    pub(super) fn pid(&self) -> Option<u32> {
        let pid: u32 = fs::read_to_string(self.dir.join("pid")).ok()?.parse().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let dir = self.dir.to_str()?;
        // A process that has ended and was not waited for has an empty one.
        String::from_utf8_lossy(&command).contains(dir).then_some(pid)
    }

    fn log_has(&self, text: &str) -> Result<bool, String> {
        match fs::read_to_string(self.log()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(about(self.log().display())(error))
            }
            read => Ok(read.is_ok_and(|log| log.contains(text))),
        }
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    fn settings(&self, needs_login: bool) -> String {
        let (dir, ip) = (self.dir.display(), self.ip());
        let seed = Node::new(&self.dir, 1).ip();
        let (authenticator, authorizer) = match needs_login {
            true => ("PasswordAuthenticator", "CassandraAuthorizer"),
            false => ("AllowAllAuthenticator", "AllowAllAuthorizer"),
        };
        format!(
            "cluster_name: kvant\n\
             num_tokens: 16\n\
             partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
             authenticator: {authenticator}\n\
             authorizer: {authorizer}\n\
             data_file_directories: [{dir}/data]\n\
             commitlog_directory: {dir}/commitlog\n\
             saved_caches_directory: {dir}/saved_caches\n\
             hints_directory: {dir}/hints\n\
             hints_flush_period: 1000ms\n\
             cdc_raw_directory: {dir}/cdc_raw\n\
             commitlog_sync: periodic\n\
             commitlog_sync_period: 1000ms\n\
             seed_provider:\n\
             \x20 - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n\
             \x20   parameters: [{{seeds: {seed}}}]\n\
             listen_address: {ip}\n\
             rpc_address: {ip}\n\
             start_native_transport: true\n\
             native_transport_port: {CLIENT_PORT}\n\
             storage_port: {NODE_PORT}\n\
             endpoint_snitch: SimpleSnitch\n\
             file_cache_size: 64MiB\n\
             memtable_heap_space: 128MiB\n\
             memtable_offheap_space: 128MiB\n"
        )
    }
}
