//! One keep-alive connection, for clients that track which requests have a response.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait, so that a hanging server fails its test.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A connection. An error of a method means that it broke; invalid HTTP fails the test.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// A complete response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(addr: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Sends any number of requests.
    pub(crate) fn send(&mut self, requests: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(requests)
    }

    /// The response to the oldest pending request.
    pub(crate) fn receive(&mut self) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let (mut body_bytes, mut is_chunked) = (0, false);
        loop {
            let header = self.line()?;
            match header.split_once(": ") {
                Some(("content-length", length)) => body_bytes = length.parse().expect("a length"),
                Some(("transfer-encoding", "chunked")) => is_chunked = true,
                Some(_) => {}
                None if header.is_empty() => break,
                None => panic!("no header: {header:?}"),
            }
        }
        let body = if is_chunked { self.chunks()? } else { self.bytes(body_bytes)? };
        Ok(Response { status, body })
    }

    /// Every record, in the order of the response.
    pub(crate) fn all_records(&mut self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.send(
            b"GET /v0/entities?start=%00 HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.kvant.records\r\n\r\n",
        )?;
        let response = self.receive()?;
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        Ok(records(&response.body))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        // A line that the end of the connection cuts short does not count.
        let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8(line.to_vec()).expect("heads are ASCII"))
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line()?;
            let chunk_bytes = usize::from_str_radix(&size, 16).expect("the size of a chunk");
            body.extend(self.bytes(chunk_bytes)?);
            assert_eq!(self.line()?, "", "a chunk ends with a line end");
            if chunk_bytes == 0 {
                return Ok(body);
            }
        }
    }
}

/// The records of a range in the binary format of `docs/http.md`.
fn records(mut body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    loop {
        let key_bytes = u32::from_le_bytes(*take(&mut body));
        if key_bytes == u32::MAX {
            assert_eq!(u64::from_le_bytes(*take(&mut body)), records.len() as u64);
            assert!(body.is_empty(), "nothing follows the end record");
            return records;
        }
        let value_bytes = u32::from_le_bytes(*take(&mut body));
        let (key, rest) = body.split_at(key_bytes as usize);
        let (value, rest) = rest.split_at(value_bytes as usize);
        records.push((key.to_vec(), value.to_vec()));
        body = rest;
    }
}

fn take<'a, const N: usize>(body: &mut &'a [u8]) -> &'a [u8; N] {
    let (bytes, rest) = body.split_first_chunk().expect("the range is complete");
    *body = rest;
    bytes
}
