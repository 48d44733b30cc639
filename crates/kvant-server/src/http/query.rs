//! Queries: percent-encoded keys and a few other parameters.
//!
//! A `+` is a plus sign. Parameter names are compared as sent. Unknown parameters are ignored,
//! except where `only` rejects them.

use super::{Operation, Problem};
use crate::key::Key;
#[cfg(feature = "profiler")]
use kvant_base::{dilation, tag::Stage};
use kvant_base::{duration, limits};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct EntityQuery {
    pub(crate) key: Key,
    /// Only read from `PUT`.
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) replicas: Option<Replicas>,
    /// Whether a cluster is to trace the request.
    pub(crate) is_traced: bool,
}

/// `ack=A&from=F`, or `replicas=A/F`: the request succeeds when `ack_count` of `from_count` nodes
/// have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    ack_count: u32,
    from_count: u32,
}

impl EntityQuery {
    /// The answers to wait for, if the request says.
    pub(crate) fn ack_count(&self) -> Option<u32> {
        self.replicas.map(|replicas| replicas.ack_count)
    }

    /// Checks the parameters of replication, in an engine that stores each record `count` times.
    #[inline]
    pub(crate) fn check_replicas(&self, count: u32) -> Result<(), Problem> {
        match self.replicas {
            Some(replicas) if replicas.from_count != count => Err(bad_query(format!(
                "this engine stores each record {count} times: only from={count} is valid"
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct RangeQuery {
    pub(crate) start: Key,
    pub(crate) end: Option<Key>,
    pub(crate) limit: Option<u64>,
}

/// Reads the query of an entity request; `ttl` counts only when `with_ttl`.
pub(crate) fn entity(query: Option<&str>, with_ttl: bool) -> Result<EntityQuery, Problem> {
    let (mut key, mut ttl, mut ack, mut from, mut replicas) = (None, None, None, None, None);
    let mut trace = None;
    for (name, value) in parameters(query) {
        match name {
            "id" => set(&mut key, "id", value)?,
            "ttl" if with_ttl => set(&mut ttl, "ttl", value)?,
            "ack" => set(&mut ack, "ack", value)?,
            "from" => set(&mut from, "from", value)?,
            "replicas" => set(&mut replicas, "replicas", value)?,
            "trace" => set(&mut trace, "trace", value)?,
            _ => {}
        }
    }
    let key = key_of("id", key)?;
    let ttl_ms = ttl.map(ttl_ms).transpose()?;
    let replicas = match (ack, from, replicas) {
        (None, None, None) => None,
        _ => replicas_of(ack, from, replicas)?,
    };
    let is_traced = trace.map(is_traced).transpose()?.unwrap_or(false);
    Ok(EntityQuery { key, ttl_ms, replicas, is_traced })
}

pub(crate) fn range(query: Option<&str>) -> Result<RangeQuery, Problem> {
    let [start, end, limit] = named(query, ["start", "end", "limit"])?;
    let limit = limit.map(limit_of).transpose()?;
    Ok(RangeQuery {
        start: key_of("start", start)?,
        end: end.map(|end| key_of("end", Some(end))).transpose()?,
        limit,
    })
}

/// Reads the query of the slowest requests: the limit, and the operation.
pub(crate) fn slow(query: Option<&str>) -> Result<(Option<u64>, Option<Operation>), Problem> {
    let [limit, operation] = named(query, ["limit", "operation"])?;
    Ok((limit.map(limit_of).transpose()?, operation.map(operation_of).transpose()?))
}

/// Which part of the history a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistorySpan {
    /// This many nanoseconds until now.
    Last(u64),
    /// Times of the monotonic clock; without an end, until now.
    Between { from_ns: u64, to_ns: Option<u64> },
}

/// Reads the query of the history.
pub(crate) fn history(query: Option<&str>) -> Result<HistorySpan, Problem> {
    let [last, from, to] = named(query, ["last", "from_ns", "to_ns"])?;
    let number = |name, text| {
        digits(text).ok_or_else(|| bad_parameter(name, text, "a whole number of nanoseconds"))
    };
    match (last, from, to) {
        (Some(last), None, None) => {
            time("last", last).map(|last| HistorySpan::Last(duration::ns(last)))
        }
        (Some(_), _, _) => {
            Err(bad_query("`last` and `from_ns`, `to_ns` exclude each other".into()))
        }
        (None, from, to) => {
            let from_ns = from.map_or(Ok(0), |text| number("from_ns", text))?;
            let to_ns = to.map(|text| number("to_ns", text)).transpose()?;
            if to_ns.is_some_and(|to_ns| to_ns < from_ns) {
                return Err(bad_query("`to_ns` is before `from_ns`".into()));
            }
            Ok(HistorySpan::Between { from_ns, to_ns })
        }
    }
}

/// Reads the query of a pause: its length.
pub(crate) fn pause(query: Option<&str>) -> Result<Duration, Problem> {
    const LONGEST: Duration = Duration::from_secs(10);
    let [Some(text)] = named(query, ["for"])? else {
        return Err(bad_query("`for` is missing: the length of the pause, such as 200ms".into()));
    };
    let length = time("for", text)?;
    if length > LONGEST { Err(bad_parameter("for", text, "at most 10s")) } else { Ok(length) }
}

/// Which stages to slow down, and for how long.
#[cfg(feature = "profiler")]
#[derive(Debug)]
pub(crate) struct WhatIfQuery {
    pub(crate) time: Duration,
    pub(crate) added: dilation::Added,
}

/// Reads the query of an experiment that slows stages down: `for=2s&slow=parse:33.33,table:100`.
#[cfg(feature = "profiler")]
pub(crate) fn what_if(query: Option<&str>) -> Result<WhatIfQuery, Problem> {
    const LONGEST: Duration = Duration::from_secs(60);
    only(query, &["for", "slow"])?;
    let [Some(text), slow] = named(query, ["for", "slow"])? else {
        return Err(bad_query("`for` is missing: the length of the experiment, such as 2s".into()));
    };
    let length = time("for", text)?;
    if length > LONGEST {
        return Err(bad_parameter("for", text, "at most 60s"));
    }
    let mut added = [0; dilation::STAGE_COUNT];
    if let Some(slow) = slow {
        let decoded = decode(slow).ok_or_else(|| badly_encoded("slow"))?;
        let pairs = std::str::from_utf8(&decoded).ok();
        let pairs =
            pairs.and_then(|pairs| pairs.split(',').map(slowed).collect::<Option<Vec<_>>>());
        let wanted = "stages with per cent from 0 to 300, such as parse:33.33,table:100";
        for (stage, parts) in pairs.ok_or_else(|| bad_parameter("slow", slow, wanted))? {
            added[stage as usize] = parts;
        }
    }
    Ok(WhatIfQuery { time: length, added })
}

/// A stage, and what is added to it.
#[cfg(feature = "profiler")]
fn slowed(pair: &str) -> Option<(Stage, u32)> {
    const PERCENT_MAX: f64 = 300.0;
    let (stage, percent) = pair.split_once(':')?;
    let is_plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = percent.parse().ok().filter(|_| is_plain)?;
    let parts = (percent / 100.0 * f64::from(dilation::UNIT)).round() as u32;
    (percent <= PERCENT_MAX).then_some((Stage::from_name(stage)?, parts))
}

fn time(name: &str, text: &str) -> Result<Duration, Problem> {
    let decoded = decode(text);
    let plain = decoded.as_deref().and_then(|text| std::str::from_utf8(text).ok());
    let time = plain.and_then(|text| duration::parse(text).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| bad_parameter(name, text, "a time longer than zero, such as 500ms or 5m"))
}

/// Reads the query of the event stream: the number of the last event that the client has.
pub(crate) fn after(query: Option<&str>) -> Result<Option<u64>, Problem> {
    let [after] = named(query, ["after"])?;
    let number =
        |text| digits(text).ok_or_else(|| bad_parameter("after", text, "the number of an event"));
    after.map(number).transpose()
}

pub(crate) fn text(query: Option<&str>, wanted: &'static str) -> Result<Option<String>, Problem> {
    let [Some(value)] = named(query, [wanted])? else { return Ok(None) };
    let decoded = decode(value).ok_or_else(|| badly_encoded(wanted))?;
    String::from_utf8(decoded.to_vec()).map(Some).map_err(|_| badly_encoded(wanted))
}

/// Rejects parameters that are not among `known`: for requests where a misspelt one would be
/// noticed too late.
#[cfg(feature = "profiler")]
pub(crate) fn only(query: Option<&str>, known: &[&str]) -> Result<(), Problem> {
    let is_unknown = |name: &&str| !name.is_empty() && !known.contains(name);
    match parameters(query).map(|(name, _)| name).find(is_unknown) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(40).collect();
            let names = known.join(", ");
            Err(bad_query(format!("`{shown}` is no parameter here; there are {names}")))
        }
    }
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.unwrap_or("").split('&').map(|pair| split_once(pair, b'=').unwrap_or((pair, "")))
}

/// As [`str::split_once`] by an ASCII character; faster for text of a few bytes.
#[inline]
pub(crate) fn split_once(text: &str, at: u8) -> Option<(&str, &str)> {
    let position = text.bytes().position(|byte| byte == at)?;
    Some((&text[..position], &text[position + 1..]))
}

fn set<'a>(slot: &mut Option<&'a str>, name: &'static str, value: &'a str) -> Result<(), Problem> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(bad_query(format!("`{name}` is given more than once"))),
    }
}

