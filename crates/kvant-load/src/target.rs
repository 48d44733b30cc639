//! The server under load: an `http://` or `https://` URL, or a Unix socket.
//!
//! A Unix socket is written as a URL whose host is its path, percent-encoded:
//! `http+unix://%2Frun%2Fkvant.sock/v0/status`.

#[cfg(test)]
mod tests;

pub use crate::net::address::Address;

use crate::net::tls::TlsConnector;
use kvant_base::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use rustix::net::sockopt;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv6Addr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest path of a Unix socket, in bytes: the size of `sockaddr_un` without the final zero.
const UNIX_PATH_BYTES_MAX: usize = 107;
const UNIX_HOST: &str = "localhost";

/// A URL and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As given.
    pub url: String,
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// Host without port, for TLS and scripts; an IPv6 address without brackets. `localhost` for a
    /// Unix socket.
    pub host: String,
    /// Port, if the URL has one.
    pub port: Option<u16>,
    /// Value of the `Host` header: host, and port if the URL has one.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// Connections use the first, and the others if it is unreachable. Empty before
    /// [`Target::resolve`].
    pub addresses: Vec<Address>,
}

type Parsed<T> = std::result::Result<T, String>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Unix,
}

impl Target {
    /// Parses a URL. Path and query are kept as given; the fragment is dropped.
    pub fn parse(url: &str) -> Result<Target> {
        parse(url).map_err(|problem| {
            let shown = without_credentials(url);
            Error::invalid(format!("the URL `{}` {problem}", shown.escape_debug()))
        })
    }

    /// Resolves the host. The addresses are in the system's order, IPv4 and IPv6 mixed.
    pub fn resolve(mut self) -> Result<Target> {
        if matches!(self.addresses[..], [Address::Unix(_)]) {
            return Ok(self);
        }
        let port = self.port.unwrap_or(if self.is_tls { 443 } else { 80 });
        let failed = |why: String| {
            Error::new(ErrorKind::Io, format!("cannot find the host `{}`: {why}", self.host))
        };
        let found = (self.host.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| failed(error.to_string()))?;
        let mut addresses: Vec<Address> = Vec::new();
        for address in found.map(Address::Tcp) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(failed("it has no address".to_owned()));
        }
        self.addresses = addresses;
        Ok(self)
    }

    /// Opens and closes a connection, as wrk does before it begins. Moves the first reachable
    /// address to the front.
    ///
    /// # Errors
    /// `Io` when no address is reachable, in wrk's words.
    pub fn reach(mut self, wait_max: Duration) -> Result<Target> {
        let mut failure = format!("{} it has no address", self.host);
        for at in 0..self.addresses.len() {
            match self.addresses[at].open(wait_max) {
                Ok(_socket) => {
                    self.addresses[..=at].rotate_right(1);
                    return Ok(self);
                }
                Err(error) => failure = format!("{} {error}", self.addresses[at]),
            }
        }
        Err(Error::new(ErrorKind::Io, format!("unable to connect to {failure}")))
    }

    /// Opens a TLS connection up to the first request, if the target has TLS: an error of the
    /// certificate would be that of every connection. `ca_pem` has the certificates to check
    /// against, if any.
    ///
    /// # Errors
    /// `Io` with the reason for the failure. `Invalid` when `ca_pem` has no certificate.
    pub fn shake_hands(&self, ca_pem: Option<&[u8]>, wait_max: Duration) -> Result<()> {
        let Some(address) = self.addresses.first().filter(|_| self.is_tls) else {
            return Ok(());
        };
        let connector = TlsConnector::new(ca_pem)?;
        let is_open = address.open(wait_max).and_then(|socket| {
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(wait_max))?;
            let mut tls = connector.start(socket, &self.host).map_err(io::Error::other)?;
            let is_open = tls.handshake()?;
            tls.close_notify();
            Ok(is_open)
        });
        let why = match is_open {
            Ok(true) => return Ok(()),
            Ok(false) => "the server does not answer".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Error::new(
            ErrorKind::Io,
            format!("unable to speak TLS to {address} ({}): {why}", self.host),
        ))
    }
}

