//! A server of known latency: it responds to each request a fixed time after reading it.
//!
//! One thread busy-polls its sockets, so that only a turn of its loop is added to the fixed time.
//!
//! `known-latency PORT DELAY_US`

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nvalue0000001";

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
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                connections.push(Connection { stream, matched: 0, read_at: VecDeque::new() });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let delay = Duration::from_micros(delay_us);
        connections.retain_mut(|connection| turn(connection, delay).is_ok());
    }
}

/// Reads available requests and sends due responses. An error ends the connection.
fn turn(connection: &mut Connection, delay: Duration) -> io::Result<()> {
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
    while connection.read_at.front().is_some_and(|read_at| read_at.elapsed() >= delay) {
        connection.stream.write_all(RESPONSE)?;
        connection.read_at.pop_front();
    }
    Ok(())
}
