//! `kvant load` as a process, against a real server: wrk2's text, plans, signals, errors.

use crate::kvant_command::{Finished, TempDir, kvant, run, run_again_while, run_kvant};
use crate::server_process::TestServer;
use kvant_load::report::json::ResultFile;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// `kvant load` with long timeouts, so that a stall of the machine fails no request.
pub(crate) fn load_command() -> Command {
    let mut command = kvant();
    command.args(["load", "--timeout", "60s"]);
    command
}

/// Runs `kvant load` with `args` and the URL of `path` at the server, see [`run_load`].
pub(crate) fn load(server: &TestServer, args: &[&str], path: &str) -> Finished {
    let url = format!("http://{}{path}", server.addr());
    run_load(load_command().args(args).arg(url))
}

/// Runs a load to its end; repeats it if a phase completed nothing.
///
/// Loads here are short. If the machine stalls for longer than that, a phase completes nothing,
/// which is no error. A load with failures is not repeated; the last attempt is returned in any
/// case.
pub(crate) fn run_load(command: &mut Command) -> Finished {
    let stood_still = |done: &Finished| {
        let is_nothing = |line: &str| line.trim_start().starts_with("0 requests in ");
        let has_failed = done.stdout.contains("Socket errors:");
        done.stdout.lines().any(is_nothing) && !has_failed
    };
    run_again_while(stood_still, || run(command))
}

/// As [`load`]; fails the test unless the exit code is 0.
pub(crate) fn good_load(server: &TestServer, args: &[&str], path: &str) -> String {
    let done = load(server, args, path);
    assert_eq!(done.code, Some(0), "{args:?} {path}\n{}\n{}", done.stdout, done.stderr);
    done.stdout
}

/// The figures that readers of wrk2's text extract.
#[derive(Debug)]
pub(crate) struct Classic {
    pub(crate) requests: u64,
    pub(crate) rate: f64,
    pub(crate) socket_errors: Option<String>,
    pub(crate) bad_statuses: u64,
    /// Values in milliseconds, percentiles from 0 to 1, counts.
    pub(crate) spectrum: Vec<(f64, f64, u64)>,
}

impl Classic {
    pub(crate) fn parse(text: &str) -> Classic {
        let line = |part: &str| text.lines().find(|line| line.contains(part));
        let word = |line: &str, at: usize| line.split_whitespace().nth(at).map(str::to_owned);
        let number = |line: Option<&str>, at: usize| line.and_then(|line| word(line, at));
        let requests = number(line(" requests in "), 0).and_then(|word| word.parse().ok());
        let rate = number(line("Requests/sec:"), 1).and_then(|word| word.parse().ok());
        let (Some(requests), Some(rate)) = (requests, rate) else {
            panic!("this is not wrk2's text:\n{text}");
        };
        let bad = line("Non-2xx or 3xx responses:")
            .and_then(|line| line.rsplit(' ').next()?.parse().ok());
        let rows = text.lines().skip_while(|line| !line.contains("Percentile spectrum"));
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [value, percentile, count, _] => {
                    Some((value.parse().ok()?, percentile.parse().ok()?, count.parse().ok()?))
                }
                _ => None,
            }
        };
        Classic {
            requests,
            rate,
            socket_errors: line("Socket errors:").map(str::to_owned),
            bad_statuses: bad.unwrap_or(0),
            spectrum: rows.take_while(|line| !line.contains("#[Mean")).filter_map(row).collect(),
        }
    }

    /// Fails the test if there were errors.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert!(
            self.socket_errors.is_none() && self.bad_statuses == 0 && self.requests > 0,
            "{self:?}"
        );
    }
}

