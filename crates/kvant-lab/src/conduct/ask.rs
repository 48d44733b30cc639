//! Single requests to a running server for other commands.

use super::http::{Response, Server};
use kvant_base::{Error, ErrorKind, Result};
use kvant_load::Target;
use std::time::Duration;

/// Longest wait for a connection, and for each piece of a response.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A server at an address.
#[derive(Clone, Debug)]
pub struct Asked {
    url: String,
    server: Server,
}

impl Asked {
    /// The server of a URL; its path is not used.
    ///
    /// # Errors
    /// `Invalid` if it is no URL or speaks TLS; `Io` if its host is not found.
    pub fn new(url: &str) -> Result<Asked> {
        let target = Target::parse(url)?.resolve()?;
        let Some(server) = Server::of(&target) else {
            let problem = format!("`{url}`: without encryption only: use http:// on its machine");
            return Err(Error::invalid(problem));
        };
        Ok(Asked { url: url.to_owned(), server })
    }

    /// Sends a request without a body. Returns the body of a successful response.
    ///
    /// # Errors
    /// `Io` if there is no response; `Unsupported` with the server's own words if it refuses.
    pub fn ask(&self, method: &str, path: &str) -> Result<Vec<u8>> {
        let response = self.server.request(method, path, WAIT_MAX).map_err(|error| {
            let problem = format!("no response from {}: {error}", self.url);
            Error::new(ErrorKind::Io, problem)
        })?;
        match response.status {
            200..=299 => Ok(response.body),
            _ => Err(Error::new(ErrorKind::Unsupported, self.refusal(&response))),
        }
    }

    fn refusal(&self, response: &Response) -> String {
        let problem: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("it is no Kvant, or an older one");
        format!("{} answered {}: {detail}", self.url, response.status)
    }
}
