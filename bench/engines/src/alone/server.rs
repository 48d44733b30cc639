//! The real server, as a process.

use super::http::Connection;
use super::{Failure, Settings};
use serde_json::Value;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);

/// A running `kvant serve`, killed on drop.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    log: PathBuf,
    /// Time from the start of the process until it was ready.
    pub(crate) ready_after: Duration,
}

impl ServerProcess {
    /// Starts a server on `data` and waits until it has recovered.
    pub(crate) fn start(
        settings: &Settings,
        scratch: &Path,
        data: &Path,
        arguments: &[&str],
    ) -> Result<ServerProcess, Failure> {
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = probe.local_addr()?;
        drop(probe);
        let log = scratch.join("server.log");
        let log_file = File::create(&log)?;
        let start = Instant::now();
        if !settings.kvant.exists() {
            return Err(format!(
                "no {} (cargo build --release -p kvant, or --kvant PATH)",
                settings.kvant.display()
            )
            .into());
        }
        // setpriv execs, so the process id is the server's. The kernel kills it if the benchmark
        // dies.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&settings.kvant)
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--listen", &address.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file)
            .spawn()?;
        let mut server = ServerProcess { child, address, log, ready_after: Duration::ZERO };
        while !server.is_ready() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!(
                    "the server ended ({status}): {}",
                    fs::read_to_string(&server.log)?
                )
                .into());
            }
            if start.elapsed() > READY_MAX {
                return Err(format!(
                    "not ready after {READY_MAX:?}: {}",
                    fs::read_to_string(&server.log)?
                )
                .into());
            }
            std::thread::sleep(POLL);
        }
        server.ready_after = start.elapsed();
        Ok(server)
    }

    fn is_ready(&self) -> bool {
        let asked = Connection::open(self.address).map_err(Failure::from);
        asked
            .and_then(|mut connection| connection.ask("GET", "/health", b"", &mut Vec::new()))
            .is_ok_and(|status| status == 200)
    }

    /// The `engine` member of `/v0/stats`.
    pub(crate) fn engine_stats(&self) -> Result<Value, Failure> {
        let mut body = Vec::new();
        let status = Connection::open(self.address)?.ask("GET", "/v0/stats", b"", &mut body)?;
        if status != 200 {
            return Err(format!("GET /v0/stats: status {status}").into());
        }
        let mut stats: Value = serde_json::from_slice(&body)?;
        Ok(stats["engine"].take())
    }

    /// The peak resident set since the last [`ServerProcess::reset_peak_rss`].
    pub(crate) fn peak_rss_bytes(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .ok_or("no VmHWM in the process's status")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024)
    }

    /// Resets the kernel's peak.
    pub(crate) fn reset_peak_rss(&self) -> Result<(), Failure> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        for result in [self.child.kill(), self.child.wait().map(drop)] {
            if let Err(error) = result {
                eprintln!("the server could not be ended: {error}");
            }
        }
    }
}