#[test]
fn the_text_is_wrk2s_and_the_rate_is_kept() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let json_name = json.to_str().expect("ASCII");
    let args = ["-t2", "-c4", "-d1s", "-R500", "-L", "--json", json_name];
    let is_too_little =
        |done: &Finished| done.code == Some(0) && Classic::parse(&done.stdout).requests < 250;
    let done = run_again_while(is_too_little, || load(&server, &args, "/v0/status"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let url = format!("http://{}/v0/status", server.addr());
    let begin = format!(
        "Running 1s test @ {url}\n  2 threads and 4 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
    );
    assert!(done.stdout.starts_with(&begin), "{}", done.stdout);
    assert!(
        done.stdout.contains("\n  Latency Distribution (HdrHistogram - Recorded Latency)\n"),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains("Uncorrected"), "{}", done.stdout);
    let classic = Classic::parse(&done.stdout);
    classic.assert_clean();
    // A stall of the machine loses requests and never adds any.
    assert!((250..=500).contains(&classic.requests), "{classic:?}");
    let result = ResultFile::read(&json).expect("a result");
    assert_eq!(result.phases[0].outcome.total.planned, 500);
    // Measured for one second.
    assert!((classic.rate - classic.requests as f64).abs() <= 0.02 * classic.rate, "{classic:?}");
    let last = classic.spectrum.last().expect("there are rows");
    assert_eq!((last.1, last.2), (1.0, classic.requests), "{classic:?}");
    assert!(classic.spectrum.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1), "{classic:?}");
    assert!(!done.stderr.is_empty(), "progress goes to standard error");

    let quiet = load(&server, &["-t1", "-c1", "-d200ms", "-R100", "-U", "--quiet"], "/v0/status");
    assert_eq!(quiet.stderr, "", "{quiet:?}");
    assert!(quiet.stdout.contains("Uncorrected Latency"), "{}", quiet.stdout);
}

#[test]
fn plans_of_several_rates_ramps_and_none() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    let small = ["-t1", "-c2", "-d300ms", "--quiet"];

    let steps = good_load(&server, &[&small[..], &["-R", "100,200,400"]].concat(), "/v0/status");
    assert_eq!(steps.matches("Running ").count(), 3, "{steps}");
    let blocks: Vec<Classic> = steps.split("Running ").skip(1).map(Classic::parse).collect();
    blocks.iter().for_each(Classic::assert_clean);
    let planned = [30, 60, 120];
    assert!(
        blocks.iter().zip(planned).all(|(block, planned)| block.requests <= planned),
        "{blocks:?}"
    );

    let ramp = good_load(&server, &[&small[..], &["--ramp", "0..1k"]].concat(), "/v0/status");
    Classic::parse(&ramp).assert_clean();
    assert!(Classic::parse(&ramp).requests <= 151, "{ramp}");

    let closed = good_load(&server, &[&small[..], &["-R", "0"]].concat(), "/v0/status");
    Classic::parse(&closed).assert_clean();

    let poisson = good_load(
        &server,
        &[&small[..], &["-R", "500", "--arrival", "poisson", "--seed", "7"]].concat(),
        "/v0/status",
    );
    Classic::parse(&poisson).assert_clean();

    let batches = good_load(
        &server,
        &[&small[..], &["-R", "500", "--pipeline", "4", "-B"]].concat(),
        "/v0/status",
    );
    Classic::parse(&batches).assert_clean();

    let exact =
        good_load(&server, &[&small[..], &["-R", "100", "--wrk2-exact"]].concat(), "/v0/status");
    Classic::parse(&exact).assert_clean();

    let warm = good_load(
        &server,
        &[&small[..], &["-R", "100", "--warmup", "200ms", "-T", "30s", "-H", "Accept: */*"]]
            .concat(),
        "/v0/status",
    );
    assert!(Classic::parse(&warm).requests <= 30, "what the warm-up sends is not counted: {warm}");
}

