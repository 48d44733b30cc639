//! Nodes of a real cluster are killed, paused and cut off while clients read and write by quorum,
//! and come back: no acknowledged write is lost, requests fail for no longer than it takes to find
//! out, and what a node has missed it has afterwards.
//!
//! `cargo xtask torture cluster` starts the nodes, in a network of their own.

mod clients;
mod history;
mod missed;
mod nodes;

use crate::clients::{number, seed};
use crate::connection::Connection;
use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use clients::{Course, KEY_COUNT, Request, Seen, histories, key, number_in};
use history::{KeyHistory, Time};
use kvant_env::rng::Rng;
use missed::Missed;
use nodes::{Fault, Node, read_alone, wait_for_hints, wait_until};
use std::net::SocketAddr;
use std::time::Duration;
use twox_hash::XxHash3_64;

const FAULTS_DEFAULT: u64 = 3;
const BUCKET_COUNT: u64 = 16;
/// From the beginning of a fault, or of its end, no request by quorum fails after this time. Two
/// seconds and one to see that a node is away, two for what the nodes themselves wait for a write,
/// five for a read, and what a busy machine adds.
const DETECTION_MAX: Duration = Duration::from_secs(10);

/// Requests go on for this long after they must not fail any more.
const AFTERWARDS: Duration = Duration::from_secs(4);

/// Twice the time after which a node counts as silent: such a request waited for one.
const LONG_NS: Time = 500_000_000;

#[test]
#[ignore = "needs three nodes: cargo xtask torture cluster"]
fn faults_of_single_nodes_lose_nothing() {
    let mut rng = Rng::new(seed("cluster_faults"));
    let fault_count = number("KVANT_CLUSTER_FAULTS").unwrap_or(FAULTS_DEFAULT);
    let nodes = Node::all();
    let dir = TempDir::new();
    let keyspace = format!("faults_{}", std::process::id());
    let server = serve(dir.path(), &nodes, &keyspace);
    let course = Course::new();
    let mut all_seen = Vec::new();
    for (fault, index) in nodes::plan(&mut rng, fault_count) {
        let node = &nodes[index as usize];
        println!("node {} is {fault:?}", node.number);
        let client_seed = rng.next_u64();
        let missed = Missed::prepare(server.addr(), all_seen.len());
        let (seen, moments) = course.run(server.addr(), client_seed, || {
            round(&course, &server, node, fault, &missed, &mut rng)
        });
        report(&seen, &moments);
        all_seen.extend(seen);
        let histories = histories(&all_seen);
        for (number, history) in histories.iter().enumerate() {
            let found = history.contradictions();
            assert!(found.is_empty(), "{}: {found:?}", key(number as u64));
        }
        wait_for_hints(&nodes);
        check_alone(&nodes, node, &keyspace, &histories, &missed);
        wait_until("all nodes answer again", || put(server.addr(), "ack=3&from=3").0 == 201);
    }
    assert_eq!(server.stop().code, Some(0));
}

fn serve(dir: &std::path::Path, nodes: &[Node], keyspace: &str) -> TestServer {
    let addresses: Vec<String> = nodes.iter().map(|node| node.addr.to_string()).collect();
    let buckets = BUCKET_COUNT.to_string();
    TestServer::start_with(
        dir,
        &[
            "--engine",
            "cassandra",
            "--cluster-nodes",
            &addresses.join(","),
            "--cluster-keyspace",
            keyspace,
            "--cluster-replicas",
            "3",
            "--cluster-buckets",
            &buckets,
            "--overload",
            "adaptive",
        ],
    )
}

struct Moments {
    struck: Time,
    healed: Time,
}

const BEFORE: &str = "before the fault";

/// A fault at a random moment, and its end.
fn round(
    course: &Course,
    server: &TestServer,
    node: &Node,
    fault: Fault,
    missed: &Missed,
    rng: &mut Rng,
) -> Moments {
    let mut pause = |from_ms, to_ms| {
        std::thread::sleep(Duration::from_millis(from_ms + rng.below(to_ms - from_ms)));
    };
    pause(2_000, 4_000);
    let struck = course.now();
    node.strike(fault);
    // All three cannot answer. At first the nodes wait for the third; later they know.
    let mut too_few = 0;
    for _ in 0..3 {
        let (status, body) = put(server.addr(), "ack=3&from=3");
        assert_eq!(status, 504, "{body}");
        let is_too_few = body.contains("\"not-enough-replicas\"");
        assert!(is_too_few || body.contains("\"no-answer\""), "{body}");
        if is_too_few {
            assert!(body.contains("\"required\":3") && body.contains("\"received\":2"), "{body}");
            too_few += 1;
        }
        let status_request = b"GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert!(server.exchange(status_request).starts_with(b"HTTP/1.1 200 "));
        pause(1_000, 4_000);
    }
    assert!(too_few > 0, "no response had the count of nodes");
    missed.write(server.addr());
    pause(3_000, 8_000);
    go_on_until(course, struck);
    let healed = course.now();
    node.heal(fault);
    wait_until("all nodes answer again", || put(server.addr(), "replicas=3/3").0 == 201);
    go_on_until(course, healed);
    Moments { struck, healed }
}

