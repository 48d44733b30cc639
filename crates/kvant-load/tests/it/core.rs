//! The event loop.

use crate::harness::{check_sums, ensure, experiment, text};
use kvant_env::Env;
use kvant_load::source::fixed::FixedSource;
use kvant_load::{
    Address, Arrival, Interval, Load, LoadConfig, OpNames, Outcome, Phase, Rate, RequestSource,
    StatusSet, Target,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
pub(crate) const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server that calls `serve` with each connection on a new thread. It runs until the end of the
/// test.
pub(crate) fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

/// Calls `respond` for each request (a head without a body) until it returns `false` or the client
/// closes.
pub(crate) fn each_request(mut stream: TcpStream, mut respond: impl FnMut(&mut TcpStream) -> bool) {
    stream.set_nodelay(true).unwrap();
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if !respond(&mut stream) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => unread.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

pub(crate) fn instant() -> SocketAddr {
    server(|stream| each_request(stream, |stream| stream.write_all(OK).is_ok()))
}

pub(crate) fn target(address: SocketAddr) -> Target {
    Target {
        url: format!("http://{address}/"),
        is_tls: false,
        host: address.ip().to_string(),
        port: Some(address.port()),
        authority: address.to_string(),
        path: "/".to_owned(),
        addresses: vec![Address::Tcp(address)],
    }
}

pub(crate) fn config(
    address: SocketAddr,
    thread_count: usize,
    connection_count: usize,
) -> LoadConfig {
    LoadConfig {
        targets: vec![target(address)],
        thread_count,
        connection_count,
        // Long enough for a machine that stalls.
        timeout: Duration::from_secs(30),
        arrival: Arrival::Uniform,
        seed: 1,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::from_micros(50),
        interval: Duration::from_secs(1),
        ca_pem: None,
    }
}

pub(crate) fn phase(rate: Rate, duration: Duration) -> Phase {
    Phase { rate, warmup: Duration::ZERO, duration, request_count_max: None }
}

pub(crate) fn fixed(
    config: &LoadConfig,
    ops: &OpNames,
    pipeline_count: usize,
) -> Vec<Box<dyn RequestSource>> {
    let source = FixedSource::new(&[GET.to_vec()], ops.intern("GET /"), false, pipeline_count);
    (0..config.thread_count).map(|_| Box::new(source.clone()) as Box<dyn RequestSource>).collect()
}

fn load(config: LoadConfig, pipeline_count: usize) -> Load {
    let ops = OpNames::default();
    let sources = fixed(&config, &ops, pipeline_count);
    Load::start(config, sources, ops, Env::posix()).unwrap()
}

fn run(config: LoadConfig, phase: Phase) -> Outcome {
    load(config, 1).run(&phase, &mut |_| true).unwrap()
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_closed_loop_keeps_every_connection_busy() {
    experiment(|| {
        let outcome = run(config(instant(), 2, 5), phase(Rate::Closed, SECOND * 3 / 2));
        check_sums(&outcome);
        assert_eq!(outcome.total.errors, Default::default());
        assert_eq!(outcome.total.connect.count(), 5);
        assert_eq!(outcome.measured_ns, 1_500_000_000);
        assert_eq!(outcome.seconds.len(), 2);
        assert!(outcome.in_flight <= 5);
        let names: Vec<&str> = outcome.total.ops.iter().map(|op| op.name.as_str()).collect();
        assert_eq!(names, ["GET /"]);
        assert_eq!(outcome.total.read_bytes, outcome.total.completed * OK.len() as u64);
        assert!(!outcome.is_cut_short);
        ensure!(outcome.total.completed > 500, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn a_constant_rate_is_kept_exactly() {
    experiment(|| {
        let outcome = run(config(instant(), 2, 4), phase(Rate::Constant(500.0), SECOND * 2));
        check_sums(&outcome);
        assert_eq!(outcome.total.planned, 1_000);
        assert_eq!(outcome.seconds.len(), 2);
        ensure!(outcome.total.completed >= 990, "{}", text(&outcome));
        let lag_ns = outcome.total.send_lag.percentile_ns(50.0);
        ensure!(lag_ns < 1_000_000, "the median send lag is {lag_ns} ns");
        Ok(())
    });
}

#[test]
fn threads_share_a_random_plan() {
    let mut config = config(instant(), 3, 3);
    config.arrival = Arrival::Poisson;
    let outcome = run(config, phase(Rate::Constant(1_000.0), SECOND));
    check_sums(&outcome);
    // 6 standard deviations.
    assert!(outcome.total.planned.abs_diff(1_000) < 190, "{}", text(&outcome));
}

#[test]
fn a_ramp_plans_the_mean_of_its_rates() {
    let ramp = Rate::Ramp { from: 0.0, to: 1_000.0 };
    let outcome = run(config(instant(), 1, 2), phase(ramp, SECOND * 2));
    check_sums(&outcome);
    assert_eq!(outcome.total.planned, 1_000);
    assert!(outcome.seconds[1].planned > 2 * outcome.seconds[0].planned, "{:?}", outcome.seconds);
}

#[test]
fn private_plans_add_up_to_the_rate() {
    experiment(|| {
        let mut config = config(instant(), 2, 7);
        config.arrival = Arrival::Wrk2;
        let outcome = run(config, phase(Rate::Constant(700.0), SECOND));
        check_sums(&outcome);
        assert_eq!(outcome.total.planned, 700);
        ensure!(outcome.total.completed >= 600, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn the_exact_schedule_staggers_connections() {
    experiment(|| {
        let mut config = config(instant(), 1, 20);
        config.arrival = Arrival::Wrk2;
        config.wrk2_exact = true;
        let mut load = load(config, 1);
        for connects in [20, 0] {
            let outcome = load.run(&phase(Rate::Constant(1_000.0), SECOND), &mut |_| true).unwrap();
            check_sums(&outcome);
            // The last starts after 95 ms: on average, 47.5 ms of 1 s are not planned.
            assert!(outcome.total.planned.abs_diff(952) <= 20, "{}", text(&outcome));
            assert_eq!(outcome.threads[0].calibration_mean_ns, None, "there was no time for it");
            assert!(outcome.threads[0].rates.is_empty());
            let connect_count = outcome.total.connect.count();
            ensure!(connect_count == connects, "{connect_count}, not {connects}");
        }
        Ok(())
    });
}

#[test]
fn a_warm_up_is_sent_and_not_recorded() {
    let received = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&received);
    let address = server(move |stream| {
        each_request(stream, |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            stream.write_all(OK).is_ok()
        });
    });
    for rate in [Rate::Constant(200.0), Rate::Closed] {
        experiment(|| {
            received.store(0, Ordering::Relaxed);
            let warmup = Duration::from_millis(500);
            let outcome = run(config(address, 1, 2), Phase { warmup, ..phase(rate, SECOND / 2) });
            check_sums(&outcome);
            assert_eq!(outcome.measured_ns, 500_000_000);
            let connects = outcome.total.connect.count();
            assert_eq!(connects, 2, "connections of the warm-up are recorded");
            if rate != Rate::Closed {
                assert_eq!(outcome.total.planned, 100);
            }
            let received = received.load(Ordering::Relaxed);
            ensure!(
                received >= outcome.total.completed + 50,
                "{received} requests, {}",
                text(&outcome)
            );
            Ok(())
        });
    }
}

#[test]
fn a_number_of_requests_is_met_exactly() {
    let limited = Phase { request_count_max: Some(1_234), ..phase(Rate::Closed, SECOND * 60) };
    let outcome = run(config(instant(), 3, 10), limited);
    check_sums(&outcome);
    assert_eq!(outcome.total.completed, 1_234);
    assert_eq!(outcome.in_flight, 0);
    assert!(!outcome.is_cut_short);
}

#[test]
fn lost_requests_count_towards_a_number_of_requests() {
    let received = AtomicU64::new(0);
    let address = server(move |stream| {
        each_request(stream, |stream| {
            let is_lost = received.fetch_add(1, Ordering::Relaxed) % 10 == 5;
            !is_lost && stream.write_all(OK).is_ok()
        });
    });
    let limited = Phase { request_count_max: Some(300), ..phase(Rate::Closed, SECOND * 60) };
    let outcome = run(config(address, 2, 4), limited);
    check_sums(&outcome);
    let read = outcome.total.errors.read;
    assert_eq!((outcome.total.sent, outcome.total.completed + read, read), (300, 300, 30));
}

/// With a server too slow for the plan, the number of requests limits what is planned.
#[test]
fn a_number_of_requests_ends_the_plan() {
    let address = server(|stream| {
        each_request(stream, |stream| {
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(OK).is_ok()
        });
    });
    let limited =
        Phase { request_count_max: Some(40), ..phase(Rate::Constant(1_000.0), SECOND * 60) };
    let outcome = run(config(address, 2, 4), limited);
    check_sums(&outcome);
    let total = &outcome.total;
    assert_eq!((total.planned, total.sent, total.completed), (40, 40, 40));
    assert_eq!((outcome.backlog, outcome.in_flight), (0, 0));
    assert!(outcome.unanswered.is_empty() && !outcome.is_cut_short);
    // The time ends first.
    let outcome =
        run(config(address, 2, 4), Phase { duration: Duration::from_millis(200), ..limited });
    check_sums(&outcome);
    let total = &outcome.total;
    assert!(total.planned == 40 && total.sent < 40, "{}", text(&outcome));
    assert_eq!(outcome.backlog, 40 - total.sent);
}

#[test]
fn each_second_is_reported_and_can_end_the_phase() {
    let mut load = load(config(instant(), 2, 2), 1);
    let mut seen = Vec::new();
    let see = &mut |second: &Interval| {
        seen.push((second.start_ns, second.end_ns, second.planned));
        seen.len() < 2
    };
    let outcome = load.run(&phase(Rate::Constant(100.0), SECOND * 60), see).unwrap();
    check_sums(&outcome);
    let second_ns = 1_000_000_000;
    assert_eq!(seen[..2], [(0, second_ns, 100), (second_ns, 2 * second_ns, 100)]);
    assert!(outcome.is_cut_short);
    assert!(outcome.measured_ns < 30 * second_ns);
}

#[test]
fn any_thread_can_stop_a_run() {
    let mut load = load(config(instant(), 2, 2), 1);
    let stopper = load.stopper();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stopper.stop();
    });
    let warmup = SECOND * 60;
    for rate in [Rate::Constant(100.0), Rate::Closed] {
        let outcome =
            load.run(&Phase { warmup, ..phase(rate, SECOND * 60) }, &mut |_| true).unwrap();
        check_sums(&outcome);
        assert!(outcome.is_cut_short);
        assert_eq!((outcome.measured_ns, outcome.total.planned), (0, 0));
    }
    thread.join().unwrap();
}

#[test]
fn all_targets_are_loaded() {
    let received = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let targets = received.each_ref().map(|received| {
        let received = Arc::clone(received);
        target(server(move |stream| {
            each_request(stream, |stream| {
                received.fetch_add(1, Ordering::Relaxed);
                stream.write_all(OK).is_ok()
            });
        }))
    });
    experiment(|| {
        received.iter().for_each(|received| received.store(0, Ordering::Relaxed));
        let config = LoadConfig { targets: targets.to_vec(), ..config(instant(), 1, 4) };
        let ops = OpNames::default();
        let source = FixedSource::new(&[GET.to_vec(), GET.to_vec()], ops.intern("GET"), false, 1);
        let mut load = Load::start(config, vec![Box::new(source)], ops, Env::posix()).unwrap();
        let outcome = load.run(&phase(Rate::Constant(400.0), SECOND / 2), &mut |_| true).unwrap();
        check_sums(&outcome);
        let received = received.each_ref().map(|received| received.load(Ordering::Relaxed));
        ensure!(received.iter().all(|received| *received >= 80), "{received:?}");
        Ok(())
    });
}

#[test]
fn with_batch_latency_only_the_last_response_of_a_batch_is_timed() {
    experiment(|| {
        let mut config = config(instant(), 1, 2);
        config.batch_latency = true;
        let outcome =
            load(config, 4).run(&phase(Rate::Constant(400.0), SECOND / 2), &mut |_| true).unwrap();
        // At the end, each of the two connections may have up to three responses of a batch.
        let of_whole_batches = outcome.response().count() * 4;
        assert!(
            (of_whole_batches..=of_whole_batches + 6).contains(&outcome.total.completed),
            "{of_whole_batches}, {}",
            text(&outcome)
        );
        ensure!(outcome.total.completed >= 150, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn a_contradictory_configuration_is_refused() {
    let refuse = |config: LoadConfig, source_count: usize| {
        let mut sources = fixed(&config, &OpNames::default(), 1);
        sources.truncate(source_count);
        let refused = Load::start(config, sources, OpNames::default(), Env::posix());
        refused.err().expect("it is refused").to_string()
    };
    let address = "127.0.0.1:1".parse().unwrap();
    assert!(refuse(config(address, 4, 3), 4).contains("4 threads cannot share 3 connections"));
    assert!(refuse(config(address, 2, 3), 1).contains("2 threads need as many sources"));
    let without_target = LoadConfig { targets: Vec::new(), ..config(address, 1, 1) };
    assert!(refuse(without_target, 1).contains("at least one target"));
    assert!(refuse(config(address, 1, 1 << 40), 1).contains("file descriptors"));
}

/// Regression: connections with plans of their own held the initial rate, and results were called a
/// ramp.
#[test]
fn a_ramp_with_private_plans_is_refused() {
    let private = LoadConfig { arrival: Arrival::Wrk2, ..config(instant(), 1, 2) };
    let exact = LoadConfig { wrk2_exact: true, ..config(instant(), 1, 2) };
    for config in [private, exact] {
        let mut load = load(config, 1);
        let ramp = phase(Rate::Ramp { from: 0.0, to: 600.0 }, SECOND);
        let refused = load.run(&ramp, &mut |_| true).unwrap_err().to_string();
        assert!(refused.contains("a ramp needs"), "{refused}");
        let constant = phase(Rate::Constant(100.0), SECOND / 4);
        let planned = load.run(&constant, &mut |_| true).unwrap().total.planned;
        assert!(planned.abs_diff(25) <= 2, "the load goes on: {planned}");
    }
}
