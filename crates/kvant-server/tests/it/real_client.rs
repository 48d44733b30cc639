//! The rows of the contract, with a real client library.

use crate::fixture::Fixture;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use kvant_base::events::EventKind;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

struct Io(TcpStream, Vec<u8>);

impl hyper::rt::Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Io(stream, buffer) = self.get_mut();
        let mut buffer = ReadBuf::new(&mut buffer[..cursor.remaining().min(4096)]);
        let poll = Pin::new(stream).poll_read(cx, &mut buffer);
        cursor.put_slice(buffer.filled());
        poll
    }
}

impl hyper::rt::Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

type Sender = SendRequest<Full<Bytes>>;

async fn connect(fixture: &Fixture) -> Sender {
    let stream = TcpStream::connect(fixture.address()).await.unwrap();
    let (sender, connection) = handshake(Io(stream, vec![0; 4096])).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn send(
    sender: &mut Sender,
    method: Method,
    target: &str,
    body: &'static [u8],
) -> Response<Incoming> {
    sender.ready().await.unwrap();
    let request = Request::builder().method(method).uri(target).header("host", "x");
    sender.send_request(request.body(Full::new(Bytes::from_static(body))).unwrap()).await.unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[test]
fn every_row_with_a_real_client() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sender = &mut connect(&fixture).await;
        let status = send(sender, Method::GET, "/v0/status", b"").await;
        assert_eq!(
            (status.status().as_u16(), text(status).await.as_str()),
            (200, r#"{"status":"ready"}"#)
        );
        assert_eq!(send(sender, Method::PUT, "/v0/entity?id=a", b"1").await.status(), 201);
        assert_eq!(send(sender, Method::PUT, "/v0/entity?id=b&ttl=60", b"2").await.status(), 201);
        assert_eq!(text(send(sender, Method::GET, "/v0/entity?id=a", b"").await).await, "1");
        assert_eq!(
            send(sender, Method::HEAD, "/v0/entity?id=a", b"").await.headers()["content-length"],
            "1"
        );
        let range = send(sender, Method::GET, "/v0/entities?start=a&end=c", b"").await;
        assert_eq!(range.headers()["transfer-encoding"], "chunked");
        let mut body = range.into_body();
        let mut chunks = Vec::new();
        while let Some(frame) = body.frame().await {
            chunks.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert_eq!(chunks, b"a\n1b\n2");
        assert_eq!(send(sender, Method::DELETE, "/v0/entity?id=a", b"").await.status(), 202);
        assert_eq!(send(sender, Method::GET, "/v0/entity?id=a", b"").await.status(), 404);
        assert_eq!(send(sender, Method::GET, "/v0/entity", b"").await.status(), 400);
        assert_eq!(send(sender, Method::POST, "/v0/entity?id=a", b"x").await.status(), 405);
        assert_eq!(send(sender, Method::GET, "/elsewhere", b"").await.status(), 400);
    });
}

#[test]
fn documents_for_operators() {
    let fixture = Fixture::new();
    fixture.recent.add_complete(EventKind::Fsync, 0, 1000, Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sender = &mut connect(&fixture).await;
        let slow = send(sender, Method::GET, "/v0/slow?limit=3", b"").await;
        assert_eq!(slow.headers()["content-type"], "application/json");
        let slow: serde_json::Value = serde_json::from_str(&text(slow).await).unwrap();
        assert!(slow.is_array());
        let events = send(sender, Method::GET, "/v0/events?after=0", b"").await;
        assert_eq!(events.headers()["content-type"], "text/event-stream");
        let mut body = events.into_body();
        for number in 1..=2 {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(
                frame.starts_with(format!("id: {number}\nevent: fsync\ndata: {{").as_bytes()),
                "{frame:?}"
            );
            fixture.recent.add_complete(EventKind::Fsync, 0, 1000, Vec::new());
        }
    });
}
