//! The data of a subject: stores them, deletes a part of them, and identifies them.

use super::context::{Context, Problem};
use super::http::Server;
use super::progress::Progress;
use super::subject::Running;
use crate::plan::{Data, Subject};
use kvant_base::{Error, ErrorKind, Result, duration};
use kvant_load::request::{self, HeaderBlock};
use kvant_load::workload::key::{DIGITS, KeyBytes, Keys};
use kvant_load::workload::{self, FillConfig, Kind, ValueBytes, WorkloadConfig};
use kvant_load::{
    Batch, Expected, Load, LoadConfig, OpNames, Phase, Rate, RequestSource, StatusSet,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest time of a fill.
const FILL_MAX: Duration = Duration::from_secs(4 * 3_600);
/// Deadline of a request of the fill: there is no hurry.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// A fill ends when less of the disk is free.
const FREE_BYTES_MIN: u64 = 1 << 20;
/// Ranges that are read back for the fingerprint, and records of each.
const SAMPLE_RANGES: u64 = 16;
const SAMPLE_RECORDS: u64 = 8;

/// What a fill stored.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) fingerprint: String,
    /// When storing began: no record is older.
    pub(super) start: Instant,
    pub(super) time: Duration,
}

/// Fingerprints of Kvants, by data and subject: equal data have equal ones.
#[derive(Debug, Default)]
pub(super) struct Fingerprints(BTreeMap<String, BTreeMap<String, String>>);

impl Fingerprints {
    /// Adds what `subject` stores as `data`. Returns the first other subject with another
    /// fingerprint, in words.
    pub(super) fn add(&mut self, data: &str, subject: &str, fingerprint: &str) -> Option<String> {
        let of_data = self.0.entry(data.to_owned()).or_default();
        of_data.insert(subject.to_owned(), fingerprint.to_owned());
        let (other, theirs) = of_data.iter().find(|(_, theirs)| *theirs != fingerprint)?;
        Some(format!("{subject} has the fingerprint {fingerprint}, {other} has {theirs}"))
    }
}

/// Stores `data` in `subject`.
///
/// # Errors
/// [`Problem::Subject`] if it does not take all of them.
pub(super) fn fill(
    context: &Context<'_>,
    subject: &Subject,
    running: &Running,
    data: &Data,
    progress: &mut Progress,
) -> std::result::Result<Filled, Problem> {
    let start = Instant::now();
    if subject.fill_command.is_empty() {
        store(context, subject, running, data, progress)?;
        if data.deleted_part > 0.0 {
            delete(context, running, data)?;
        }
    } else {
        let places = [
            ("{port}", running.port().to_string()),
            ("{keys}", data.workload.key_count.to_string()),
        ];
        let command = context.command(&subject.fill_command, &places);
        context.run_to_end(command, &subject.fill_command.join(" "), FILL_MAX)?;
    }
    let time = start.elapsed();
    Ok(Filled { fingerprint: fingerprint(running.server.as_ref(), data), start, time })
}

fn store(
    context: &Context<'_>,
    subject: &Subject,
    running: &Running,
    data: &Data,
    progress: &mut Progress,
) -> std::result::Result<(), Problem> {
    let workload = WorkloadConfig { ttl_s: data.ttl_s, ..data.workload.clone() };
    let config = FillConfig { time_max: FILL_MAX, ..FillConfig::new(workload) };
    let key_count = data.workload.key_count;
    let mut is_disk_full = false;
    let report = workload::fill(
        &config,
        &[],
        load_config(running, data),
        context.env.clone(),
        &mut |_, so_far| {
            let percent = so_far.stored_keys() as f64 * 100.0 / key_count.max(1) as f64;
            progress.now(&format!("{}: stores the data, {percent:.0} %", subject.name));
            // The server would be asked again and again.
            is_disk_full = context.free_bytes().is_some_and(|free| free < FREE_BYTES_MIN);
            !context.stop.is_requested() && running.end().is_none() && !is_disk_full
        },
    )?;
    if is_disk_full && report.problem.is_some() {
        let problem = Error::new(ErrorKind::NoSpace, "no space is left for the stores");
        return Err(problem.with_file(context.scratch).into());
    }
    if context.stop.is_requested() {
        return Err(Problem::Stopped);
    }
    match report.problem {
        None => Ok(()),
        Some(problem) => {
            let end = running.end().map(|end| format!("it {end}: ")).unwrap_or_default();
            Err(Problem::Subject(format!("the fill failed: {end}{problem}")))
        }
    }
}

