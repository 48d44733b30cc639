//! TLS over a non-blocking socket: the client's side, with rustls and the primitives of ring.
//!
//! A [`TlsStream`] reads and writes like a plain socket, and retries when the socket is ready after
//! `WouldBlock`. There is one difference: written bytes may still be in memory. The caller must
//! call [`TlsStream::flush`] when the socket becomes writable.
//!
//! Without a CA file no certificate is checked, as in wrk and wrk2: test servers mostly have
//! self-signed certificates, and a load generator sends no secrets. With one, chain, dates and name
//! are checked as in a browser.
//!
//! Invariants:
//! 1. `read` and `write` return `WouldBlock` only after the kernel did: edge-triggered events
//!    suffice.
//! 2. The end of the connection reads as 0, with or without a `close_notify`. The framing of a
//!    response tells whether it was truncated.
//!
//! Threads: a stream belongs to one; a [`TlsConnector`] may be shared, and with it the cache of
//! sessions to resume.

#[cfg(test)]
mod tests;

use kvant_base::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct TlsConnector(Arc<ClientConfig>);

impl TlsConnector {
    /// Checks certificates against those in `ca_pem`, if given.
    ///
    /// # Errors
    /// `Invalid` when `ca_pem` has no certificate, or a malformed one.
    pub(crate) fn new(ca_pem: Option<&[u8]>) -> Result<TlsConnector> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ring offers the ciphers of TLS 1.2 and 1.3");
        let mut config = match ca_pem {
            Some(pem) => builder.with_root_certificates(roots(pem)?),
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(NoVerification(provider))),
        }
        .with_no_client_auth();
        // Keeps a server from selecting HTTP/2.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector(Arc::new(config)))
    }

    /// A stream over a connected socket, for [`TlsStream::handshake`]. `host` is the name that the
    /// certificate must have and, unless it is an IP address, the one in SNI.
    ///
    /// # Errors
    /// `Invalid` when `host` is neither a DNS name nor an IP address.
    pub(crate) fn start(&self, socket: OwnedFd, host: &str) -> Result<TlsStream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::invalid(format!("TLS cannot ask for the host `{host}`")))?;
        let tls = ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|error| Error::invalid(format!("cannot speak TLS to `{host}`: {error}")))?;
        Ok(TlsStream { socket, tls })
    }
}

#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: OwnedFd,
    tls: ClientConnection,
}

impl TlsStream {
    #[cfg(test)]
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Continues the handshake until it would block; whether it is complete. Call it again on any
    /// event of the socket.
    ///
    /// # Errors
    /// The handshake failed: a rejected certificate, no common version, no TLS at all, the end of
    /// the connection.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        loop {
            self.flush()?;
            if !self.tls.is_handshaking() {
                return Ok(true);
            }
            match self.receive() {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server ended the connection within the TLS handshake",
                    ));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The end without a close_notify.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
            self.receive()?;
            // Replies to what was received, such as a key update.
            self.flush()?;
        }
    }

    /// Buffers bytes and writes as many as the kernel takes. Returns the number of bytes buffered,
    /// which may be fewer than given.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            self.flush()?;
            let taken = self.tls.writer().write(bytes)?;
            self.flush()?;
            if taken > 0 {
                return Ok(taken);
            }
            if self.tls.wants_write() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // The peer made room between the two flushes, and nothing is buffered any more.
        }
    }

    /// Whether buffered bytes wait for the socket to become writable.
    #[cfg(test)]
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(self.socket.as_fd())) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Announces the end of the stream to the peer, if the kernel takes it at once.
    pub(crate) fn close_notify(&mut self) {
        self.tls.send_close_notify();
        self.flush_last();
    }

    /// [`TlsStream::flush`] before the connection is closed.
    fn flush_last(&mut self) {
        match self.flush() {
            // The connection is given up anyway.
            Ok(()) | Err(_) => {}
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let received_bytes = self.tls.read_tls(&mut Socket(self.socket.as_fd()))?;
        if let Err(error) = self.tls.process_new_packets() {
            // Send the alert.
            self.flush_last();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(received_bytes)
    }
}

/// The socket for rustls. Signals interrupt a blocking socket that has a timeout.
struct Socket<'a>(BorrowedFd<'a>);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::recv(self.0, &mut *buffer, RecvFlags::empty()))?.0)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate
            .map_err(|error| Error::invalid(format!("the CA file is no PEM: {error}")))?;
        roots.add(certificate).map_err(|error| {
            Error::invalid(format!("the CA file has an unusable certificate: {error}"))
        })?;
    }
    if roots.is_empty() {
        return Err(Error::invalid(
            "the CA file has no certificate: expected -----BEGIN CERTIFICATE-----",
        ));
    }
    Ok(roots)
}