/// A URL for messages, which may end up in logs.
fn without_credentials(url: &str) -> String {
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let authority_bytes = url[host_at..].find(['/', '?', '#']).unwrap_or(url.len() - host_at);
    match url[host_at..host_at + authority_bytes].rfind('@') {
        Some(at) => format!("{}...{}", &url[..host_at], &url[host_at + at..]),
        None => url.to_owned(),
    }
}

/// The error completes a sentence about the URL, such as "has no host".
fn parse(url: &str) -> Parsed<Target> {
    if let Some(bad) = url.chars().find(|c| c.is_ascii_control() || c.is_ascii_whitespace()) {
        return Err(format!("has the character {bad:?}, which must be percent-encoded"));
    }
    let (scheme, rest) = scheme(url)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let authority_bytes = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_bytes);
    let path = match path.as_bytes().first() {
        Some(b'/') => path.to_owned(),
        // Empty, or only a query.
        _ => format!("/{path}"),
    };
    if authority.contains('@') {
        return Err(
            "has a user name: send credentials as a header, -H 'Authorization: ...'".to_owned()
        );
    }
    let mut target = Target {
        url: url.to_owned(),
        is_tls: scheme == Scheme::Https,
        host: UNIX_HOST.to_owned(),
        port: None,
        authority: UNIX_HOST.to_owned(),
        path,
        addresses: Vec::new(),
    };
    if scheme == Scheme::Unix {
        target.addresses.push(Address::Unix(unix_path(authority)?));
    } else {
        (target.host, target.port) = host_and_port(authority)?;
        target.authority = match target.port {
            Some(_) => authority.to_owned(),
            // A colon without a port.
            None => authority.trim_end_matches(':').to_owned(),
        };
    }
    Ok(target)
}

fn scheme(url: &str) -> Parsed<(Scheme, &str)> {
    const EXPECTED: &str = "expected http://, https:// or http+unix:// (with the path of a socket, percent-encoded, for a host)";
    let (scheme, rest) =
        url.split_once("://").ok_or_else(|| format!("has no scheme; {EXPECTED}"))?;
    let known = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "http+unix" => Scheme::Unix,
        _ => return Err(format!("has the scheme `{scheme}`; {EXPECTED}")),
    };
    Ok((known, rest))
}

fn unix_path(authority: &str) -> Parsed<PathBuf> {
    if authority.is_empty() {
        return Err(
            "has no socket: percent-encode its path, as in http+unix://%2Frun%2Fkvant.sock/"
                .to_owned(),
        );
    }
    if authority.contains(':') {
        return Err(
            "has a port, which a unix socket has not (a colon of its path is %3A)".to_owned()
        );
    }
    let path: Vec<u8> = percent_decode_str(authority).collect();
    if path.contains(&0) {
        return Err("has a zero byte in the path of its socket".to_owned());
    }
    if path.len() > UNIX_PATH_BYTES_MAX {
        return Err(format!("has a socket whose path is longer than {UNIX_PATH_BYTES_MAX} bytes"));
    }
    Ok(PathBuf::from(OsString::from_vec(path)))
}

fn host_and_port(authority: &str) -> Parsed<(String, Option<u16>)> {
    let (host, after_host) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after_host) = bracketed.split_once(']').ok_or("has `[` without `]`")?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(format!("has `{host}` in brackets, which is no IPv6 address"));
            }
            (host, after_host)
        }
        None => {
            let host_bytes = authority.find(':').unwrap_or(authority.len());
            let (host, after_host) = authority.split_at(host_bytes);
            if after_host.matches(':').count() > 1 {
                return Err(
                    "has more than one colon in its host: an IPv6 address stands in brackets"
                        .to_owned(),
                );
            }
            if let Some(bad) =
                host.chars().find(|c| !(c.is_ascii_alphanumeric() || "-._~".contains(*c)))
            {
                return Err(format!("has the character {bad:?} in its host"));
            }
            (host, after_host)
        }
    };
    if host.is_empty() {
        return Err("has no host".to_owned());
    }
    let port = match after_host {
        "" | ":" => None,
        _ => {
            let digits =
                after_host.strip_prefix(':').ok_or("has something between `]` and the port")?;
            let port =
                digits.parse::<u16>().ok().filter(|port| *port != 0 && !digits.starts_with('+'));
            Some(
                port.ok_or_else(|| {
                    format!("has the port `{digits}`, which is not from 1 to 65535")
                })?,
            )
        }
    };
    Ok((host.to_owned(), port))
}
