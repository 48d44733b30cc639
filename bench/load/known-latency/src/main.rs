//! A server of known latency: it responds to each request a fixed time after reading it.
//!
//! One thread busy-polls its sockets, so that only a turn of its loop is added to the fixed time.
//! It records the actual time of each response, for comparison with the generator's figures.
//!
//! `known-latency PORT DELAY_US`. When standard input ends, it prints the median and the 99th
//! percentile of the time from reading a request to writing its response, in nanoseconds, as
//! `p50_ns=N p99_ns=N count=N`, and exits.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nvalue0000001";

/// Whether standard input has ended.
static IS_OVER: AtomicBool = AtomicBool::new(false);

struct Connection {
    stream: TcpStream,
    /// Bytes of [`HEAD_END`] at the end of the stream so far.
    matched: usize,
    /// Read times of pending requests, the oldest first.
    read_at: VecDeque<Instant>,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(port)), Some(Ok(delay_us))) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: known-latency PORT DELAY_US"));
    };
    let port = u16::try_from(port).map_err(io::Error::other)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    std::thread::spawn(|| {
        if let Err(error) = io::copy(&mut io::stdin(), &mut io::sink()) {
            eprintln!("standard input: {error}");
        }
        IS_OVER.store(true, Ordering::Relaxed);
    });
    let mut taken_ns = serve(&listener, Duration::from_micros(delay_us))?;
    taken_ns.sort_unstable();
    let at =
        |share: f64| taken_ns.get((taken_ns.len() as f64 * share) as usize).copied().unwrap_or(0);
    println!("p50_ns={} p99_ns={} count={}", at(0.5), at(0.99), taken_ns.len());
    Ok(())
}

/// Serves until standard input ends. Returns the duration of each request.
fn serve(listener: &TcpListener, delay: Duration) -> io::Result<Vec<u64>> {
    let mut connections: Vec<Connection> = Vec::new();
    let mut taken_ns = Vec::new();
    while !IS_OVER.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                connections.push(Connection { stream, matched: 0, read_at: VecDeque::new() });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        connections.retain_mut(|connection| turn(connection, delay, &mut taken_ns).is_ok());
    }
    Ok(taken_ns)
}

/// Reads available requests and sends due responses. An error ends the connection.
fn turn(connection: &mut Connection, delay: Duration, taken_ns: &mut Vec<u64>) -> io::Result<()> {
    let mut received = [0; 16 << 10];
    match connection.stream.read(&mut received) {
        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(count) => {
            let now = Instant::now();
            for &byte in &received[..count] {
                connection.matched = if byte == HEAD_END[connection.matched] {
                    connection.matched + 1
                } else {
                    usize::from(byte == HEAD_END[0])
                };
                if connection.matched == HEAD_END.len() {
                    connection.matched = 0;
                    connection.read_at.push_back(now);
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    while let Some(&read_at) = connection.read_at.front() {
        if read_at.elapsed() < delay {
            break;
        }
        connection.stream.write_all(RESPONSE)?;
        taken_ns.push(read_at.elapsed().as_nanos() as u64);
        connection.read_at.pop_front();
    }
    Ok(())
}
