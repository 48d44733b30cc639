//! The same bytes sent to two servers, on the fast path and through hyper: the responses are the
//! same bytes.

use crate::client::Client;
use crate::fixture::{Fixture, NEVER, config};
use kvant_env::rng::Rng;
use kvant_env::testing::{entropy_seed, unread_bytes};
use kvant_server::ServerConfig;
use serde_json::Value;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

const CONNECTIONS: u64 = 600;
/// Parts of this length arrive whole.
const PART_BYTES: usize = 32 << 10;
/// A header without meaning, and one that only hyper accepts.
const BOTH_WAYS: [&str; 2] = ["TX", "TE"];

const ODD_METHODS: [&str; 9] =
    ["HEAD", "POST", "get", "put", "PATCH", "OPTIONS", "G ET", "", "CONNECT"];
#[rustfmt::skip]
const ODD_PATHS: [&str; 14] = [
    "", "/", "*", "//v0/status", "http://localhost/v0/status", "http://localhost/v0/entity", "/v0/entity/", "/V0/entity", "/v0/entit%79", "/v0/./status",
    "/health", "/v0/status#f", "x:1", "/v0/entities",
];
#[rustfmt::skip]
const KEYS: [&str; 8] = ["?id=e", "?id=s", "?id=m", "?id=l", "?id=h", "?id=%61", "?id=new", "?id=a+b"];
#[rustfmt::skip]
const ODD_KEYS: [&str; 22] = [
    "", "?", "?id", "?id=", "?id=%", "?id=%4", "?id=%zz", "?id=%C3%A4%00%ff", "?id=a?b", "?id=a=b", "?id=a&id=b", "?ID=a", "?&&id=s&",
    "?%69d=a", "?id=\u{e4}", "?id=a\"b", "?id=a b", "?id=a\tb", "?id=a#id=b", "?id={}|^`\\", "?id=[]<>", "?id=/?:@!$'()*,;-._~",
];
#[rustfmt::skip]
const MORE_PARAMETERS: [&str; 22] = [
    "&ttl=1", "&ttl=0", "&ttl=", "&ttl=%31", "&ttl=315360000", "&ttl=315360001", "&ttl=+1", "&ttl=1&ttl=1", "&ack=1&from=1", "&ack=1",
    "&from=1", "&ack=2&from=2", "&ack=1&from=1&ack=1", "&replicas=1/1", "&replicas=1%2F1", "&replicas=1/2", "&replicas=", "&x=y", "&x",
    "&", "&id=b", "&start=a",
];
#[rustfmt::skip]
const ODD_VERSIONS: [&str; 9] = [" HTTP/1.0", " HTTP/1.0", " HTTP/1.0", " HTTP/2.0", "", " HTTP/1.1 ", "  HTTP/1.1", " http/1.1", " HTTP/1.12"];
#[rustfmt::skip]
const ODD_HOSTS: [&str; 18] = [
    "host: x", "HOST:x", "Host:", "Host: \t x \t", "Host : x", "Host: x\r\nHost: x", "X: y", " Host: x", "Host: \u{e4}", "Host: a b",
    "Host: y", "Host: y:80", "Host: X:1", "Host: localhost:1", "Host: 127.0.0.1", "Host: [::1]:8080", "Host: localhost.y", "Host: a b/c@",
];
/// `N` is the length.
#[rustfmt::skip]
const ODD_LENGTHS: [&str; 24] = [
    "content-LENGTH:N", "Content-Length: 00000N", "Content-Length: 000000000000000000000000000N", "Content-Length: +N", "Content-Length: -N",
    "Content-Length: N, N", "Content-Length: N\r\nContent-Length: N", "Content-Length: N\r\nContent-Length: 4",
    "Content-Length: N\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: N",
    "Content-Length: 18446744073709551616", "Content-Length: 18446744073709551615", "Content-Length: 18446744073709551614",
    "Content-Length:", "Content-Length: ", "Content-Length: 0x3", "Content-Length: N.0", "Content-Length: \u{663}", "Content-Length: 1 1",
    "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked", "Content-Length : N", "X: no-length",
];
#[rustfmt::skip]
const ODD_HEADERS: [&str; 46] = [
    "Connection: close", "connection: CLOSE", "Connection: keep-alive", "Connection: Keep-Alive", "Connection:", "Connection: keep-alive, close",
    "Connection: upgrade", "Connection: keep-alive\r\nConnection: close", "Connection: close\r\nConnection: keep-alive", "Connection: x",
    "Keep-Alive: timeout=5", "Upgrade: h2c", "Upgrade: websocket", "Expect: 100-continue", "Expect: x", "TE: trailers", "Trailer: x",
    "User-Agent: \u{e4}", "X:\ty\t", "X: a\rb", "X: a\0b", "X", ": y", "X y: z", " folded", "\tfolded", "X: a\r\n b", "Accept: */*",
    "Content-Type: text/plain", "Range: bytes=0-1", "If-None-Match: *", "Accept-Encoding: gzip", "Transfer-Encoding: chunked", "\u{e4}: x",
    "X: \u{7f}", "Cookie: a=b; c=d", "Content-Encoding: gzip", "X-HTTP-Method-Override: PUT", "Proxy-Connection: close", "Content-Length: 0",
    "Origin: http://localhost", "Origin: http://example.com", "Origin: null", "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-origin",
];
const BODY_BYTES: [usize; 9] = [0, 1, 100, 8191, 8192, 8193, 20_000, 100_000, 100_001];