/// Lets requests go on until enough of them had to succeed after a change at `changed`.
fn go_on_until(course: &Course, changed: Time) {
    let until = changed + (DETECTION_MAX + AFTERWARDS).as_nanos() as Time;
    std::thread::sleep(Duration::from_nanos(until.saturating_sub(course.now())));
}

/// A write of its own key.
fn put(addr: SocketAddr, replicas: &str) -> (u16, String) {
    request(addr, "PUT", &format!("all-nodes&{replicas}"), "1")
}

/// A request on a connection of its own. `id` may have other parameters behind it.
fn request(addr: SocketAddr, method: &str, id: &str, body: &str) -> (u16, String) {
    let mut connection = Connection::open(addr).expect("the server listens");
    let length = body.len();
    let request = format!(
        "{method} /v0/entity?id={id} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    connection.send(request.as_bytes()).expect("the server takes requests");
    let response = connection.receive().expect("every request gets a response");
    (response.status, String::from_utf8(response.body).expect("text"))
}

/// Prints how long requests failed or took, and checks it.
fn report(seen: &[Seen], moments: &Moments) {
    let requests = || seen.iter().flat_map(|seen| &seen.requests);
    for (name, from, to) in [
        (BEFORE, 0, moments.struck),
        ("from the fault on", moments.struck, moments.healed),
        ("from its end on", moments.healed, Time::MAX),
    ] {
        let during: Vec<&Request> =
            requests().filter(|request| (from..to).contains(&request.end)).collect();
        let failed = || during.iter().filter(|request| request.is_failed());
        let failed_for = failed().map(|request| request.end - from).max().unwrap_or(0);
        let longest = during.iter().map(|request| request.end - request.begin).max().unwrap_or(0);
        let took_long = |request: &&&Request| request.end - request.begin > LONG_NS;
        let long_count = during.iter().filter(took_long).count();
        let mut problems: Vec<&str> = failed().map(|request| kind(&request.problem)).collect();
        problems.sort_unstable();
        problems.dedup();
        println!(
            "  {name}: {} requests, {long_count} took more than 500 ms, the longest {} ms; {} failed \
             {problems:?}, the last after {} ms",
            during.len(),
            longest / 1_000_000,
            failed().count(),
            failed_for / 1_000_000
        );
        assert!(Duration::from_nanos(longest) <= DETECTION_MAX, "{name}");
        if name == BEFORE {
            assert!(failed().count() == 0 && !during.is_empty(), "{name}: {problems:?}");
            continue;
        }
        let bound = from + DETECTION_MAX.as_nanos() as Time;
        assert!(from + failed_for <= bound, "{name}");
        let late_count = during.iter().filter(|request| request.begin > bound).count();
        assert!(late_count > 100, "{name}: {late_count} requests had to succeed");
    }
}

fn kind(problem: &str) -> &str {
    problem.split("\"type\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or(problem)
}

/// Checks every record of a node that was away, with the others stopped.
fn check_alone(
    nodes: &[Node],
    node: &Node,
    keyspace: &str,
    histories: &[KeyHistory],
    missed: &Missed,
) {
    let bucketed = |key: String| {
        let key = key.into_bytes();
        ((XxHash3_64::oneshot(&key) % BUCKET_COUNT) as i32, key)
    };
    let keys = (0..KEY_COUNT).map(key).chain(missed.keys());
    let found = read_alone(nodes, node, keyspace, &keys.map(bucketed).collect::<Vec<_>>());
    let (found, of_missed) = found.split_at(KEY_COUNT as usize);
    for ((number, history), value) in histories.iter().enumerate().zip(found) {
        let value = value.as_deref().map(number_in);
        assert!(
            history.may_end_with(value),
            "node {} has {value:?} for {}, whose last writes are {:?}",
            node.number,
            key(number as u64),
            history.writes.iter().rev().take(5).collect::<Vec<_>>()
        );
    }
    missed.check(of_missed);
    println!(
        "  node {} has all {KEY_COUNT} records as they are, and {} that were written only while \
         it was away",
        node.number,
        of_missed.len()
    );
}
