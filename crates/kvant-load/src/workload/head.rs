//! The parts of a request's head that do not change from request to request.

use super::config::{Kind, Paths};
use crate::request::{HeaderBlock, append_decimal};
use crate::target::Target;
use kvant_base::{Error, Result};

/// Stands for the key in a path.
const KEY: &[u8] = b"{key}";

/// The head of all requests of a kind to a target: what stands before the key and what follows it.
/// Of a `PUT` the second part ends within the `Content-Length`. A request without a key is the
/// first part alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) before_key: Vec<u8>,
    pub(super) after_key: Vec<u8>,
}

impl Head {
    /// The head of requests of `kind`; `paths` has no problems.
    pub(super) fn new(
        kind: Kind,
        paths: &Paths,
        range_records: u64,
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
        let base = target.path.trim_end_matches('/');
        let path = match kind {
            Kind::Put | Kind::Get | Kind::Delete => paths.entity.clone(),
            Kind::Range => paths.range.replace("{limit}", &range_records.to_string()),
            Kind::Status => paths.status.clone(),
        };
        let block = HeaderBlock::new(target, headers)?;
        let set_here = |name: &str| {
            ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own))
        };
        if let Some((name, _)) = headers.iter().find(|(name, _)| set_here(name)) {
            return Err(Error::invalid(format!(
                "a workload says itself how long bodies are, without the header {name}"
            )));
        }
        let mut head = format!("{} {base}{path} HTTP/1.1\r\n", kind.method()).into_bytes();
        head.extend_from_slice(block.as_bytes());
        head.extend_from_slice(if kind == Kind::Put { b"Content-Length: " } else { b"\r\n" });
        let key_at = match kind {
            Kind::Status => None,
            // The first: what a header of the caller holds is nothing to us.
            _ => head.windows(KEY.len()).position(|window| window == KEY),
        };
        let after_key = key_at.map(|at| head[at + KEY.len()..].to_vec()).unwrap_or_default();
        head.truncate(key_at.unwrap_or(head.len()));
        Ok(Head { before_key: head, after_key })
    }
}

/// Appends what follows the head of a `PUT`: the length in digits, the blank line, the value.
#[inline]
pub(super) fn append_value(value: &[u8], out: &mut Vec<u8>) {
    append_decimal(out, value.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(value);
}
