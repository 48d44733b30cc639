//! The records of a server, over HTTP: one range, in the binary format, whose end record proves
//! that it is whole.
//!
//! The request is HTTP/1.0: its response is never chunked. A server sends records of one snapshot,
//! or of a cluster, and does not say when they expire.

use super::records::{FIRST_KEY_OF_A_BYTE, Record, Records, Source};
use httparse::{EMPTY_HEADER, Status};
use kvant_base::{Error, ErrorKind, Result, limits};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the next bytes: a server whose disk is slow still sends some.
const READ_WAIT_MAX: Duration = Duration::from_secs(60);
const BUFFER_BYTES: usize = 256 << 10;
const HEADERS_MAX: usize = 64;
/// Longer keys in a request, as they are encoded, have no room in a server's longest one.
const QUERY_BYTES_MAX: usize = 60 << 10;
/// A longer head is no server's.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// A longer description of a problem is cut.
const PROBLEM_BYTES_MAX: u64 = 64 << 10;
const END_MARK: u32 = u32::MAX;

pub(super) struct Server {
    host: String,
}

impl Server {
    pub(super) fn new(host: &str) -> Server {
        Server { host: host.to_string() }
    }

    fn error(&self, kind: ErrorKind, what: impl std::fmt::Display) -> Error {
        Error::new(kind, format!("http://{}: {what}", self.host))
    }

    fn lost(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.error(
                ErrorKind::NoAnswer,
                format!("nothing has come for {} seconds", READ_WAIT_MAX.as_secs()),
            ),
            _ => self.error(ErrorKind::Io, format!("the connection broke off: {error}")),
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_WAIT_MAX) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(READ_WAIT_MAX))?;
                    return Ok(stream);
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

impl Source for Server {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        let mut stream = self.connect().map_err(|error| {
            self.error(
                ErrorKind::Away,
                format!("cannot connect: {error}; is a server running there?"),
            )
        })?;
        let start = start.max(FIRST_KEY_OF_A_BYTE);
        let encoded =
            |key: &[u8]| key.iter().map(|byte| format!("%{byte:02X}")).collect::<String>();
        // The key after one of the greatest length is no key: the range begins at that one.
        let mut query = encoded(&start[..start.len().min(limits::KEY_BYTES_MAX)]);
        let encoded_end = end.map(|end| format!("&end={}", encoded(end))).unwrap_or_default();
        if query.len() + encoded_end.len() <= QUERY_BYTES_MAX {
            query += &encoded_end;
        }
        let request = format!(
            "GET /v0/entities?start={query} HTTP/1.0\r\nHost: {}\r\nAccept: \
             application/vnd.kvant.records\r\n\r\n",
            self.host
        );
        stream.write_all(request.as_bytes()).map_err(|error| self.lost(&error))?;
        let mut body = BufReader::with_capacity(BUFFER_BYTES, stream);
        self.read_head(&mut body)?;
        Ok(Box::new(ServerRecords {
            server: self,
            body,
            start: start.to_vec(),
            end: end.map(<[u8]>::to_vec),
            count: 0,
            key: Vec::new(),
            value: Vec::new(),
        }))
    }
}

impl Server {
    /// Reads the head of a successful response.
    fn read_head(&self, body: &mut BufReader<TcpStream>) -> Result<()> {
        let is_no_server =
            || self.error(ErrorKind::Invalid, "the response is not that of a Kvant server");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let before = head.len();
            let limit = (HEAD_BYTES_MAX - before) as u64;
            let read = body.take(limit).read_until(b'\n', &mut head);
            if read.map_err(|error| self.lost(&error))? == 0 {
                return Err(is_no_server());
            }
        }
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&head);
        let (Ok(Status::Complete(_)), Some(code)) = (parsed, response.code) else {
            return Err(is_no_server());
        };
        let media_type =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-type"));
        match media_type.map(|header| header.value) {
            Some(b"application/vnd.kvant.records") if code == 200 => Ok(()),
            Some(b"application/problem+json") => {
                let mut text = Vec::new();
                let read = body.take(PROBLEM_BYTES_MAX).read_to_end(&mut text);
                read.map_err(|error| self.lost(&error))?;
                let problem: serde_json::Value =
                    serde_json::from_slice(&text).map_err(|_| is_no_server())?;
                let detail = problem["detail"].as_str().unwrap_or_default();
                Err(self.error(ErrorKind::Io, format!("the server answers {code}: {detail}")))
            }
            _ => Err(is_no_server()),
        }
    }
}

struct ServerRecords<'a> {
    server: &'a Server,
    body: BufReader<TcpStream>,
    /// The response may have records outside of these.
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    count: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl ServerRecords<'_> {
    fn read_u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.body.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn read_next(&mut self) -> io::Result<bool> {
        let key_len = self.read_u32()?;
        let wrong = |what: &'static str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if key_len == END_MARK {
            let mut count = [0; 8];
            self.body.read_exact(&mut count)?;
            return match u64::from_le_bytes(count) == self.count {
                true => Ok(false),
                false => wrong("the count of records at the end is not that of those before"),
            };
        }
        let value_len = self.read_u32()?;
        let is_short = key_len as usize <= limits::KEY_BYTES_MAX
            && u64::from(value_len) <= limits::VALUE_BYTES_MAX_LIMIT;
        if !is_short {
            return wrong("a length is beyond all limits");
        }
        self.count += 1;
        self.key.resize(key_len as usize, 0);
        self.body.read_exact(&mut self.key)?;
        self.value.resize(value_len as usize, 0);
        self.body.read_exact(&mut self.value)?;
        Ok(true)
    }
}

impl Records for ServerRecords<'_> {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        let mut is_there = true;
        while is_there {
            is_there = self.read_next().map_err(|error| self.server.lost(&error))?;
            if self.key >= self.start {
                break;
            }
        }
        let is_there = is_there && self.end.as_ref().is_none_or(|end| self.key < *end);
        let record = Record { key: &self.key, value: &self.value, expires_at_ms: None };
        Ok(is_there.then_some(record))
    }
}
