//! Rejects requests of web pages of other sites.
//!
//! A browser sends requests for any open page, to loopback addresses too. `Sec-Fetch-Site` and
//! `Origin` describe the page; `Host` is the name under which the page knows this server. A foreign
//! name that resolves to this server's address (DNS rebinding) shows in `Host` alone.
//!
//! Invariant: [`check`] decides on every request, whatever its method and path. The fast path
//! serves only requests that have neither `Origin` nor `Sec-Fetch-Site`, and whose `Host` passes
//! [`is_own_host`], as [`check`] requires.

use super::Problem;
use http::header::{HOST, HeaderMap, ORIGIN};
use http::{StatusCode, Uri};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The longest host name in DNS. Longer ones are not repeated in responses.
const NAME_BYTES_MAX: usize = 253;

/// The problem of a name for `--allowed-hosts`, if it is invalid.
pub fn allowed_host_problem(name: &str) -> Option<String> {
    let is_host = !name.is_empty() && host_name(name.as_bytes()) == Some(name.as_bytes());
    (!is_host)
        .then(|| format!("`{name}` is not the name of a host: leave out scheme, port and path"))
}

/// Checks that a web page of another site did not send this request.
pub(crate) fn check(
    uri: &Uri,
    headers: &HeaderMap,
    allowed_hosts: &[String],
) -> Result<(), Problem> {
    let hosts = || headers.get_all(HOST).iter().map(|host| host.as_bytes());
    let target = uri.authority().map(|authority| authority.as_str().as_bytes());
    for host in hosts().chain(target) {
        let Some(name) = host_name(host) else {
            return Err(Problem::bad_head(
                "Host is the name or the address of a host, and a port where it is needed",
            ));
        };
        if !is_own_name(name, allowed_hosts) {
            return Err(foreign_host(name));
        }
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.as_bytes();
        let is_host = |authority| hosts().any(|host| host.eq_ignore_ascii_case(authority));
        let is_own = origin.strip_prefix(b"http://").is_some_and(is_host)
            || origin_name(origin).is_some_and(|name| is_listed(name, allowed_hosts));
        if !is_own {
            return Err(foreign_site(
                "nothing was done: `Origin` names another site, so a web page of that site sent the request; if users \
                 reach the server under the page's host, start it with --allowed-hosts and that name",
            ));
        }
    }
    for site in headers.get_all(SEC_FETCH_SITE) {
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return Err(foreign_site(
                "nothing was done: `Sec-Fetch-Site` says that a web page of another site sent the request; only pages of \
                 the server's own origin may, which can have another name where a proxy and --allowed-hosts give it one",
            ));
        }
    }
    Ok(())
}

/// Whether this value of `Host` is an address, `localhost` or listed, with any port. An empty one,
/// which no browser sends, passes.
#[inline]
pub(crate) fn is_own_host(host: &[u8], allowed_hosts: &[String]) -> bool {
    host_name(host).is_some_and(|name| is_own_name(name, allowed_hosts))
}

#[inline]
fn is_own_name(name: &[u8], allowed_hosts: &[String]) -> bool {
    name.is_empty()
        || name.eq_ignore_ascii_case(b"localhost")
        || name.first() == Some(&b'[')
        || str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok())
        || is_listed(name, allowed_hosts)
}

fn is_listed(name: &[u8], allowed_hosts: &[String]) -> bool {
    allowed_hosts.iter().any(|allowed| name.eq_ignore_ascii_case(allowed.as_bytes()))
}

/// The host without its port; `None` if it is malformed (RFC 3986, 3.2.2). IPv6 addresses keep
/// their brackets.
#[inline]
fn host_name(host: &[u8]) -> Option<&[u8]> {
    let name_bytes = if host.first() == Some(&b'[') {
        let end = host.iter().position(|&byte| byte == b']')?;
        let address = str::from_utf8(&host[1..end]).ok()?;
        address.parse::<Ipv6Addr>().ok()?;
        end + 1
    } else {
        let is_end =
            |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(byte));
        host.iter().position(is_end).unwrap_or(host.len())
    };
    let (name, port) = host.split_at(name_bytes);
    let is_port = match port.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    };
    is_port.then_some(name)
}

/// The host of an origin: `scheme://host[:port]`.
fn origin_name(origin: &[u8]) -> Option<&[u8]> {
    let scheme_bytes = origin.windows(3).position(|part| part == b"://")?;
    host_name(&origin[scheme_bytes + 3..])
}

#[cold]
fn foreign_host(name: &[u8]) -> Problem {
    let (shown, wanted) = match str::from_utf8(name) {
        Ok(name) if name.len() <= NAME_BYTES_MAX => (format!("`{name}`"), name),
        _ => ("a name".to_string(), "NAME"),
    };
    foreign_site(format!(
        "nothing was done: `Host` is {shown}, which is neither an address nor `localhost`, so a web page of another site \
         may have sent the request; if clients reach the server under this name, start it with --allowed-hosts {wanted}"
    ))
}

#[cold]
fn foreign_site(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "foreign-site", "Request of another site", detail)
}

#[cfg(test)]
mod tests;
