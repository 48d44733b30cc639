//! Where records are copied from and to, as one writes it.

use kvant_base::{Error, Result};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

const CLUSTER: &str = "cassandra://";
const SERVER: &str = "http://";
const CLUSTER_PORT: u16 = 9042;

/// A place of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Of the engine `lsm` or `leveldb`: its files tell.
    Directory(PathBuf),
    /// A server, as `HOST:PORT`.
    Server(String),
    /// A keyspace of a cluster.
    Cluster { nodes: Vec<String>, keyspace: String },
}

impl Place {
    pub(super) fn parse(text: &OsStr) -> Result<Place> {
        let Some((scheme, rest)) = text.to_str().and_then(|text| text.split_once("://")) else {
            return Ok(Place::Directory(text.into()));
        };
        let text = text.to_string_lossy();
        match scheme {
            "http" => Place::server(&text, rest),
            "cassandra" => Place::cluster(&text, rest),
            "https" => Err(Error::invalid(format!(
                "{text}: a server speaks HTTP without TLS; name the server behind the proxy"
            ))),
            _ => Err(Error::invalid(format!(
                "{text} is no place of records: name a directory, a server as \
                 http://127.0.0.1:8080, or cassandra://HOST[:PORT][,HOST...]/KEYSPACE"
            ))),
        }
    }

    fn server(text: &str, rest: &str) -> Result<Place> {
        let host = rest.trim_end_matches('/');
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@']);
        match is_host {
            true => Ok(Place::Server(with_port(host, 80))),
            false => {
                Err(Error::invalid(format!("{text}: a server is named as http://127.0.0.1:8080")))
            }
        }
    }

    fn cluster(text: &str, rest: &str) -> Result<Place> {
        let (nodes, keyspace) = rest.split_once('/').unwrap_or((rest, ""));
        let nodes: Vec<String> = nodes.split(',').map(str::to_string).collect();
        let is_whole = !keyspace.is_empty() && !keyspace.contains('/');
        if !is_whole || nodes.iter().any(String::is_empty) {
            return Err(Error::invalid(format!(
                "{text}: a cluster is cassandra://HOST[:PORT][,HOST...]/KEYSPACE"
            )));
        }
        if rest.contains('@') {
            return Err(Error::invalid(
                "the user of a cluster is named by --cluster-user, the password by \
                 --cluster-password-file",
            ));
        }
        let nodes = nodes.iter().map(|node| with_port(node, CLUSTER_PORT)).collect();
        Ok(Place::Cluster { nodes, keyspace: keyspace.to_string() })
    }
}

/// As it is written. An unfinished copy knows its source by this text.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Directory(path) => write!(f, "{}", path.display()),
            Place::Server(host) => write!(f, "{SERVER}{host}"),
            Place::Cluster { nodes, keyspace } => {
                write!(f, "{CLUSTER}{}/{keyspace}", nodes.join(","))
            }
        }
    }
}

fn with_port(host: &str, port: u16) -> String {
    // The last colon of an IPv6 address is in its brackets.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let is_bare_ipv6 = host.ends_with(']');
    if has_port && !is_bare_ipv6 { host.to_string() } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests;
