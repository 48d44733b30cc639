//! The parts of a request's head that do not change from request to request.

use super::config::{Kind, Paths};
use crate::target::Target;
use kvant_base::{Error, Result};

/// Stands for the key in a path.
const KEY: &str = "{key}";

/// The head of all requests of a kind to a target: what stands before the key and what follows it. Of a `PUT` the second
/// part ends within the `Content-Length`. A request without a key is the first part alone.
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
        let mut head = format!("{} {base}{path} HTTP/1.1\r\n", kind.method());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", target.authority);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += if kind == Kind::Put {
            "Content-Length: "
        } else {
            "\r\n"
        };
        // Only the first: a header of the caller may hold anything.
        let (before_key, after_key) = match kind {
            Kind::Status => (head.as_str(), ""),
            _ => head.split_once(KEY).unwrap_or((head.as_str(), "")),
        };
        Ok(Head {
            before_key: before_key.as_bytes().to_vec(),
            after_key: after_key.as_bytes().to_vec(),
        })
    }
}

/// Appends what follows the head of a `PUT`: the length in digits, the blank line, the value.
#[inline]
pub(super) fn append_value(value: &[u8], out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(value);
}
