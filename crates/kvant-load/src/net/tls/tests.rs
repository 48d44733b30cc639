use super::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// A certificate for `localhost` and 127.0.0.1, and its key.
struct Identity {
    pem: String,
    der: CertificateDer<'static>,
    key: Vec<u8>,
}

fn identity() -> Identity {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Identity {
        pem: made.cert.pem(),
        der: made.cert.der().clone(),
        key: made.signing_key.serialize_der(),
    }
}

fn server_config(identity: &Identity) -> ServerConfig {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![identity.der.clone()],
            PrivatePkcs8KeyDer::from(identity.key.clone()).into(),
        )
        .unwrap()
}

type ServerStream = rustls::StreamOwned<ServerConnection, UnixStream>;

/// The client's end of a connection to a TLS server that runs `serve`.
fn server<T: Send + 'static>(
    config: ServerConfig,
    serve: impl FnOnce(&mut ServerStream) -> T + Send + 'static,
) -> (OwnedFd, JoinHandle<T>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let connection = ServerConnection::new(Arc::new(config)).unwrap();
    let thread =
        std::thread::spawn(move || serve(&mut rustls::StreamOwned::new(connection, theirs)));
    (ours.into(), thread)
}

/// Waits until the socket is ready for `flags`.
fn wait(stream: &TlsStream, flags: PollFlags) {
    let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ready =
        poll(&mut [PollFd::from_borrowed_fd(stream.as_fd(), flags)], Some(&timeout)).unwrap();
    assert_eq!(ready, 1, "nothing happens");
}

fn shake_hands(stream: &mut TlsStream) -> io::Result<()> {
    while !stream.handshake()? {
        wait(stream, PollFlags::IN);
    }
    Ok(())
}

fn connect(ca_pem: Option<&str>, socket: OwnedFd, host: &str) -> io::Result<TlsStream> {
    let connector = TlsConnector::new(ca_pem.map(str::as_bytes)).unwrap();
    let mut stream = connector.start(socket, host).unwrap();
    shake_hands(&mut stream)?;
    Ok(stream)
}

/// Reads up to the end of the connection.
fn read_all(stream: &mut TlsStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 1_000];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(stream, PollFlags::IN),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn without_a_ca_file_any_certificate_is_accepted() {
    let (socket, served) = server(server_config(&identity()), |stream| {
        let mut request = [0; 4];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"response").unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        let name = stream.conn.server_name().map(str::to_owned);
        (request, name, stream.conn.alpn_protocol().map(<[u8]>::to_vec))
    });
    let mut stream = connect(None, socket, "some.other.name").unwrap();
    assert_eq!(stream.write(b"ping").unwrap(), 4);
    assert!(!stream.wants_write());
    assert_eq!(read_all(&mut stream), b"response");
    let (request, name, _) = served.join().unwrap();
    assert_eq!(&request, b"ping");
    assert_eq!(name.as_deref(), Some("some.other.name"));
}

#[test]
fn with_a_ca_file_chain_and_name_are_checked() {
    let (mine, other) = (identity(), identity());
    // Host, CA file, part of the error.
    let cases = [
        ("localhost", &mine.pem, None),
        ("127.0.0.1", &mine.pem, None),
        ("localhost", &other.pem, Some("certificate")),
        ("example.com", &mine.pem, Some("certificate")),
        ("127.0.0.2", &mine.pem, Some("certificate")),
    ];
    for (host, ca_pem, refusal) in cases {
        let (socket, served) = server(server_config(&mine), |stream| {
            let mut byte = [0];
            stream.read(&mut byte).is_ok_and(|read| read == 1)
        });
        // Open until the server has read: a close with unread input would be a reset.
        let mut met = connect(Some(ca_pem), socket, host);
        match (&mut met, refusal) {
            (Ok(stream), None) => assert_eq!(stream.write(b"x").unwrap(), 1, "{host}"),
            (Err(error), Some(refusal)) => {
                assert!(error.to_string().contains(refusal), "{host}: {error}")
            }
            _ => panic!("{host}: {met:?}"),
        }
        assert_eq!(served.join().unwrap(), refusal.is_none(), "{host}");
    }
}

#[test]
fn all_certificates_in_a_ca_file_are_trusted() {
    let (one, two) = (identity(), identity());
    let (socket, served) =
        server(server_config(&two), |stream| stream.conn.complete_io(&mut stream.sock).is_ok());
    let met = connect(Some(&format!("{}\n{}", one.pem, two.pem)), socket, "localhost");
    assert!(served.join().unwrap());
    assert!(met.is_ok());
}

#[test]
fn unusable_ca_files_and_hosts_are_refused() {
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "no certificate", damaged, "-----BEGIN CERTIFICATE-----\n"] {
        let error = TlsConnector::new(Some(pem.as_bytes())).unwrap_err();
        assert!(error.to_string().contains("the CA file"), "{pem}: {error}");
    }
    let (ours, _theirs) = UnixStream::pair().unwrap();
    assert!(TlsConnector::new(None).unwrap().start(ours.into(), "not a name").is_err());
}

#[test]
fn large_transfers_in_both_directions_survive_full_socket_buffers() {
    const BYTES: usize = 3 << 20;
    let (is_full, until_full) = std::sync::mpsc::channel();
    let (socket, served) = server(server_config(&identity()), move |stream| {
        stream.conn.complete_io(&mut stream.sock).unwrap();
        until_full.recv().unwrap();
        let mut received = vec![0; BYTES];
        stream.read_exact(&mut received).unwrap();
        stream.write_all(&received).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    });
    let mut stream = connect(None, socket, "localhost").unwrap();
    let sent: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    let mut rest = sent.as_slice();
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                assert!(stream.wants_write());
                is_full.send(()).unwrap();
                wait(&stream, PollFlags::OUT);
            }
            Err(error) => panic!("{error}"),
        }
    }
    while stream.wants_write() {
        stream.flush().unwrap();
        if stream.wants_write() {
            wait(&stream, PollFlags::OUT);
        }
    }
    assert!(read_all(&mut stream) == sent);
    served.join().unwrap();
}

#[test]
fn the_end_of_the_connection_reads_as_0_with_or_without_close_notify() {
    for gives_notice in [true, false] {
        let (socket, served) = server(server_config(&identity()), move |stream| {
            stream.write_all(b"the end").unwrap();
            if gives_notice {
                stream.conn.send_close_notify();
            }
            stream.flush().unwrap();
        });
        let mut stream = connect(None, socket, "localhost").unwrap();
        assert_eq!(read_all(&mut stream), b"the end");
        served.join().unwrap();
    }
}

#[test]
fn close_notify_is_sent() {
    let (socket, served) = server(server_config(&identity()), |stream| stream.read(&mut [0; 10]));
    let mut stream = connect(None, socket, "localhost").unwrap();
    stream.close_notify();
    // The socket is still open: only the close_notify ends the server's read.
    assert_eq!(served.join().unwrap().unwrap(), 0);
    drop(stream);
}

#[test]
fn a_peer_without_tls_is_an_error() {
    for (text, kind) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), io::ErrorKind::InvalidData),
        (b"", io::ErrorKind::UnexpectedEof),
    ] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.write_all(text).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(connect(None, ours.into(), "localhost").unwrap_err().kind(), kind);
    }
}
