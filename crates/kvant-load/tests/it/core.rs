//! The event loop against servers that behave, and servers that do not.

use kvant_env::Env;
use kvant_load::source::fixed::FixedSource;
use kvant_load::{
    Address, Arrival, Load, LoadConfig, OpNames, Outcome, Phase, Rate, RequestSource, StatusSet, Target,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server that hands each connection to `serve` on a thread of its own. It lives as long as the test.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
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

/// Calls `answer` for each request (a head without a body) until it says `false` or the client is gone.
fn each_request(mut stream: TcpStream, mut answer: impl FnMut(&mut TcpStream) -> bool) {
    stream.set_nodelay(true).unwrap();
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if !answer(&mut stream) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => unread.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

fn instant() -> SocketAddr {
    server(|stream| each_request(stream, |stream| stream.write_all(OK).is_ok()))
}

fn target(address: SocketAddr) -> Target {
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

fn config(address: SocketAddr, thread_count: usize, connection_count: usize) -> LoadConfig {
    LoadConfig {
        targets: vec![target(address)],
        thread_count,
        connection_count,
        timeout: Duration::from_secs(2),
        arrival: Arrival::Uniform,
        seed: 1,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::from_micros(50),
        ca_pem: None,
    }
}

fn phase(rate: Rate, duration: Duration) -> Phase {
    Phase {
        rate,
        warmup: Duration::ZERO,
        duration,
        request_count_max: None,
    }
}

fn fixed(config: &LoadConfig, ops: &OpNames, pipeline_count: usize) -> Vec<Box<dyn RequestSource>> {
    let source = FixedSource::new(&[GET.to_vec()], ops.intern("GET /"), false, pipeline_count);
    (0..config.thread_count)
        .map(|_| Box::new(source.clone()) as Box<dyn RequestSource>)
        .collect()
}

fn load(config: LoadConfig, pipeline_count: usize) -> Load {
    let ops = OpNames::default();
    let sources = fixed(&config, &ops, pipeline_count);
    Load::start(config, sources, ops, Env::posix()).unwrap()
}

fn run(config: LoadConfig, phase: Phase) -> Outcome {
    load(config, 1).run(&phase, &mut |_| true).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

/// What holds for every outcome.
fn check_sums(outcome: &Outcome) {
    let total = &outcome.total;
    let statuses: u64 = total
        .ops
        .iter()
        .flat_map(|op| &op.statuses)
        .map(|(_, count)| count)
        .sum();
    assert_eq!(statuses, total.completed);
    assert_eq!(total.response().count(), total.completed + total.errors.timeout);
    assert_eq!(total.service().count(), total.completed + total.errors.timeout);
    assert_eq!(outcome.unanswered.count(), outcome.backlog + outcome.in_flight);
    assert_eq!(
        total.sent,
        total.completed + total.errors.read + total.errors.timeout + outcome.in_flight
    );
    assert_eq!(total.planned, total.sent + total.errors.write + outcome.backlog);
    assert_eq!(
        outcome.seconds.iter().map(|second| second.completed).sum::<u64>(),
        total.completed
    );
    assert_eq!(
        outcome.seconds.iter().map(|second| second.planned).sum::<u64>(),
        total.planned
    );
}

#[test]
fn a_closed_loop_keeps_every_connection_busy() {
    let outcome = run(config(instant(), 2, 5), phase(Rate::Closed, SECOND * 3 / 2));
    check_sums(&outcome);
    assert!(outcome.total.completed > 500, "{}", outcome.total.completed);
    assert_eq!(outcome.total.errors, Default::default());
    assert_eq!(outcome.total.connect.count(), 5);
    assert_eq!(outcome.measured_ns, 1_500_000_000);
    assert_eq!(outcome.seconds.len(), 2);
    assert!(outcome.in_flight <= 5);
    assert_eq!(outcome.op_names, ["GET /"]);
    assert_eq!(
        outcome.total.read_bytes,
        outcome.total.completed * OK.len() as u64
    );
    assert!(!outcome.is_cut_short);
}

#[test]
fn a_constant_rate_is_kept_to_the_request() {
    let outcome = run(config(instant(), 2, 4), phase(Rate::Constant(500.0), SECOND * 2));
    check_sums(&outcome);
    assert_eq!(outcome.total.planned, 1_000);
    assert_eq!(outcome.seconds.len(), 2);
    assert!(outcome.total.completed >= 990, "{}", outcome.total.completed);
    let lag_ns = outcome.total.send_lag.percentile_ns(50.0);
    assert!(
        lag_ns < 1_000_000,
        "half of the requests are sent {lag_ns} ns late"
    );
}
