//! The server's side of TLS, with a self-signed certificate.

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::sync::Arc;

/// A configuration for `localhost` and 127.0.0.1, and its certificate as PEM.
pub(crate) fn server_config() -> (ServerConfig, String) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
    (config, made.cert.pem())
}

/// Decrypts what a socket receives and encrypts what it sends.
pub(crate) struct ServerSide(ServerConnection);

impl ServerSide {
    pub(crate) fn new(config: Arc<ServerConfig>) -> ServerSide {
        ServerSide(ServerConnection::new(config).unwrap())
    }

    /// Decrypts received bytes; nothing after a protocol error.
    pub(crate) fn received(&mut self, mut encrypted: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        while !encrypted.is_empty() {
            let is_fine = self.0.read_tls(&mut encrypted).is_ok_and(|read| read > 0)
                && self.0.process_new_packets().is_ok();
            if !is_fine {
                break;
            }
            // The reader ends with an error.
            drop(self.0.reader().read_to_end(&mut plain));
        }
        plain
    }

    /// Encrypts `plain`; includes pending TLS records.
    pub(crate) fn sending(&mut self, plain: &[u8]) -> Vec<u8> {
        self.0.writer().write_all(plain).unwrap();
        let mut encrypted = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut encrypted).unwrap();
        }
        encrypted
    }
}
