//! A server that lives as long as a chore needs it: a child process on a free port, with its data
//! and log in a temporary directory.

use crate::cargo;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

const START_WAIT_MAX: Duration = Duration::from_secs(30);
/// More than the 10 s that a server takes at most for requests in flight.
const STOP_WAIT_MAX: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server. It is killed when dropped, if it was not stopped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// The directory in which the server runs.
    pub(crate) work: PathBuf,
}

impl Server {
    /// Starts `binary` with more `arguments` in `work` and waits until it is ready.
    pub(crate) fn start(binary: &Path, work: &Path, arguments: &[&str]) -> Result<Server, String> {
        let failed = |error: io::Error| format!("{}: {error}", binary.display());
        // The port is free until somebody else takes it in the moment before the server does; then
        // the start fails, loudly.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(failed)?
            .to_string();
        let log = File::create(work.join("server.log")).map_err(failed)?;
        let mut command = Command::new(binary);
        // The defaults hold, whatever this shell has set.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("KVANT_"))
        {
            command.env_remove(name);
        }
        let child = command
            .args(["serve", "--listen", &address])
            .args(arguments)
            .current_dir(work)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let mut server = Server { child, address, work: work.to_path_buf() };
        server
            .wait_until_ready()
            .map_err(|problem| format!("{problem}; its log:\n{}", server.log()))?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < START_WAIT_MAX {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the server stopped at its start: {status}"));
            }
            if self.is_healthy() {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(format!("the server was not ready after {START_WAIT_MAX:?}"))
    }

    /// Whether `/health` answers 200. While the server starts, any failure is a no.
    fn is_healthy(&self) -> bool {
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET /health HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    /// Asks the server to stop, and checks that it does so in time and with exit code 0.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        cargo::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let start = Instant::now();
        while start.elapsed() < STOP_WAIT_MAX {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server stopped with {status}")),
                None => thread::sleep(POLL_INTERVAL),
            }
        }
        Err(format!("the server did not stop within {STOP_WAIT_MAX:?}"))
    }

    /// What the server has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.work.join("server.log"))
            .unwrap_or_else(|error| format!("(no log: {error})"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let killed = self.child.kill().and_then(|()| self.child.wait());
            if let Err(error) = killed {
                println!("server {} may still run: {error}", self.child.id());
            }
        }
    }
}