/// The undecoded values of the parameters `names`, each of which may be given once.
fn named<'a, const N: usize>(
    query: Option<&'a str>,
    names: [&'static str; N],
) -> Result<[Option<&'a str>; N], Problem> {
    let mut values = [None; N];
    for (name, value) in parameters(query) {
        if let Some(index) = names.iter().position(|wanted| *wanted == name) {
            set(&mut values[index], names[index], value)?;
        }
    }
    Ok(values)
}

fn key_of(name: &'static str, value: Option<&str>) -> Result<Key, Problem> {
    let value = value.ok_or_else(|| bad_query(format!("`{name}` is missing")))?;
    let key = decode(value).ok_or_else(|| badly_encoded(name))?;
    match key.len() {
        0 => Err(bad_query(format!("`{name}` is empty; keys have at least one byte"))),
        1..=limits::KEY_BYTES_MAX => Ok(key),
        _ => Err(Problem::key_too_long()),
    }
}

fn limit_of(text: &str) -> Result<u64, Problem> {
    match digits(text) {
        Some(limit) if limit >= 1 => Ok(limit),
        _ => Err(bad_parameter("limit", text, "a whole number of at least 1")),
    }
}

fn operation_of(text: &str) -> Result<Operation, Problem> {
    let wanted = decode(text);
    let is = |operation: &Operation| {
        wanted.as_ref().is_some_and(|name| &**name == operation.name().as_bytes())
    };
    Operation::ALL.into_iter().find(is).ok_or_else(|| {
        bad_parameter("operation", text, "one of status, get, put, delete, range, other, refused")
    })
}

