//! The constant parts of requests.

use super::config::{Kind, WorkloadConfig};
use crate::request::{HeaderBlock, append_decimal};
use crate::target::Target;
use kvant_base::{Error, Result};

/// The head of all requests of a kind to a target, cut at the key. In a `PUT` the second part ends
/// with the name of `Content-Length`. A request without a key is the first part alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) before_key: Vec<u8>,
    pub(super) after_key: Vec<u8>,
}

impl Head {
    pub(super) fn new(
        kind: Kind,
        config: &WorkloadConfig,
        target: &Target,
        headers: &[(String, String)],
    ) -> Result<Head> {
        if target.path.contains('?') {
            let message = format!(
                "a workload appends paths to its URL, so that `{}` must not have a query",
                target.url
            );
            return Err(Error::invalid(message));
        }
        let is_framing = |name: &str| {
            ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own))
        };
        if let Some((name, _)) = headers.iter().find(|(name, _)| is_framing(name)) {
            return Err(Error::invalid(format!(
                "a workload says itself how long bodies are, without the header {name}"
            )));
        }
        let base = target.path.trim_end_matches('/');
        let (path, after) = match kind {
            Kind::Put => {
                let ttl = config.ttl_s.map(|seconds| format!("&ttl={seconds}"));
                ("/v0/entity?id=", ttl.unwrap_or_default())
            }
            Kind::Get | Kind::Delete => ("/v0/entity?id=", String::new()),
            Kind::Range => ("/v0/entities?start=", format!("&limit={}", config.range_records)),
            Kind::Status => ("/v0/status", String::new()),
        };
        let mut before_key = format!("{} {base}{path}", kind.method()).into_bytes();
        let mut after_key = format!("{after} HTTP/1.1\r\n").into_bytes();
        after_key.extend_from_slice(HeaderBlock::new(target, headers)?.as_bytes());
        after_key.extend_from_slice(if kind == Kind::Put { b"Content-Length: " } else { b"\r\n" });
        if kind == Kind::Status {
            before_key.append(&mut after_key);
        }
        Ok(Head { before_key, after_key })
    }
}

/// Appends the rest of a `PUT` after its head: the length in digits, an empty line, the value.
#[inline]
pub(super) fn append_value(value: &[u8], out: &mut Vec<u8>) {
    append_decimal(out, value.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(value);
}
