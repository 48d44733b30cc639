//! A real server process, for tests that talk to it, stop it or kill it.

use crate::kvant_command::kvant;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Bound on everything that a test waits for, so that a hanging server fails its test instead of
/// stopping all. Nothing is expected to come near it.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A running `kvant serve` on a free port of the loopback address. Dropped: killed.
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

    /// As [`TestServer::start_with`], after commands of a shell such as `ulimit -n 64`, which hold
    /// for the server.
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

    /// The address of the operator API, where it has one of its own and the database was waited
    /// for.
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

    /// Sends `request` on a connection of its own and returns all that is answered until the server
    /// closes it: ask for that with `Connection: close`.
    pub(crate) fn exchange(&self, request: &[u8]) -> Vec<u8> {
        exchange(self.addr, request)
    }

    /// Waits for the log line of an event and returns it. Lines before it are passed over.
    pub(crate) fn wait_for_event(&mut self, event: &str) -> String {
        self.process.wait_for_event(event)
    }

    /// Sends a signal by its name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status();
        assert!(status.expect("kill(1) exists").success(), "the server is not running any more");
    }

    /// SIGKILL: nothing that the server would do at its end is done.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// SIGTERM, and the end of the process.
    pub(crate) fn stop(self) -> Ended {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(self) -> Ended {
        self.process.wait()
    }
}

/// How a server ended.
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

/// Runs a server that is expected to end by itself.
pub(crate) fn serve_to_end(data: &Path, args: &[&str]) -> Ended {
    Process::start(data, args).wait()
}

/// As [`serve_to_end`], after commands of a shell.
pub(crate) fn serve_to_end_after(commands: &str, data: &Path, args: &[&str]) -> Ended {
    Process::start_after(commands, data, args).wait()
}

/// Sends `request` to `addr` and reads until the other side closes.
pub(crate) fn exchange(addr: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).expect("the server listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout can be set");
    stream.write_all(request).expect("the server takes the request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers and closes");
    answer
}

fn is_event(line: &str, event: &str) -> bool {
    line.split_whitespace().nth(2) == Some(event)
}

/// The address in the log line of a listener.
fn address(line: &str) -> SocketAddr {
    let address = line.split(' ').find_map(|word| word.strip_prefix("address="));
    address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no address: {line}"))
}

/// The process and what it has logged. A thread reads its log, so that it never waits for a full
/// pipe.
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
            // A machine that stands still for a while is no overload.
            .args(["--queue-wait-max", "60s", "--overload", "reject"])
            // What the clients of these tests say.
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
        // Both are allowed on a process that has ended and was waited for.
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
        if std::thread::panicking() {
            self.lines.extend(self.incoming.iter());
            eprintln!("the server's log:\n{}", self.lines.join("\n"));
        }
    }
}