#[test]
fn the_highest_rate_is_found() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    let args =
        ["-t1", "-c2", "-d200ms", "--warmup", "20ms", "--find-max", "--slo", "p99<1s", "--quiet"];
    // If the machine stalls in each of the short phases, no rate is sustained.
    let found_nothing = |done: &Finished| done.stdout.contains("\nMaximum: no rate holds");
    let done = run_again_while(found_nothing, || load(&server, &args, "/v0/status"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = done.stdout;
    assert!(text.contains("saturation") && text.contains("closed"), "{text}");
    assert!(text.contains("\nMaximum: "), "{text}");
}

#[test]
fn bad_arguments_are_reported_together() {
    let done = run_kvant(&["load", "-t0", "-d", "soon", "--json"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let done = run_kvant(&["load", "-t0", "-d", "soon"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    for name in ["URL", "--rate", "--threads", "--duration"] {
        assert!(done.stderr.contains(&format!("\n  {name}: ")), "{name}: {done:?}");
    }
    let done = run_kvant(&["load", "-R5", "-t3", "-c2", "http://127.0.0.1/"]);
    assert!(done.stderr.contains("number of connections must be >= threads"), "{done:?}");
    for url in ["127.0.0.1:80", "ftp://127.0.0.1/"] {
        let done = run_kvant(&["load", "-R5", url]);
        assert_eq!(done.code, Some(2), "{done:?}");
    }
    assert_eq!(run_kvant(&["load", "--no-such-option"]).code, Some(2));
    assert_eq!(run_kvant(&["load", "fill", "http://127.0.0.1/"]).code, Some(2));
}

#[test]
fn a_missing_server_is_reported_as_by_wrk() {
    // An address without a listener.
    let addr = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("loopback");
    let url = format!("http://{addr}/");
    for args in [&["load", "-R5", &url][..], &["load", "fill", "--keys", "5", &url]] {
        let done = run_kvant(args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
        assert!(done.stderr.contains(&format!("unable to connect to {addr}")), "{done:?}");
    }
}

#[test]
fn a_signal_ends_the_load_and_prints_what_was_measured() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    for signal in ["INT", "TERM"] {
        let log = dir.path().join(signal);
        let log_name = log.to_str().expect("ASCII");
        let running = Running::start(
            &server,
            &["-t1", "-c1", "-d10m", "-R100,200", "-L", "--hlog", log_name],
        );
        // The log grows every second, and contains this after the first response.
        while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains("/response,")) {
            std::thread::sleep(Duration::from_millis(10));
        }
        running.signal(signal);
        let (code, stdout) = running.wait();
        assert_eq!(code, Some(0), "{stdout}");
        Classic::parse(&stdout).assert_clean();
        assert_eq!(stdout.matches("Running ").count(), 1, "no other rate follows: {stdout}");
    }
}

#[test]
fn a_second_signal_ends_the_process() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    // The first signal ends the load, but this process does not finish.
    let script = dir.path().join("endless.lua");
    std::fs::write(&script, "function done() while true do end end").expect("writable");
    let script = script.to_str().expect("ASCII");
    let mut running = Running::start(&server, &["-t1", "-c1", "-d10m", "-R100", "-s", script]);
    running.wait_for("Running ");
    running.signal("INT");
    running.wait_for("Requests/sec:");
    running.signal("INT");
    let (code, stdout) = running.wait();
    assert_eq!(code, Some(130), "{stdout}");
}

/// A running load.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    stdout: String,
}

impl Running {
    fn start(server: &TestServer, args: &[&str]) -> Running {
        let mut child = load_command()
            .arg("--quiet")
            .args(args)
            .arg(format!("http://{}/v0/status", server.addr()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Running { child, out, stdout: String::new() }
    }

    /// Waits for a line that starts with `start`.
    fn wait_for(&mut self, begin: &str) {
        loop {
            let line_at = self.stdout.len();
            let count = self.out.read_line(&mut self.stdout).expect("output is UTF-8");
            assert!(count > 0, "no `{begin}` in:\n{}", self.stdout);
            if self.stdout[line_at..].starts_with(begin) {
                return;
            }
        }
    }

    fn signal(&self, name: &str) {
        // The process is not reaped yet, so its id is still valid.
        let status =
            Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.is_ok(), "kill(1) exists");
    }

    fn wait(mut self) -> (Option<i32>, String) {
        self.out.read_to_string(&mut self.stdout).expect("output is UTF-8");
        let status = self.child.wait().expect("the process is ours");
        (status.code(), std::mem::take(&mut self.stdout))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both succeed on a reaped process.
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }
}
