//! A minimal HTTP/1.1 client for the benchmarks.

use super::Failure;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);

/// One keep-alive connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    line: String,
}

/// The head of a response.
struct Head {
    status: u16,
    content_bytes: Option<usize>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Connection { stream: BufReader::new(stream), request: Vec::new(), line: String::new() })
    }

    /// Sends a request and reads its response into `body`. Returns the status.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        target: &str,
        content: &[u8],
        body: &mut Vec<u8>,
    ) -> Result<u16, Failure> {
        self.send(method, target, content)?;
        let head = self.read_head()?;
        body.clear();
        let content_bytes = head.content_bytes.ok_or("a response without a length")?;
        body.resize(content_bytes, 0);
        self.stream.read_exact(body)?;
        Ok(head.status)
    }

    /// Gets a chunked response and passes its chunks to `take` one by one.
    pub(crate) fn stream(
        &mut self,
        target: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.send("GET", target, b"")?;
        let head = self.read_head()?;
        if head.status != 200 || head.content_bytes.is_some() {
            return Err(format!(
                "GET {target}: status {} where 200 and chunks were expected",
                head.status
            )
            .into());
        }
        let mut chunk = Vec::new();
        loop {
            self.read_line()?;
            let chunk_bytes = usize::from_str_radix(self.line.trim_end(), 16)?;
            chunk.resize(chunk_bytes, 0);
            self.stream.read_exact(&mut chunk)?;
            self.read_line()?;
            if chunk.is_empty() {
                return Ok(());
            }
            take(&chunk)?;
        }
    }

    fn send(&mut self, method: &str, target: &str, content: &[u8]) -> io::Result<()> {
        self.request.clear();
        write!(
            self.request,
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            content.len()
        )?;
        self.request.extend_from_slice(content);
        self.stream.get_mut().write_all(&self.request)
    }

    fn read_head(&mut self) -> Result<Head, Failure> {
        self.read_line()?;
        let status = self.line.split(' ').nth(1).ok_or("a response without a status")?.parse()?;
        let mut content_bytes = None;
        loop {
            self.read_line()?;
            let line = self.line.trim_end();
            if line.is_empty() {
                return Ok(Head { status, content_bytes });
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                content_bytes = Some(value.trim().parse()?);
            }
        }
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.stream.read_line(&mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