fn any<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// Mostly `usual`, so that odd parts mostly come alone.
fn mostly<'a>(rng: &mut Rng, usual: &'a str, odd: &[&'a str]) -> &'a str {
    if rng.one_in(12) { any(rng, odd) } else { usual }
}

fn random_request(rng: &mut Rng) -> Vec<u8> {
    let usual_method = any(rng, &["GET", "GET", "PUT", "PUT", "DELETE"]);
    let method = mostly(rng, usual_method, &ODD_METHODS);
    let usual_path = any(rng, &["/v0/entity", "/v0/entity", "/v0/entity", "/v0/status"]);
    let path = mostly(rng, usual_path, &ODD_PATHS);
    let usual_key = any(rng, &KEYS);
    let key = match rng.below(60) {
        0 => format!("?id={}", "k".repeat(16_383 + rng.below(3) as usize)),
        1 => format!("?id={}", "%6B".repeat(5000)),
        _ => mostly(rng, usual_key, &ODD_KEYS).to_string(),
    };
    let more = mostly(rng, "", &MORE_PARAMETERS);
    let version = mostly(rng, " HTTP/1.1", &ODD_VERSIONS);
    let mut headers = vec![mostly(rng, "Host: x", &ODD_HOSTS).to_string()];
    let mut body = Vec::new();
    if (usual_method == "PUT") != rng.one_in(20) {
        let body_bytes = if rng.one_in(3) { any(rng, &BODY_BYTES) } else { 3 };
        let length =
            mostly(rng, "Content-Length: N", &ODD_LENGTHS).replace('N', &body_bytes.to_string());
        body = vec![b'b'; body_bytes];
        if length.contains("chunked") {
            let end = if body_bytes == 0 { "" } else { "0\r\n\r\n" };
            body =
                [format!("{body_bytes:x}\r\n").as_bytes(), &body, b"\r\n", end.as_bytes()].concat();
        } else if rng.one_in(20) {
            body.pop();
        } else if rng.one_in(20) {
            body.extend_from_slice(b"\r\n");
        }
        headers.push(length);
    }
    let header = match rng.below(30) {
        0 => vec!["a: b"; 12 + rng.below(5) as usize].join("\r\n"),
        1 => vec!["a: b"; 97 + rng.below(4) as usize].join("\r\n"),
        2 => format!("X: {}", "y".repeat(any(rng, &[9000, 70_000]))),
        3..14 => any(rng, &ODD_HEADERS).to_string(),
        _ => "Accept: x".to_string(),
    };
    headers.insert(rng.below(headers.len() as u64 + 1) as usize, header);
    let before = mostly(rng, "", &["\r\n", "\n", "\r\n\r\n", " ", "\0", "\r"]);
    let line_end = mostly(rng, "\r\n", &["\n", "\n", "\r", "\r\r\n"]);
    let head = format!(
        "{before}{method} {path}{key}{more}{version}{line_end}{}{line_end}{line_end}",
        headers.join(line_end)
    );
    [head.as_bytes(), &body].concat()
}

/// Requests one by one, at once, or cut anywhere.
fn random_pieces(rng: &mut Rng) -> Vec<Vec<u8>> {
    let count = if rng.one_in(3) { 1 + rng.below(4) } else { 1 };
    let requests: Vec<_> = (0..count).map(|_| random_request(rng)).collect();
    match rng.below(5) {
        0 => vec![requests.concat()],
        1 => {
            let (mut rest, mut pieces) = (requests.concat(), Vec::new());
            while rest.len() > 1 && pieces.len() < 10 {
                let behind = rest.split_off(1 + rng.below(rest.len() as u64 - 1) as usize);
                pieces.push(std::mem::replace(&mut rest, behind));
            }
            pieces.push(rest);
            pieces
        }
        _ => requests,
    }
}

/// A connection that has served one request, which sends it to hyper when `header` is `TE`.
fn started(fixture: &Fixture, header: &str) -> Client {
    let mut client = fixture.client();
    client.send(format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{header}: trailers\r\n\r\n"));
    assert_eq!(client.read_response("GET").status, 200);
    client
}

/// Waits until the server has read all that `client` has sent: what hyper responds to a head that
/// fills its buffer depends on how the head arrives.
fn wait_until_read(client: &mut Client) {
    // Fails where the server has closed already.
    let (Ok(client_address), Ok(server_address)) =
        (client.stream().local_addr(), client.stream().peer_addr())
    else {
        return;
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while unread_bytes(server_address, client_address).is_some_and(|bytes| bytes > 0) {
        assert!(Instant::now() < deadline, "the server does not read");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The responses to `pieces`, without the dates.
fn responses(mut client: Client, pieces: &[Vec<u8>]) -> String {
    for part in pieces.iter().flat_map(|piece| piece.chunks(PART_BYTES)) {
        if !client.send_if_open(part) {
            break;
        }
        wait_until_read(&mut client);
    }
    // Fails where the server has closed already.
    client.stream().shutdown(Shutdown::Write).ok();
    let mut bytes = Vec::new();
    if let Err(error) = client.stream().read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let text = bytes.escape_ascii().to_string();
    let mut parts = text.split(r"\r\ndate: ");
    let mut undated = parts.next().unwrap_or_default().to_string();
    for part in parts {
        undated.push_str(r"\r\ndate");
        undated.push_str(&part["Thu, 01 Jan 1970 00:00:00 GMT".len()..]);
    }
    // Whether hyper sends this for a malformed head without an end depends on the pieces in which
    // the head came.
    let refusal =
        r"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate\r\n\r\n";
    undated.strip_suffix(refusal).unwrap_or(&undated).to_string()
}

/// The counters that depend neither on times nor on the header that selects the path.
fn counted(fixture: &Fixture) -> Vec<String> {
    let metrics = String::from_utf8(fixture.request("GET", "/metrics", b"").body).unwrap();
    let is_compared = |line: &&str| {
        // Whether a worker still sleeps when the next request comes is a matter of time.
        !["#", "seconds", "memory", "_bytes_total", "pool_wakes"]
            .iter()
            .any(|part| line.contains(part))
    };
    metrics.lines().filter(is_compared).map(String::from).collect()
}

#[test]
fn any_bytes_get_the_same_responses_on_both_paths() {
    let seed = match std::env::var("KVANT_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => entropy_seed(),
    };
    let mut rng = Rng::new(seed);
    let fixtures = BOTH_WAYS.map(|header| {
        let fixture =
            Fixture::with(ServerConfig { selectors: 1, value_bytes_max: 100_000, ..config() });
        for (key, value_bytes) in [("e", 0), ("s", 1), ("m", 8193), ("l", 65_536), ("h", 65_537)] {
            fixture.put(key, &vec![b'v'; value_bytes]);
        }
        (fixture, header)
    });
    for index in 0..CONNECTIONS {
        let pieces = random_pieces(&mut rng);
        let [plain, by_hyper] = [0, 1].map(|way: usize| {
            let (fixture, header) = &fixtures[way];
            responses(started(fixture, header), &pieces)
        });
        let shown = |text: &str| text.chars().take(1000).collect::<String>();
        assert!(
            plain == by_hyper,
            "KVANT_TEST_SEED={seed}, connection {index}: {:#?}\nplain:    {}\nby hyper: {}",
            pieces.iter().map(|piece| shown(&piece.escape_ascii().to_string())).collect::<Vec<_>>(),
            shown(&plain),
            shown(&by_hyper)
        );
    }
    // A worker counts a job just after it has delivered the reply.
    for (fixture, _) in &fixtures {
        let is_busy = |pool: &Value| pool["workers_busy"].as_u64().is_some_and(|busy| busy > 0);
        while is_busy(&fixture.request("GET", "/v0/stats", b"").json()["server"]["pool"]) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let [plain, by_hyper] = [0, 1].map(|way: usize| counted(&fixtures[way].0));
    assert!(plain.len() > 20, "{plain:?}");
    assert_eq!(plain, by_hyper);
}

/// Writes in flight complete, also that of a disconnected client, and idle connections close,
/// on both paths.
#[test]
fn stopping_is_the_same_on_both_paths() {
    let [plain, by_hyper] = BOTH_WAYS.map(|header| {
        let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
        let [mut writer, mut half_closed, mut gone, mut idle] =
            [(); 4].map(|()| started(&fixture, header));
        fixture.store.faults.stalled.store(true, SeqCst);
        writer.send_request("PUT", "/v0/entity?id=a", b"v");
        half_closed.send_request("DELETE", "/v0/entity?id=b", b"");
        half_closed.shutdown_write();
        gone.send_request("PUT", "/v0/entity?id=c", b"v");
        drop(gone);
        while fixture.request("GET", "/v0/stats", b"").json()["server"]["write_stalls"] != 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // There is one selector: when a later request has its response, the last write has arrived.
        idle.assert_goes_on();
        let Fixture { server, store, .. } = fixture;
        let stopping = std::thread::spawn(move || server.stop(NEVER));
        assert!(idle.is_closed());
        store.end_stall();
        let mut responses = [writer.read_response("PUT"), half_closed.read_response("DELETE")];
        assert!(writer.is_closed() && half_closed.is_closed());
        stopping.join().unwrap().unwrap();
        assert!(store.has_key(b"c"));
        for response in &mut responses {
            assert!(response.closes());
            response
                .headers
                .iter_mut()
                .filter(|(name, _)| name == "date")
                .for_each(|(_, value)| value.clear());
        }
        format!("{responses:?}")
    });
    assert_eq!(plain, by_hyper);
}
