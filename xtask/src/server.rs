//! A `kvant serve` process for a chore, on a free port, with its data and log in a temporary
//! directory.

use crate::process::{self, about};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const START_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longer than the 10 s that a server allows for requests in flight.
const STOP_WAIT_MAX: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) work: PathBuf,
}

impl Server {
    /// Starts `binary` in `work` and waits until the database is open.
    pub(crate) fn start(binary: &Path, work: &Path, arguments: &[&str]) -> Result<Server, String> {
        let path = work.join("server.log");
        let log = File::create(&path).map_err(about(path.display()))?;
        let mut command = Command::new(binary);
        // The server runs with its defaults, whatever this shell has set.
        let variables = std::env::vars_os().map(|(name, _)| name);
        for name in variables.filter(|name| name.to_string_lossy().starts_with("KVANT_")) {
            command.env_remove(name);
        }
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(work)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(about(binary.display()))?;
        let mut server = Server { child, address: String::new(), work: work.to_path_buf() };
        let is_ready = |server: &mut Server| {
            let log = server.log();
            let address = log.split_whitespace().find_map(|word| word.strip_prefix("address="));
            server.address = address.unwrap_or_default().to_owned();
            log.contains(" ready\n")
        };
        match server.wait_until(START_WAIT_MAX, is_ready) {
            true => Ok(server),
            false => Err(format!("the server is not ready; its log:\n{}", server.log())),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server, and checks that it ends in time and with exit code 0.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        process::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        self.wait_until(STOP_WAIT_MAX, |_| false);
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => Ok(()),
            ended => Err(format!("the server did not stop cleanly: {ended:?}")),
        }
    }

    /// Waits until `is_done`, the end of the process, or `wait_max`.
    fn wait_until(&mut self, wait_max: Duration, is_done: impl Fn(&mut Server) -> bool) -> bool {
        let start = Instant::now();
        while !is_done(self) {
            if start.elapsed() > wait_max || !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
        true
    }

    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.work.join("server.log"));
        log.unwrap_or_else(|error| format!("(no log: {error})"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            println!("server {} may still run: {error}", self.child.id());
        }
    }
}
