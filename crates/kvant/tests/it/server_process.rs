//! A real server process that tests send requests to, stop or kill.

use crate::kvant_command::kvant;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Longest wait of a test, so that a hanging server fails its test instead of blocking all. No wait
/// comes near it.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A running `kvant serve` on a free port of the loopback address; killed when dropped.
pub(crate) struct TestServer {
    process: Process,
    addr: SocketAddr,
}

impl TestServer {
    /// Serves `data` and waits until the database is open.
    pub(crate) fn start(data: &Path) -> TestServer {
        TestServer::start_with(data, &[])
    }

    /// As [`TestServer::start`], with more arguments.
    pub(crate) fn start_with(data: &Path, args: &[&str]) -> TestServer {
        let mut server = TestServer::start_listening(data, args);
        server.wait_for_event("ready");
        server
    }

    /// As [`TestServer::start_with`], after shell commands such as `ulimit -n 64`, which affect the
    /// server.
    pub(crate) fn start_after(commands: &str, data: &Path, args: &[&str]) -> TestServer {
        let mut server = TestServer::of(Process::start_after(commands, data, args));
        server.wait_for_event("ready");
        server
    }

    /// As [`TestServer::start_with`], but the database may still be recovering.
    pub(crate) fn start_listening(data: &Path, args: &[&str]) -> TestServer {
        TestServer::of(Process::start(data, args))
    }

    fn of(mut process: Process) -> TestServer {
        let addr = address(&process.wait_for_event("listening"));
        TestServer { process, addr }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of the operator API, if it has a listener of its own and the server is ready.
    pub(crate) fn admin_addr(&self) -> Option<SocketAddr> {
        self.process
            .lines
            .iter()
            .find(|line| is_event(line, "listening_for_operators"))
            .map(|line| address(line))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Sends `request` on a new connection and returns everything until the server closes it; the
    /// request should have `Connection: close`.
    pub(crate) fn exchange(&self, request: &[u8]) -> Vec<u8> {
        exchange(self.addr, request)
    }

    /// Waits for the log line of an event and returns it; skips lines before it.
    pub(crate) fn wait_for_event(&mut self, event: &str) -> String {
        self.process.wait_for_event(event)
    }

    /// Sends a signal by its name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status();
        assert!(status.expect("kill(1) exists").success(), "the server is not running any more");
    }

    /// SIGKILL: the server does no shutdown work.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// SIGTERM; returns the end of the process.
    pub(crate) fn stop(self) -> Ended {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(self) -> Ended {
        self.process.wait()
    }
}

/// The end of a server.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) log: Vec<String>,
}

impl Ended {
    /// The first line of an event.
    pub(crate) fn line(&self, event: &str) -> &str {
        let line = self.log.iter().find(|line| is_event(line, event));
        line.unwrap_or_else(|| panic!("no `{event}` in the server's log:\n{}", self.log.join("\n")))
    }
}

/// Runs a server that ends by itself.
pub(crate) fn serve_to_end(data: &Path, args: &[&str]) -> Ended {
    Process::start(data, args).wait()
}

/// As [`serve_to_end`], after shell commands.
pub(crate) fn serve_to_end_after(commands: &str, data: &Path, args: &[&str]) -> Ended {
    Process::start_after(commands, data, args).wait()
}

/// Sends `request` to `addr` and reads until the server closes the connection.
pub(crate) fn exchange(addr: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).expect("the server listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout can be set");
    stream.write_all(request).expect("the server takes the request");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("the server responds and closes");
    response
}

fn is_event(line: &str, event: &str) -> bool {
    line.split_whitespace().nth(2) == Some(event)
}

/// The address in the log line of a listener.
fn address(line: &str) -> SocketAddr {
    let address = line.split(' ').find_map(|word| word.strip_prefix("address="));
    address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no address: {line}"))
}

/// The process and its log. A thread reads the log, so that the server never blocks on a full pipe.
struct Process {
    child: Child,
    lines: Vec<String>,
    incoming: Receiver<String>,
}

impl Process {
    fn start(data: &Path, args: &[&str]) -> Process {
        Process::spawn(kvant(), data, args)
    }

    fn start_after(commands: &str, data: &Path, args: &[&str]) -> Process {
        let kvant = kvant();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{commands} && exec \"$0\" \"$@\"")])
            .arg(kvant.get_program())
            .stdin(Stdio::null());
        for (name, value) in kvant.get_envs() {
            assert!(value.is_none(), "variables are only removed");
            shell.env_remove(name);
        }
        Process::spawn(shell, data, args)
    }

    fn spawn(mut command: Command, data: &Path, args: &[&str]) -> Process {
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            // A stall of the machine is no overload.
            .args(["--queue-wait-max", "60s"])
            .args(["--overload", "reject"].iter().filter(|_| !args.contains(&"--overload")))
            // The Host header of the clients of these tests.
            .args(["--allowed-hosts", "x"])
            .args(args)
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be started");
        let stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let (sender, incoming) = mpsc::channel();
        // Ends with the process.
        std::thread::spawn(move || {
            for line in stderr.lines() {
                if sender.send(line.expect("the log is UTF-8")).is_err() {
                    return;
                }
            }
        });
        Process { child, lines: Vec::new(), incoming }
    }

    fn wait_for_event(&mut self, event: &str) -> String {
        loop {
            match self.incoming.recv_timeout(WAIT_MAX) {
                Ok(line) => self.lines.push(line),
                Err(error) => {
                    panic!("no `{event}` in the server's log ({error}):\n{}", self.lines.join("\n"))
                }
            }
            if let Some(line) = self.lines.last().filter(|line| is_event(line, event)) {
                return line.clone();
            }
        }
    }

    fn wait(mut self) -> Ended {
        loop {
            match self.incoming.recv_timeout(WAIT_MAX) {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the server does not end:\n{}", self.lines.join("\n"))
                }
            }
        }
        let status = self.child.wait().expect("the process is ours");
        Ended { code: status.code(), log: std::mem::take(&mut self.lines) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both succeed on a reaped process.
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
        if std::thread::panicking() {
            self.lines.extend(self.incoming.iter());
            eprintln!("the server's log:\n{}", self.lines.join("\n"));
        }
    }
}
