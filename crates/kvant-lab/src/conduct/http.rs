//! Single requests to a subject, beside its load: readiness, statistics, events, recordings.
//!
//! Requests are HTTP/1.0: a response is never chunked and ends with the connection. A server that
//! keeps the connection open must say how long its response is.

use httparse::{EMPTY_HEADER, Status};
use kvant_load::{Address, Target};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The longest body: recordings are the largest.
const BODY_BYTES_MAX: u64 = 512 << 20;

/// Where requests go.
#[derive(Clone, Debug)]
pub(super) struct Server {
    address: Address,
    authority: String,
}

/// A response with its body.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Value of the header `Server`.
    pub(super) software: Option<String>,
    pub(super) body: Vec<u8>,
}

/// An open connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Response {
    /// Why the server refused, in words.
    pub(super) fn refusal(&self) -> String {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let title = problem["title"].as_str().unwrap_or("it is no Kvant, or an older one");
        format!("status {}: {title}", self.status)
    }
}

impl Server {
    /// The server of a resolved target; `None` if it speaks TLS.
    pub(super) fn of(target: &Target) -> Option<Server> {
        let address = target.addresses.first().filter(|_| !target.is_tls)?.clone();
        Some(Server { address, authority: target.authority.clone() })
    }

    pub(super) fn connect(&self, wait_max: Duration) -> io::Result<Stream> {
        match &self.address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, wait_max).map(Stream::Tcp),
            Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        }
    }

    /// Sends a request without a body and reads the response; `wait_max` bounds each read.
    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        wait_max: Duration,
    ) -> io::Result<Response> {
        let mut stream = self.connect(wait_max)?;
        self.send(&mut stream, method, path)?;
        stream.set_read_timeout(wait_max)?;
        read_response(&mut stream)
    }

    /// Sends the head of a request without a body.
    pub(super) fn send(&self, stream: &mut Stream, method: &str, path: &str) -> io::Result<()> {
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            self.authority
        );
        stream.write_all(head.as_bytes())
    }
}

/// Reads a response to its end.
pub(super) fn read_response(stream: &mut Stream) -> io::Result<Response> {
    let mut bytes = Vec::new();
    let (mut response, length) = read_head(stream, &mut bytes)?;
    let left_max = length.map_or(BODY_BYTES_MAX, |length| length.min(BODY_BYTES_MAX));
    let left = left_max.saturating_sub(bytes.len() as u64);
    stream.take(left).read_to_end(&mut bytes)?;
    if length.is_some_and(|length| length != bytes.len() as u64) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the response is cut short"));
    }
    response.body = bytes;
    Ok(response)
}

/// Reads the head of a response; `rest` gets the bytes after it. Returns the length of the body, if
/// the head says it.
pub(super) fn read_head(
    stream: &mut Stream,
    rest: &mut Vec<u8>,
) -> io::Result<(Response, Option<u64>)> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 || rest.len() > HEAD_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "there is no response"));
        }
        rest.extend_from_slice(&buffer[..count]);
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(rest).map_err(io::Error::other)?;
        let Status::Complete(head_bytes) = parsed else { continue };
        let header = |name: &str| {
            let found =
                head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok().map(str::to_owned)
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let response = Response {
            status: head.code.unwrap_or_default(),
            software: header("server"),
            body: Vec::new(),
        };
        rest.drain(..head_bytes);
        return Ok((response, length));
    }
}

impl Stream {
    pub(super) fn set_read_timeout(&self, wait_max: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(wait_max)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(wait_max)),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(how),
            Stream::Unix(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
        }
    }
}