fn ttl_ms(text: &str) -> Result<u64, Problem> {
    match digits(text) {
        Some(seconds @ 1..=limits::TTL_SECONDS_MAX) => Ok(seconds * 1000),
        _ => Err(bad_parameter("ttl", text, "a whole number of seconds within 1 and 315360000")),
    }
}

fn is_traced(text: &str) -> Result<bool, Problem> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(bad_parameter("trace", text, "0 or 1")),
    }
}

/// What a request says about replication, which both forms may say, if they agree.
fn replicas_of(
    ack: Option<&str>,
    from: Option<&str>,
    replicas: Option<&str>,
) -> Result<Option<Replicas>, Problem> {
    let pair = match (ack, from) {
        (None, None) => None,
        (Some(ack), Some(from)) => Some(pair_of(ack, from)?),
        _ => return Err(bad_query("`ack` and `from` go together".into())),
    };
    let Some(replicas) = replicas else { return Ok(pair) };
    let decoded = decode(replicas);
    let text = decoded.as_deref().and_then(|text| std::str::from_utf8(text).ok());
    let Some((ack, from)) = text.and_then(|text| text.split_once('/')) else {
        return Err(bad_parameter("replicas", replicas, "two whole numbers such as 2/3"));
    };
    let other = pair_of(ack, from)?;
    if pair.is_some_and(|pair| pair != other) {
        return Err(bad_query("`replicas` and `ack`, `from` differ".into()));
    }
    Ok(Some(other))
}

fn pair_of(ack: &str, from: &str) -> Result<Replicas, Problem> {
    let count = |name, text| match digits(text).map(u32::try_from) {
        Some(Ok(count @ 1..)) => Ok(count),
        _ => Err(bad_parameter(name, text, "a whole number of at least 1")),
    };
    let (ack_count, from_count) = (count("ack", ack)?, count("from", from)?);
    if ack_count > from_count {
        return Err(bad_query(format!("{ack_count} of {from_count} nodes cannot answer")));
    }
    Ok(Replicas { ack_count, from_count })
}

/// A whole number, of digits only.
fn digits(text: &str) -> Option<u64> {
    let decoded = decode(text)?;
    let plain = decoded.iter().all(u8::is_ascii_digit);
    plain.then(|| std::str::from_utf8(&decoded).ok()?.parse().ok()).flatten()
}

/// Decodes percent-encoded text; `None` if two hexadecimal digits are missing after a per cent
/// sign.
fn decode(text: &str) -> Option<Key> {
    let bytes = text.as_bytes();
    let Some(first) = bytes.iter().position(|&byte| byte == b'%') else {
        return Some(Key::from(bytes));
    };
    let mut key = Key::from(&bytes[..first]);
    let mut rest = bytes[first..].iter();
    while let Some(&byte) = rest.next() {
        if byte == b'%' {
            let high = hex(*rest.next()?)?;
            let low = hex(*rest.next()?)?;
            key.push(high << 4 | low);
        } else {
            key.push(byte);
        }
    }
    Some(key)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

pub(crate) fn bad_query(detail: String) -> Problem {
    Problem::bad_request("bad-query", detail)
}

fn badly_encoded(name: &str) -> Problem {
    bad_query(format!(
        "`{name}` is badly encoded: a per cent sign needs two hexadecimal digits after it"
    ))
}

pub(crate) fn bad_parameter(name: &str, text: &str, wanted: &str) -> Problem {
    // A target has up to 64 KiB: only its start is quoted.
    let shown: String = text.chars().take(40).collect();
    bad_query(format!("`{name}` is `{shown}`, not {wanted}"))
}

#[cfg(test)]
mod tests;
