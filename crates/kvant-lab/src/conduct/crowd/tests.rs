use super::super::stop::Stop;
use super::Crowd;
use crate::plan::{Beside, Plan};
use kvant_load::Target;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const COUNT: usize = 40;

fn planned(keys: &str) -> Beside {
    let text = format!(
        "[workload.get]\nbeside = {{ kind = \"get\", idle = true, connections = {COUNT}{keys} }}"
    );
    let plan = Plan::parse(&text, Path::new("t.toml")).unwrap();
    *plan.workloads[0].beside.clone().unwrap()
}

/// A server that responds to the first request of a connection, and closes it when anything
/// follows.
fn target() -> Target {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                }
                let is_sent = stream.write_all(RESPONSE).is_ok();
                // Any end of the wait ends the connection.
                assert!(!is_sent || stream.read(&mut buffer).is_ok_and(|count| count <= 1));
            });
        }
    });
    Target::parse(&url).unwrap().resolve().unwrap()
}

#[test]
fn idle_connections_stay_open() {
    let crowd = Crowd::start(&planned(""), &target(), &Stop::default()).unwrap();
    let total = crowd.finish().total;
    assert_eq!((total.planned, total.sent, total.completed), (40, 40, 40));
    assert_eq!(total.errors.total(), 0);
}

#[test]
fn slow_heads_are_sent_byte_by_byte_on_connections_that_are_opened_again() {
    let start = Instant::now();
    let crowd = Crowd::start(&planned(", slow-heads = 30"), &target(), &Stop::default()).unwrap();
    // A byte of a head, which comes once a second on each, ends a connection.
    std::thread::sleep(Duration::from_millis(700));
    let total = crowd.finish().total;
    let closed = total.errors.read;
    // A machine that stands still catches up.
    let closed_max = (start.elapsed().as_secs_f64() * 30.0) as u64 + 1;
    assert!((10..=closed_max).contains(&closed), "{closed} of at most {closed_max}");
    // Each of them has a request again.
    assert_eq!((total.planned, total.sent), (40 + closed, 40 + closed));
    assert!((40 + closed / 2..=40 + closed).contains(&total.completed), "{total:?}");
}

#[test]
fn no_connection_is_opened_when_the_run_is_to_end() {
    let stop = Stop::default();
    stop.request();
    let start = Instant::now();
    let crowd = Crowd::start(&planned(""), &target(), &stop).unwrap();
    let total = crowd.finish().total;
    assert_eq!((total.planned, total.sent, total.errors.connect), (40, 0, 40));
    assert!(start.elapsed() < Duration::from_secs(5));
}