fn load_config(running: &Running, data: &Data) -> LoadConfig {
    LoadConfig {
        targets: vec![running.target.clone()],
        connection_count: data.connection_count.max(1),
        timeout: REQUEST_MAX,
        ok_statuses: StatusSet::new([404]),
        ..LoadConfig::default()
    }
}

/// Deletes a part of the keys, spread evenly.
fn delete(
    context: &Context<'_>,
    running: &Running,
    data: &Data,
) -> std::result::Result<(), Problem> {
    let ops = OpNames::default();
    let source = DeleteSource {
        keys: Keys::new(data.workload.key_bytes),
        headers: HeaderBlock::new(&running.target, &[])?,
        base: running.target.path.trim_end_matches('/').to_owned(),
        next: 0,
        key_count: data.workload.key_count,
        part: data.deleted_part.clamp(0.0, 1.0),
        bytes: Vec::new(),
        expected: [Expected { op: ops.intern(Kind::Delete.name()), is_head: false }],
    };
    let count = source.rank(data.workload.key_count);
    let phase = Phase {
        rate: Rate::Closed,
        warmup: Duration::ZERO,
        duration: FILL_MAX,
        request_count_max: Some(count),
    };
    let config = load_config(running, data);
    let mut load = Load::start(config, vec![Box::new(source)], ops, context.env.clone())?;
    let outcome = {
        let _attached = context.stop.attach(load.stopper());
        load.run(&phase, &mut |_| running.end().is_none())?
    };
    load.stop();
    if context.stop.is_requested() {
        return Err(Problem::Stopped);
    }
    let failed = outcome.total.errors.total() + count.saturating_sub(outcome.total.completed);
    match failed {
        0 => Ok(()),
        failed => Err(Problem::Subject(format!("{failed} of {count} deletes of the fill failed"))),
    }
}

/// Deletes of every n-th key.
struct DeleteSource {
    keys: Keys,
    headers: HeaderBlock,
    base: String,
    next: u64,
    key_count: u64,
    part: f64,
    bytes: Vec<u8>,
    expected: [Expected; 1],
}

impl DeleteSource {
    /// Keys below number `index` that are deleted.
    fn rank(&self, index: u64) -> u64 {
        (index as f64 * self.part).floor() as u64
    }
}

impl RequestSource for DeleteSource {
    fn next(&mut self, _: usize) -> Result<Batch<'_>> {
        while self.next + 1 < self.key_count && self.rank(self.next + 1) == self.rank(self.next) {
            self.next += 1;
        }
        let mut path = format!("{}/v0/entity?id=", self.base).into_bytes();
        self.keys.append(self.next, &mut path);
        self.next += 1;
        let path = String::from_utf8(path).expect("keys are letters and digits");
        self.bytes.clear();
        request::append_request(&mut self.bytes, "DELETE", &path, &self.headers, None);
        Ok(Batch { bytes: &self.bytes, requests: &self.expected })
    }
}

/// The settings in words.
pub(super) fn text(data: &Data) -> String {
    let workload = &data.workload;
    let KeyBytes { min, max } = workload.key_bytes;
    let mut text = format!(
        "{} keys of {} bytes, values of {} bytes",
        grouped(workload.key_count),
        if min == max { min.to_string() } else { format!("{min} to {max}") },
        match workload.value_bytes {
            ValueBytes::Fixed(bytes) => bytes.to_string(),
            ValueBytes::Random { min, max } => format!("{min} to {max}"),
            ValueBytes::Growing { min, max } => format!("{min} to {max}, growing,"),
        }
    );
    if data.deleted_part > 0.0 {
        text += &format!(", {} % deleted", data.deleted_part * 100.0);
    }
    if let Some(ttl_s) = data.ttl_s {
        text += &format!(", expire after {}", duration::format(Duration::from_secs(ttl_s)));
    }
    text
}

/// `1,000,000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A checksum over the settings and, of a server with Kvant's ranges, a sample of the records.
fn fingerprint(server: Option<&Server>, data: &Data) -> String {
    let settings = format!("{:?} {} {:?}", data.workload, data.deleted_part, data.ttl_s);
    let mut parts = vec![settings.into_bytes()];
    for range in 0..SAMPLE_RANGES {
        let index = data.workload.key_count / SAMPLE_RANGES * range;
        let path = format!("/v0/entities?start={index:0DIGITS$}&limit={SAMPLE_RECORDS}");
        let response = server.and_then(|server| server.request("GET", &path, REQUEST_MAX).ok());
        parts.extend(response.filter(|response| response.status == 200).map(|read| read.body));
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    format!("{:08x}", kvant_base::checksum::crc32c_masked(&parts))
}

#[cfg(test)]
mod tests;
