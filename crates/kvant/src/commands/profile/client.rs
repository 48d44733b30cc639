//! Requests a recording from a server.
//!
//! The request is HTTP/1.0: its response is never chunked and ends with the connection. A signal
//! closes the sending side; the server then ends the recording early and responds with it.

use super::settings::RecordingRequest;
use crate::commands::signals::Stop;
use crate::exit::note;
use httparse::{EMPTY_HEADER, Status};
use kvant_base::duration;
use kvant_profiler::symbols;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
const RESPONSE_BYTES_MAX: u64 = 512 << 20;
const HEADERS_MAX: usize = 64;

/// Requests a recording and waits for it, until its end or a signal. An error is a sentence.
pub(super) fn request_recording(wanted: &RecordingRequest, stop: &Stop) -> Result<Vec<u8>, String> {
    let server = &wanted.server;
    let stream = connect(server).map_err(|error| {
        format!(
            "cannot connect to {server}: {error}; is `kvant serve` running there? --url names another server"
        )
    })?;
    note(&format!(
        "{server} records for {}; SIGINT ends it early",
        duration::format(wanted.duration)
    ));
    let response = exchange(Arc::new(stream), &request(wanted), stop);
    body(server, response.map_err(|error| lost(server, &error))?)
}

fn connect(server: &str) -> io::Result<TcpStream> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn request(wanted: &RecordingRequest) -> String {
    let mut target = format!(
        "/v0/profile?format=kprof&event={}&duration={}&known={}",
        wanted.events.join(","),
        duration::format(wanted.duration),
        symbols::visible().to_text(),
    );
    if let Some(rate_hz) = wanted.rate_hz {
        target.push_str(&format!("&rate={rate_hz}"));
    }
    if let Some(engine) = &wanted.engine {
        target.push_str(&format!("&engine={engine}"));
    }
    format!("POST {target} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", wanted.server)
}

fn exchange(stream: Arc<TcpStream>, request: &str, stop: &Stop) -> io::Result<Vec<u8>> {
    (&*stream).write_all(request.as_bytes())?;
    let sending = Arc::clone(&stream);
    stop.on_request(move || {
        if sending.shutdown(Shutdown::Write).is_err() {
            // The connection has ended, which the reader notices.
        }
    });
    let mut response = Vec::new();
    (&*stream).take(RESPONSE_BYTES_MAX).read_to_end(&mut response)?;
    Ok(response)
}

/// The body of a successful response; otherwise the server's problem as an error.
fn body(server: &str, mut response: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let head_bytes = match head.parse(&response) {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) => return Err(lost(server, &"the response is cut short")),
        Err(error) => return Err(lost(server, &error)),
    };
    let header = |name: &str| {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let body = &response[head_bytes..];
    if header("content-length").is_some_and(|length| length != body.len().to_string()) {
        return Err(lost(server, &"the response is cut short"));
    }
    if head.code == Some(200) {
        response.drain(..head_bytes);
        return Ok(response);
    }
    let is_problem = header("content-type") == Some("application/problem+json");
    let problem: serde_json::Value = match serde_json::from_slice(body) {
        Ok(problem) if is_problem => problem,
        _ => {
            let (code, reason) = (head.code.unwrap_or_default(), head.reason.unwrap_or_default());
            return Err(format!("{server} answered {code} {reason}: it is no Kvant server"));
        }
    };
    if problem["type"] == "unknown-path" {
        return Err(format!(
            "{server} gives no profiles: where the server has an --admin-listen, --url must name that address"
        ));
    }
    let detail = problem["detail"].as_str().unwrap_or_default();
    Err(format!("{server} refused: {detail}"))
}

fn lost(server: &str, error: &dyn Display) -> String {
    format!("{server} broke off before the recording was there: {error}")
}
