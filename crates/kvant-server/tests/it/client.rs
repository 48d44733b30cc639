//! A client that sends bytes as they are and reads responses strictly.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Far longer than any response takes: a test that hangs fails.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) version: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The chunks of a chunked body.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The body's end was sent: by length, by last chunk, or by the close of an unframed one.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values =
            self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is repeated");
        value
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a complete problem.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, kind: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["type"], kind, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
        // Fencing ends with a restart, which no client can wait for.
        assert_eq!(
            self.header("retry-after").is_some(),
            status == 503 && kind != "fenced",
            "{self:?}"
        );
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        let stream = socket2::Socket::from(self.stream.into_inner());
        stream.set_linger(Some(Duration::ZERO)).unwrap();
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends as many bytes as the server takes before it closes.
    pub(crate) fn send_if_open(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    /// Sends a request with a length, if it has a body.
    pub(crate) fn send_request(&mut self, method: &str, target: &str, body: &[u8]) {
        let length = match (method, body.len()) {
            ("PUT" | "POST", len) => format!("Content-Length: {len}\r\n"),
            (_, 0) => String::new(),
            (_, len) => format!("Content-Length: {len}\r\n"),
        };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{length}\r\n");
        self.send([head.as_bytes(), body].concat());
    }

    pub(crate) fn request(&mut self, method: &str, target: &str, body: &[u8]) -> Response {
        self.send_request(method, target, body);
        self.read_response(method)
    }

    pub(crate) fn read_response(&mut self, method: &str) -> Response {
        self.try_read_response(method).expect("a response before the end of the connection")
    }

    /// The next response to a request of `method`; `None` when the connection has ended.
    pub(crate) fn try_read_response(&mut self, method: &str) -> Option<Response> {
        let mut response = self.read_head()?;
        if method == "HEAD" || response.status == 100 {
            return Some(response);
        }
        if response.header("transfer-encoding") == Some("chunked") {
            assert_eq!(response.header("content-length"), None);
            response.complete = self.read_chunks(&mut response);
        } else if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().unwrap()];
            response.complete = self.stream.read_exact(&mut response.body).is_ok();
        } else {
            response.complete = self.stream.read_to_end(&mut response.body).is_ok();
        }
        Some(response)
    }

    /// The next response without its body; `None` when the connection has ended.
    pub(crate) fn read_head(&mut self) -> Option<Response> {
        let status_line = self.line()?;
        let mut words = status_line.splitn(3, ' ');
        let version = words.next().unwrap().to_string();
        let status: u16 = words.next().unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().expect("a whole head");
            if line.is_empty() {
                break;
            }
            let (name, value) =
                line.split_once(": ").unwrap_or_else(|| panic!("header line {line:?}"));
            headers.push((name.to_string(), value.to_string()));
        }
        Some(Response {
            status,
            version,
            headers,
            body: Vec::new(),
            chunks: Vec::new(),
            complete: true,
        })
    }

    fn read_chunks(&mut self, response: &mut Response) -> bool {
        while let Some(chunk) = self.read_chunk() {
            if chunk.is_empty() {
                return true;
            }
            response.body.extend_from_slice(&chunk);
            response.chunks.push(chunk);
        }
        false
    }

    /// The next chunk, empty if it is the last; `None` when the connection has ended.
    pub(crate) fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).unwrap();
        let mut chunk = vec![0; size];
        let mut end = [0; 2];
        self.stream.read_exact(&mut chunk).ok()?;
        self.stream.read_exact(&mut end).ok()?;
        assert_eq!(end, *b"\r\n");
        Some(chunk)
    }

    /// Bytes of a body without a frame.
    pub(crate) fn read_exact(&mut self, bytes: &mut [u8]) {
        self.stream.read_exact(bytes).unwrap();
    }

    /// A line without its end; `None` when the connection ends before it does.
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.stream.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\r\n") => {
                line.truncate(line.len() - 2);
                Some(String::from_utf8(line).unwrap())
            }
            Ok(_) => {
                assert!(line.is_empty(), "half a line: {:?}", line.escape_ascii().to_string());
                None
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the next response has arrived, or a part of it.
    pub(crate) fn has_response(&self) -> bool {
        self.stream().set_nonblocking(true).unwrap();
        let peeked = self.stream().peek(&mut [0]);
        self.stream().set_nonblocking(false).unwrap();
        match peeked {
            Ok(_) => true,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the server has closed the connection, after all responses were read.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.try_read_response("GET").is_none()
    }

    /// Checks that the connection serves another request.
    #[track_caller]
    pub(crate) fn assert_goes_on(&mut self) {
        assert_eq!(self.request("GET", "/v0/status", b"").status, 200);
    }

    pub(crate) fn shutdown_write(&self) {
        self.stream().shutdown(Shutdown::Write).unwrap();
    }
}

/// Percent-encodes every byte.
pub(crate) fn encode(key: &[u8]) -> String {
    key.iter().map(|byte| format!("%{byte:02X}")).collect()
}
