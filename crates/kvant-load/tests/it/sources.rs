//! The contract between the event loop and sources of requests.

use crate::core::{GET, OK, SECOND, config, each_request, instant, phase, server};
use crate::harness::{check_sums, ensure, experiment, text};
use kvant_base::{Error, Result};
use kvant_env::Env;
use kvant_load::{
    Batch, Errors, Expected, Fate, Load, LoadConfig, OpNames, Outcome, Phase, Rate, RequestSource,
    ResponseView,
};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Observe = dyn FnMut(&ResponseView<'_>) -> Result<()> + Send;

/// A source of closures.
struct Scripted {
    next: Box<dyn FnMut() -> Result<&'static [u8]> + Send>,
    observe: Box<Observe>,
    delay: Duration,
    /// Stops after this many responses.
    responses_max: u64,
    responses: u64,
    expected: Vec<Expected>,
}

impl Default for Scripted {
    fn default() -> Scripted {
        Scripted {
            next: Box::new(|| Ok(GET)),
            observe: Box::new(|_| Ok(())),
            delay: Duration::ZERO,
            responses_max: u64::MAX,
            responses: 0,
            expected: Vec::new(),
        }
    }
}

impl Scripted {
    fn sending(next: impl FnMut() -> Result<&'static [u8]> + Send + 'static) -> Scripted {
        Scripted { next: Box::new(next), ..Scripted::default() }
    }

    fn seeing(observe: impl FnMut(&ResponseView<'_>) -> Result<()> + Send + 'static) -> Scripted {
        Scripted { observe: Box::new(observe), ..Scripted::default() }
    }

    fn stopping_after(self, responses_max: u64) -> Scripted {
        Scripted { responses_max, ..self }
    }
}

impl RequestSource for Scripted {
    fn next(&mut self, _: usize) -> Result<Batch<'_>> {
        Ok(Batch { bytes: (self.next)()?, requests: &self.expected })
    }

    fn observes(&self) -> bool {
        true
    }

    fn observe(&mut self, response: &ResponseView<'_>) -> Result<()> {
        self.responses += 1;
        (self.observe)(response)
    }

    fn delays(&self) -> bool {
        self.delay > Duration::ZERO
    }

    fn delay(&mut self) -> Result<Duration> {
        Ok(self.delay)
    }

    fn is_stopped(&self) -> bool {
        self.responses >= self.responses_max
    }
}

fn expected(ops: &OpNames) -> Expected {
    Expected { op: ops.intern("op"), is_head: false }
}

/// Runs on one connection until the source stops: on a machine that stalls it only takes longer.
fn run(address: SocketAddr, rate: Rate, source: Scripted) -> Result<Outcome> {
    run_phase(config(address, 1, 1), &phase(rate, SECOND * 60), source)
}

/// Runs on one thread.
fn run_phase(config: LoadConfig, phase: &Phase, mut source: Scripted) -> Result<Outcome> {
    let ops = OpNames::default();
    source.expected = vec![expected(&ops)];
    let mut load = Load::start(config, vec![Box::new(source)], ops, Env::posix())?;
    let outcome = load.run(phase, &mut |_| true)?;
    check_sums(&outcome);
    Ok(outcome)
}

#[test]
fn a_source_that_fails_ends_the_run_with_its_error() {
    let mut left = 10;
    let source = Scripted::sending(move || {
        left -= 1;
        if left == 0 { Err(Error::invalid("line 3: no")) } else { Ok(GET) }
    });
    let failed = run(instant(), Rate::Closed, source);
    assert_eq!(failed.unwrap_err().message(), "line 3: no");

    let source = Scripted::seeing(|_| Err(Error::invalid("line 4: no")));
    let failed = run(instant(), Rate::Closed, source);
    assert_eq!(failed.unwrap_err().message(), "line 4: no");
}

#[test]
fn a_source_that_panics_ends_the_run_with_an_error() {
    let mut left = 10;
    let source = Scripted::sending(move || {
        left -= 1;
        assert!(left > 0, "this panic belongs to the test");
        Ok(GET)
    });
    let failed = run(instant(), Rate::Closed, source);
    assert!(failed.unwrap_err().message().contains("panicked"));
}

#[test]
fn a_source_that_stops_ends_the_phase() {
    for rate in [Rate::Closed, Rate::Constant(1_000.0)] {
        let outcome = run(instant(), rate, Scripted::default().stopping_after(10)).unwrap();
        assert_eq!(outcome.total.completed, 10, "{}", text(&outcome));
        assert!(outcome.is_cut_short);
        assert!(outcome.measured_ns < 30_000_000_000);
    }
}

#[test]
fn a_source_that_stops_leaves_the_backlog_of_its_time() {
    for warmup in [Duration::ZERO, SECOND / 2] {
        let address = server(|stream| {
            each_request(stream, |stream| {
                std::thread::sleep(Duration::from_millis(50));
                stream.write_all(OK).is_ok()
            });
        });
        let source = Scripted::default().stopping_after(25);
        let phase = Phase { warmup, ..phase(Rate::Constant(100.0), SECOND * 60) };
        // After the warm-up its backlog is sent and not recorded.
        let outcome = run_phase(config(address, 1, 1), &phase, source).unwrap();
        assert!(outcome.is_cut_short && outcome.backlog > 50, "{}", text(&outcome));
        // One every 10 ms until the source stopped, not until the end of the phase.
        let due = outcome.measured_ns / 10_000_000 + 1;
        assert!(outcome.total.planned <= due, "{due}, {}", text(&outcome));
    }
}

#[test]
fn responses_that_wait_for_a_stalled_generator_are_not_timeouts() {
    experiment(|| {
        let address = server(|stream| {
            each_request(stream, |stream| {
                std::thread::sleep(Duration::from_millis(100));
                stream.write_all(OK).is_ok()
            });
        });
        let mut calls = 0;
        let source = Scripted::sending(move || {
            calls += 1;
            if calls == 300 {
                std::thread::sleep(SECOND);
            }
            Ok(GET)
        });
        // More requests are in flight than one poll returns.
        let config = LoadConfig { timeout: Duration::from_millis(600), ..config(address, 1, 120) };
        let outcome =
            run_phase(config, &phase(Rate::Constant(1_000.0), SECOND * 2), source).unwrap();
        ensure!(outcome.total.errors.timeout == 0, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn each_request_has_a_delay() {
    experiment(|| {
        let source = Scripted { delay: Duration::from_millis(20), ..Scripted::default() };
        let outcome =
            run_phase(config(instant(), 1, 1), &phase(Rate::Closed, SECOND / 2), source).unwrap();
        assert!(outcome.total.completed < 25, "{}", text(&outcome));
        ensure!(outcome.total.completed >= 5, "{}", text(&outcome));
        let (response_ns, lag_ns) =
            (outcome.response().percentile_ns(50.0), outcome.total.send_lag.percentile_ns(50.0));
        ensure!(response_ns < 20_000_000, "the delay counts as latency: {response_ns} ns");
        ensure!(lag_ns < 10_000_000, "the delay counts as send lag: {lag_ns} ns");
        Ok(())
    });
}

#[test]
fn a_source_observes_headers_and_bodies() {
    let address = server(|stream| {
        let response_bytes = b"HTTP/1.1 404 no\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        each_request(stream, |stream| stream.write_all(response_bytes).is_ok());
    });
    let source = Scripted::seeing(|response| {
        assert_eq!(response.status, 404);
        assert_eq!(response.headers[0], ("X-A", b"1".as_slice()));
        assert_eq!(response.body, b"hello");
        Ok(())
    });
    let outcome = run(address, Rate::Constant(100.0), source.stopping_after(30)).unwrap();
    assert_eq!(outcome.total.completed, 30, "{}", text(&outcome));
    assert_eq!(outcome.total.errors.status, 30);
}

/// Sends ten requests, and repeats those that were refused or lost.
struct Following {
    left: u64,
    in_flight: u64,
    cookie: u64,
    expected: [Expected; 1],
    succeeded: Arc<AtomicU64>,
    waits_until_ns: u64,
}

impl RequestSource for Following {
    fn next(&mut self, _: usize) -> Result<Batch<'_>> {
        assert!(self.left > 0);
        self.left -= 1;
        self.in_flight += 1;
        self.cookie += 1;
        Ok(Batch { bytes: GET, requests: &self.expected })
    }

    fn is_stopped(&self) -> bool {
        self.left + self.in_flight == 0
    }

    fn follows(&self) -> bool {
        true
    }

    fn cookie(&self) -> u64 {
        self.cookie
    }

    fn settled(&mut self, cookie: u64, index: usize, fate: Fate, now_ns: u64) {
        assert!(cookie <= self.cookie && index == 0);
        self.in_flight -= 1;
        match fate {
            Fate::Answered { status: 200, .. } => {
                self.succeeded.fetch_add(1, Ordering::Relaxed);
            }
            Fate::Answered { retry_after_s, .. } => {
                assert_eq!(retry_after_s, Some(7));
                self.waits_until_ns = now_ns + 50_000_000;
                self.left += 1;
            }
            Fate::Lost => self.left += 1,
        }
    }

    fn paused_until(&mut self, now_ns: u64) -> Option<u64> {
        if self.left == 0 {
            return Some(u64::MAX);
        }
        (self.waits_until_ns > now_ns).then_some(self.waits_until_ns)
    }
}

#[test]
fn a_source_that_follows_its_requests_learns_their_fates_and_may_pause() {
    let received = AtomicU64::new(0);
    let address = server(move |stream| {
        each_request(stream, |stream| match received.fetch_add(1, Ordering::Relaxed) {
            2 | 7 => stream
                .write_all(b"HTTP/1.1 503 busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
                .is_ok(),
            3 => false,
            _ => stream.write_all(OK).is_ok(),
        });
    });
    let ops = OpNames::default();
    let succeeded = Arc::new(AtomicU64::new(0));
    let source = Following {
        left: 10,
        in_flight: 0,
        cookie: 0,
        expected: [expected(&ops)],
        succeeded: Arc::clone(&succeeded),
        waits_until_ns: 0,
    };
    let mut load =
        Load::start(config(address, 1, 3), vec![Box::new(source)], ops, Env::posix()).unwrap();
    let outcome = load.run(&phase(Rate::Closed, SECOND * 60), &mut |_| true).unwrap();
    check_sums(&outcome);
    assert_eq!(succeeded.load(Ordering::Relaxed), 10);
    assert_eq!(outcome.total.sent, 13, "{}", text(&outcome));
    assert!(outcome.measured_ns >= 50_000_000, "it did not wait");
    assert!(outcome.measured_ns < 30_000_000_000);
}

/// A `PUT` of 32 MiB, more than a socket buffers.
fn large_request() -> &'static [u8] {
    const BODY_BYTES: usize = 32 << 20;
    let mut request =
        format!("PUT / HTTP/1.1\r\nContent-Length: {BODY_BYTES}\r\n\r\n").into_bytes();
    request.resize(request.len() + BODY_BYTES, b'x');
    request.leak()
}

#[test]
fn a_large_request_is_written_in_pieces() {
    let request = large_request();
    let address = server(move |mut stream| {
        let mut received = vec![0; request.len()];
        while stream.read_exact(&mut received).is_ok() {
            assert!(received == request, "the request arrives unchanged");
            stream.write_all(OK).unwrap();
        }
    });
    let source = Scripted::sending(move || Ok(request)).stopping_after(2);
    let outcome = run(address, Rate::Constant(10.0), source).unwrap();
    assert_eq!(outcome.total.completed, 2, "{}", text(&outcome));
    assert_eq!(outcome.total.errors, Errors::default());
}

#[test]
fn a_response_before_the_end_of_the_request_counts_and_ends_the_connection() {
    let request = large_request();
    let address = server(|mut stream| {
        let mut some = [0; 1_000];
        if stream.read(&mut some).is_ok_and(|count| count > 0) {
            stream.write_all(b"HTTP/1.1 413 no\r\nContent-Length: 0\r\n\r\n").unwrap();
            // The client closes first: the server reads nothing more.
            std::thread::sleep(SECOND * 60);
        }
    });
    let source = Scripted::sending(move || Ok(request)).stopping_after(3);
    let outcome = run(address, Rate::Constant(10.0), source).unwrap();
    assert_eq!(outcome.total.completed, 3, "{}", text(&outcome));
    let errors = &outcome.total.errors;
    assert_eq!(errors.status, outcome.total.completed);
    assert_eq!((errors.read, errors.write, errors.timeout), (0, 0, 0), "{}", text(&outcome));
}

#[test]
fn a_server_that_closes_idle_connections_causes_only_reconnects() {
    let timed_out = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for parting in [b"".as_slice(), timed_out] {
        let address = server(move |mut stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            each_request(stream.try_clone().unwrap(), |stream| stream.write_all(OK).is_ok());
            // The client may have closed.
            drop(stream.write_all(parting));
        });
        experiment(|| {
            let phase = phase(Rate::Constant(10.0), SECOND / 2);
            let outcome = run_phase(config(address, 1, 1), &phase, Scripted::default()).unwrap();
            let errors = &outcome.total.errors;
            assert_eq!(errors.connect, 0, "{}", text(&outcome));
            // About one every 20 ms, not as fast as possible.
            let connects = outcome.total.connect.count();
            assert!(connects < 100, "{connects}");
            // If both wake up late, the 408 may arrive while a request is in flight, and count as
            // its response.
            ensure!(errors.status == 0, "{}", text(&outcome));
            ensure!(errors.read + errors.write <= 2, "{}", text(&outcome));
            ensure!(outcome.total.completed >= 3, "{}", text(&outcome));
            ensure!(connects >= 3, "{connects}");
            Ok(())
        });
    }
}
