//! Parsers of option values. Errors are sentences that the option's name precedes.

use crate::commands::profile::output::Output as ProfileOutput;
use kvant_load::assertion::Assertion;
use kvant_load::config::SPIN_ALWAYS;
use kvant_load::workload::fill::PIPELINE_MAX;
use kvant_load::{Arrival, Rate, StatusSet, Target, request, units};
use std::path::PathBuf;
use std::time::Duration;

/// The body of all requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Text(String),
    File(PathBuf),
}

pub(super) fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

pub(super) fn url(text: &str) -> Result<Target, String> {
    Target::parse(text).map_err(|error| error.to_string())
}

pub(super) fn rates(text: &str) -> Result<Vec<Rate>, String> {
    let as_rate = |per_second: f64| {
        if per_second == 0.0 { Rate::Closed } else { Rate::Constant(per_second) }
    };
    Ok(units::parse_rates(text)?.into_iter().map(as_rate).collect())
}

pub(super) fn ramp(text: &str) -> Result<Rate, String> {
    units::parse_ramp(text).map(|(from, to)| Rate::Ramp { from, to })
}

pub(super) fn arrival(text: &str) -> Result<Arrival, String> {
    Arrival::from_name(text).ok_or_else(|| format!("`{text}` is none of uniform, poisson and wrk2"))
}

pub(super) fn assertion(text: &str) -> Result<Assertion, String> {
    Assertion::parse(text).map_err(|error| error.to_string())
}

pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let form = || {
        format!(
            "`{text}` is not a header: write a name, a colon and a value, such as 'Accept: text/plain'"
        )
    };
    let (name, value) = text.split_once(':').ok_or_else(form)?;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n', '\0']) {
        return Err(form());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

pub(super) fn method(text: &str) -> Result<String, String> {
    let checked = request::check_method(text).map(|()| text.to_owned());
    checked.map_err(|error| format!("{}, such as PUT", error.message()))
}

/// `@FILE` is the content of a file, as in curl.
pub(super) fn body(text: &str) -> Result<Body, String> {
    Ok(match text.strip_prefix('@') {
        Some("") => return Err("has no name of a file behind `@`".to_owned()),
        Some(file) => Body::File(PathBuf::from(file)),
        None => Body::Text(text.to_owned()),
    })
}

pub(super) fn statuses(text: &str) -> Result<StatusSet, String> {
    let status = |text: &str| match text.trim().parse() {
        Ok(status @ 100..=999) => Ok(status),
        _ => Err(format!("`{text}` is not an HTTP status, such as 404")),
    };
    text.split(',').map(status).collect::<Result<Vec<u16>, String>>().map(StatusSet::new)
}

pub(super) fn positive_number(text: &str) -> Result<u64, String> {
    match units::parse_count(text)? {
        0 => Err("must be at least 1".to_owned()),
        count => Ok(count),
    }
}

pub(super) fn positive_count(text: &str) -> Result<usize, String> {
    let count = positive_number(text)?;
    usize::try_from(count).map_err(|_| format!("{count} is too many"))
}

pub(super) fn pipeline(text: &str) -> Result<usize, String> {
    match positive_count(text)? {
        count if count <= PIPELINE_MAX => Ok(count),
        count => Err(format!("{count} is not between 1 and {PIPELINE_MAX}")),
    }
}

pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    let time = units::parse_time(text)?;
    if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) }
}

pub(super) fn spin(text: &str) -> Result<Duration, String> {
    match text {
        "always" => Ok(SPIN_ALWAYS),
        _ => units::parse_time(text),
    }
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number up to {}", u64::MAX))
}

pub(super) fn ratio(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number from 0 to 1, such as 0.5"))
}

pub(super) fn profile(file: &str) -> Result<ProfileOutput, String> {
    if !cfg!(feature = "profiler") {
        return Err("this Kvant was built without its profiler".to_owned());
    }
    let output = ProfileOutput::of_name(PathBuf::from(file));
    output.ok_or_else(|| format!("`{file}` does not end with .html, .kprof, .pb.gz or .collapsed"))
}
