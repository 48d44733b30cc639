//! TLS over a non-blocking socket: the client's side, with rustls and the primitives of ring.
//!
//! A [`TlsStream`] reads and writes as a plain socket does, and must be driven alike: what would
//! block says so and is tried again when the socket is ready. There is one difference: what was
//! written may still be in memory. While [`TlsStream::wants_write`], somebody has to call
//! [`TlsStream::flush`] when the socket becomes writable.
//!
//! Certificates are checked only against a file of certificates that the user gives. Without one,
//! whoever answers is believed, as wrk and wrk2 do: a load generator measures test servers, whose
//! certificates are mostly self-made, and sends nothing that has to be kept from an impostor. With
//! one, chain, dates and name are checked as a browser does.
//!
//! Invariants:
//! 1. `read` and `write` fail with `WouldBlock` only after the kernel said so: edge-triggered
//!    events suffice.
//! 2. The end of the connection reads as 0, with or without a `close_notify` before it. Whether an
//!    answer was cut off is the matter of its own framing.
//!
//! Threads: a stream belongs to one; a [`TlsConnector`] may be shared, and with it the sessions
//! that servers let us resume.

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

/// What all TLS connections of a run share.
#[derive(Clone, Debug)]
pub(crate) struct TlsConnector(Arc<ClientConfig>);

impl TlsConnector {
    /// Checks certificates against those in `ca_pem`, or not at all.
    ///
    /// # Errors
    /// `Invalid` when `ca_pem` has no certificate, or one that cannot be understood.
    pub(crate) fn new(ca_pem: Option<&[u8]>) -> Result<TlsConnector> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ring offers the ciphers of TLS 1.2 and 1.3");
        let mut config = match ca_pem {
            Some(pem) => builder.with_root_certificates(roots(pem)?),
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(BelieveAnyone(provider))),
        }
        .with_no_client_auth();
        // A server that prefers HTTP/2 is told that it is not spoken here.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector(Arc::new(config)))
    }

    /// A stream over a connected socket, to be driven with [`TlsStream::handshake`]. `host` is the
    /// name that the server is asked for (SNI) and has to prove; of an IP address only the latter.
    ///
    /// # Errors
    /// `Invalid` when `host` is neither a DNS name nor an address.
    pub(crate) fn start(&self, socket: OwnedFd, host: &str) -> Result<TlsStream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::invalid(format!("TLS cannot ask for the host `{host}`")))?;
        let tls = ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|error| Error::invalid(format!("cannot speak TLS to `{host}`: {error}")))?;
        Ok(TlsStream { socket, tls })
    }
}

/// A connection in TLS.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: OwnedFd,
    tls: ClientConnection,
}

impl TlsStream {
    /// The socket.
    #[cfg(test)]
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Goes on with the handshake as far as it goes; whether it is over. To be called once, and
    /// then when the socket is ready for whatever.
    ///
    /// # Errors
    /// The handshake failed: a certificate that is not accepted, no common version, no TLS at all,
    /// the end of the connection.
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

    /// Reads what there is; 0 when the peer sends no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer left without a close_notify.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
            self.receive()?;
            // Answers to what was received, such as a new key.
            self.flush()?;
        }
    }

    /// Takes bytes to send and writes what the kernel takes: how many bytes were taken, which may
    /// be fewer than given.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.flush()?;
        let taken = self.tls.writer().write(bytes)?;
        self.flush()?;
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Whether bytes that were taken wait for the socket to become writable.
    #[cfg(test)]
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Writes what waits, as far as the kernel takes it; what it does not take is no error.
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

    /// Tells the peer that nothing more comes, as far as the kernel takes that at once.
    pub(crate) fn close_notify(&mut self) {
        self.tls.send_close_notify();
        self.flush_in_vain();
    }

    /// As [`TlsStream::flush`], at the end of the connection.
    fn flush_in_vain(&mut self) {
        match self.flush() {
            // Whoever is leaving has no use for an error.
            Ok(()) | Err(_) => {}
        }
    }

    /// Takes what the socket has; how many bytes. `WouldBlock` when it has none.
    fn receive(&mut self) -> io::Result<usize> {
        let received_bytes = self.tls.read_tls(&mut Socket(self.socket.as_fd()))?;
        if let Err(error) = self.tls.process_new_packets() {
            // The peer is told why.
            self.flush_in_vain();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(received_bytes)
    }
}

/// Reads and writes for rustls. A socket that blocks, and has a timeout, is interrupted by any
/// signal.
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

/// Checks nothing: any certificate of any server will do. Bytes are encrypted, but nobody knows for
/// whom.
#[derive(Debug)]
struct BelieveAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for BelieveAnyone {
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
