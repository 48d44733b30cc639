//! The kind of a request without `wrk.tag`: its method and the class of its path.
//!
//! The class of a path is the path without its query, with `:id` in place of segments that are
//! numbers, UUIDs or long hexadecimal numbers: `GET /v0/entity?id=7` is `GET /v0/entity`, and `GET
//! /users/17/posts` is `GET /users/:id/posts`.
//!
//! Threads: each source has its own classifier, so that known kinds need no lock.

use crate::op::OpNames;
use crate::source::Expected;

/// Most cached prefixes of requests. Further ones take the slow path.
const PREFIXES_MAX: usize = 32;
/// Most cached classes. Further ones are looked up each time, mostly as [`crate::op::OTHER`].
const CLASSES_MAX: usize = 64;
/// The shortest hexadecimal number that counts as an id.
const HEX_DIGITS_MIN: usize = 16;

/// Caches kinds by the prefixes of requests.
#[derive(Debug)]
pub(super) struct Classifier {
    ops: OpNames,
    /// Method and path as in requests; most requests match the first.
    prefixes: Vec<(Box<[u8]>, Expected)>,
    /// Method and class, if the class differs from the path.
    classes: Vec<(String, Expected)>,
    scratch: String,
}

impl Classifier {
    /// An empty cache.
    pub(super) fn new(ops: OpNames) -> Classifier {
        Classifier { ops, prefixes: Vec::new(), classes: Vec::new(), scratch: String::new() }
    }

    /// The kind of `request`, and whether it is a `HEAD`.
    pub(super) fn classify(&mut self, request: &[u8]) -> Expected {
        let is_known = |(prefix, _): &(Box<[u8]>, Expected)| {
            request.starts_with(prefix)
                && request.get(prefix.len()).is_none_or(|&byte| ends_path(byte))
        };
        if let Some(at) = self.prefixes.iter().position(is_known) {
            return self.prefixes[at].1;
        }
        self.classify_new(request)
    }

    fn classify_new(&mut self, request: &[u8]) -> Expected {
        let (method, target) = split(request);
        let is_literal = write_class(&mut self.scratch, method, target);
        if let Some((_, known)) = self.classes.iter().find(|(class, _)| *class == self.scratch) {
            return *known;
        }
        let expected = Expected { op: self.ops.intern(&self.scratch), is_head: method == b"HEAD" };
        if is_literal && self.prefixes.len() < PREFIXES_MAX {
            let prefix = &request[..method.len() + 1 + target.len()];
            self.prefixes.push((prefix.into(), expected));
        } else if self.classes.len() < CLASSES_MAX {
            self.classes.push((self.scratch.clone(), expected));
        }
        expected
    }
}

/// Whether `request` is a `HEAD`.
pub(super) fn is_head(request: &[u8]) -> bool {
    request.starts_with(b"HEAD ")
}

fn ends_path(byte: u8) -> bool {
    matches!(byte, b' ' | b'?' | b'#' | b'\r' | b'\n')
}

/// Method and path of a request, without the query.
fn split(request: &[u8]) -> (&[u8], &[u8]) {
    let method_len = request.iter().position(|&byte| ends_path(byte)).unwrap_or(request.len());
    let (method, rest) = request.split_at(method_len);
    let rest = rest.get(1..).unwrap_or_default();
    let path_len = rest.iter().position(|&byte| ends_path(byte)).unwrap_or(rest.len());
    (method, &rest[..path_len])
}

/// Writes method and class to `class`; returns whether the class equals `target`.
fn write_class(class: &mut String, method: &[u8], target: &[u8]) -> bool {
    class.clear();
    class.push_str(&String::from_utf8_lossy(method));
    class.push(' ');
    let path = without_authority(target);
    let mut is_literal = path.len() == target.len();
    for (index, segment) in path.split(|&byte| byte == b'/').enumerate() {
        if index > 0 {
            class.push('/');
        }
        if is_id(segment) {
            is_literal = false;
            class.push_str(":id");
        } else {
            class.push_str(&String::from_utf8_lossy(segment));
        }
    }
    is_literal
}

/// The path of `target`, which is a whole URL in requests to a proxy.
fn without_authority(target: &[u8]) -> &[u8] {
    let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
    match rest {
        Some(rest) => rest.iter().position(|&byte| byte == b'/').map_or(b"/", |at| &rest[at..]),
        None => target,
    }
}

fn is_id(segment: &[u8]) -> bool {
    if segment.is_empty() {
        return false;
    }
    if segment.iter().all(u8::is_ascii_digit) {
        return true;
    }
    if segment.len() == 36 && [8, 13, 18, 23].iter().all(|&at| segment[at] == b'-') {
        return segment.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    }
    segment.len() >= HEX_DIGITS_MIN && segment.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests;
