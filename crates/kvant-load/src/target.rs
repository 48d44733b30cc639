//! Who is loaded: an `http://` or `https://` URL, or a socket of this machine.
//!
//! A unix socket is written as a URL whose host is its path, percent-encoded:
//! `http+unix://%2Frun%2Fkvant.sock/v0/status`.

#[cfg(test)]
mod tests;

use crate::net::tls::TlsConnector;
use kvant_base::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

/// Longest path of a unix socket, in bytes: what `sockaddr_un` holds, less its final zero.
const UNIX_PATH_BYTES_MAX: usize = 107;
/// What a request over a unix socket calls its server.
const UNIX_HOST: &str = "localhost";

/// A URL and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As it was given.
    pub url: String,
    /// Whether TLS is spoken.
    pub is_tls: bool,
    /// Host without port, for TLS and scripts; without the brackets of an IPv6 address. `localhost`
    /// for a unix socket.
    pub host: String,
    /// Port as it was written, if it was.
    pub port: Option<u16>,
    /// Value of the `Host` header: host, and port where the URL has one.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// Where to connect; the first is used, the others when it cannot be reached. Empty until
    /// [`Target::resolve`] was called.
    pub addresses: Vec<Address>,
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
}

/// What a URL begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Unix,
}

impl Target {
    /// Understands a URL. Path and query stay as they are given; a fragment is dropped, as it is
    /// nothing to a server.
    ///
    /// # Errors
    /// `Invalid`, with what is wrong with the URL.
    pub fn parse(url: &str) -> Result<Target> {
        parse(url).map_err(|problem| {
            let shown = without_credentials(url);
            Error::invalid(format!("the URL `{}` {problem}", shown.escape_debug()))
        })
    }

    /// Looks the host up. The order of its addresses is the one that the system prefers, IPv4 and
    /// IPv6 mixed.
    ///
    /// # Errors
    /// `Io` when the host has no address.
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

    /// Opens a connection and closes it, as wrk does before it begins. The first address that can
    /// be reached becomes the first.
    ///
    /// # Errors
    /// `Io` when none of the addresses can be reached, in wrk's words.
    pub fn reach(mut self, wait_max: Duration) -> Result<Target> {
        let mut last = None;
        for at in 0..self.addresses.len() {
            match self.addresses[at].reach(wait_max) {
                Ok(()) => {
                    self.addresses[..=at].rotate_right(1);
                    return Ok(self);
                }
                Err(error) => last = Some((at, error)),
            }
        }
        let (where_to, why) = match last {
            Some((at, error)) => (self.addresses[at].to_string(), error.to_string()),
            None => (self.host, "it has no address".to_owned()),
        };
        Err(Error::new(ErrorKind::Io, format!("unable to connect to {where_to} {why}")))
    }
}

impl Target {
    /// Opens a connection, where it speaks TLS, as far as the first request: what is wrong with a
    /// certificate would be wrong with that of every connection. `ca_pem` is what certificates are
    /// checked against, if they are.
    ///
    /// # Errors
    /// `Io` with the reason for which no connection can be had. `Invalid` when `ca_pem` has no
    /// certificate.
    pub fn shake_hands(&self, ca_pem: Option<&[u8]>, wait_max: Duration) -> Result<()> {
        let Some(address) = self.addresses.first().filter(|_| self.is_tls) else {
            return Ok(());
        };
        let connector = TlsConnector::new(ca_pem)?;
        let shaken = address.open(wait_max).and_then(|socket| {
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(wait_max))?;
            let mut tls = connector.start(socket, &self.host).map_err(io::Error::other)?;
            let is_open = tls.handshake()?;
            tls.close_notify();
            Ok(is_open)
        });
        let why = match shaken {
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

impl Address {
    fn reach(&self, wait_max: Duration) -> io::Result<()> {
        self.open(wait_max).map(drop)
    }

    /// A socket that blocks.
    fn open(&self, wait_max: Duration) -> io::Result<OwnedFd> {
        match self {
            Address::Tcp(address) => {
                TcpStream::connect_timeout(address, wait_max).map(OwnedFd::from)
            }
            Address::Unix(path) => UnixStream::connect(path).map(OwnedFd::from),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A URL as it may be shown: a message ends up in logs, where no password belongs.
fn without_credentials(url: &str) -> String {
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let authority_bytes = url[host_at..].find(['/', '?', '#']).unwrap_or(url.len() - host_at);
    match url[host_at..host_at + authority_bytes].rfind('@') {
        Some(at) => format!("{}...{}", &url[..host_at], &url[host_at + at..]),
        None => url.to_owned(),
    }
}

/// The error says how the URL goes on after its name: "has no host".
fn parse(url: &str) -> std::result::Result<Target, String> {
    if let Some(bad) = url.chars().find(|c| c.is_ascii_control() || c.is_ascii_whitespace()) {
        return Err(format!("has the character {bad:?}, which must be percent-encoded"));
    }
    let (scheme, rest) = scheme(url)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let authority_bytes = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_bytes);
    let path = match path.as_bytes().first() {
        Some(b'/') => path.to_owned(),
        // A query alone, or nothing.
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

fn scheme(url: &str) -> std::result::Result<(Scheme, &str), String> {
    const EXPECTED: &str = "expected http://, https:// or http+unix:// (with the path of a socket, percent-encoded, for a host)";
    let (scheme, rest) =
        url.split_once("://").ok_or_else(|| format!("has no scheme; {EXPECTED}"))?;
    let known = [("http", Scheme::Http), ("https", Scheme::Https), ("http+unix", Scheme::Unix)];
    match known.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)) {
        Some((_, scheme)) => Ok((*scheme, rest)),
        None => Err(format!("has the scheme `{scheme}`; {EXPECTED}")),
    }
}

fn unix_path(authority: &str) -> std::result::Result<PathBuf, String> {
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

fn host_and_port(authority: &str) -> std::result::Result<(String, Option<u16>), String> {
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
