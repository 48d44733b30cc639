//! Requests a recording from a server.
//!
//! A signal closes the sending side of the connection: the server then ends the recording early and
//! responds with it.

use super::settings::RecordingRequest;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Response, StatusCode};
use kvant_base::duration;
use kvant_profiler::symbols;
use rustix::net::Shutdown;
use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a server may take to accept a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest response that is accepted.
const RESPONSE_BYTES_MAX: usize = 512 << 20;

/// The result of a request.
pub(super) enum Received {
    /// The bytes of a recording.
    Recording(Bytes),
    /// A second signal arrived.
    Interrupted,
}

/// Requests a recording and waits for it. `on_start` is called once signals are caught, before the
/// recording starts.
///
/// # Errors
/// A sentence for the user.
pub(super) fn request_recording(
    wanted: &RecordingRequest,
    on_start: &dyn Fn(),
) -> Result<Received, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let received = runtime.block_on(exchange(wanted, on_start));
    runtime.shutdown_background();
    received
}

async fn exchange(wanted: &RecordingRequest, on_start: &dyn Fn()) -> Result<Received, String> {
    let mut signals = Signals::catch().map_err(|error| error.to_string())?;
    let server = &wanted.server;
    let connecting = tokio::time::timeout(CONNECT_WAIT_MAX, TcpStream::connect(&server[..]));
    let stream = match connecting.await {
        Ok(connected) => connected.map_err(|error| unreachable(server, &error))?,
        Err(_) => return Err(unreachable(server, &"it does not answer")),
    };
    let socket = stream.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(Stream { stream, buffer: vec![0; 64 << 10] })
        .await
        .map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    on_start();
    let responding = async {
        let response = sender.send_request(request(wanted)?).await;
        let response = response.map_err(|error| lost(server, &error))?;
        read(server, response).await
    };
    let mut responding = std::pin::pin!(responding);
    let received = tokio::select! {
        received = &mut responding => received,
        () = signals.next() => {
            rustix::net::shutdown(&socket, Shutdown::Write).map_err(|error| lost(server, &error))?;
            tokio::select! {
                received = &mut responding => received,
                () = signals.next() => return Ok(Received::Interrupted),
            }
        }
    };
    connection.abort();
    received.map(Received::Recording)
}

fn request(wanted: &RecordingRequest) -> Result<Request<Empty<Bytes>>, String> {
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
    Request::post(target)
        .header(HOST, &wanted.server)
        .body(Empty::new())
        .map_err(|error| error.to_string())
}

/// The body of a successful response; otherwise the server's problem as an error.
async fn read(server: &str, response: Response<hyper::body::Incoming>) -> Result<Bytes, String> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
    let body = body.map_err(|error| lost(server, &error))?.to_bytes();
    if head.status == StatusCode::OK {
        return Ok(body);
    }
    let is_problem =
        head.headers.get(CONTENT_TYPE).is_some_and(|value| value == "application/problem+json");
    let problem: serde_json::Value = match serde_json::from_slice(&body) {
        Ok(problem) if is_problem => problem,
        _ => {
            return Err(format!("{server} answered {}: it is no Kvant server", head.status));
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

fn unreachable(server: &str, error: &dyn Display) -> String {
    format!(
        "cannot connect to {server}: {error}; is `kvant serve` running there? --url names another server"
    )
}

fn lost(server: &str, error: &dyn Display) -> String {
    format!("{server} broke off before the recording was there: {error}")
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Adapts a socket to hyper's traits.
struct Stream {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl hyper::rt::Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Stream { stream, buffer } = self.get_mut();
        let bytes_max = cursor.remaining().min(buffer.len());
        let mut read = ReadBuf::new(&mut buffer[..bytes_max]);
        let polled = Pin::new(stream).poll_read(cx, &mut read);
        cursor.put_slice(read.filled());
        polled
    }
}

impl hyper::rt::Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
