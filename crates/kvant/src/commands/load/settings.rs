//! What `kvant load` was told, judged: every bad value and every contradiction is a problem, and
//! all are reported at once.
//!
//! Nothing here touches files or the network.

use crate::commands::profile::output::Output as ProfileOutput;
use crate::commands::reader::Reader;
use clap::ArgMatches;
use kvant_load::assertion::Assertion;
use kvant_load::config::SPIN_ALWAYS;
use kvant_load::workload::{KeyBytes, KeyDist, Mix, ValueBytes, WorkloadConfig};
use kvant_load::{Arrival, Rate, StatusSet, Target, request, units};
use std::path::PathBuf;
use std::time::Duration;

/// About what waking up takes, so that a request is not late by it.
const SPIN: Duration = Duration::from_micros(20);
/// Options that only a workload understands.
const WORKLOAD_ONLY: [&str; 7] =
    ["keys", "key-dist", "key-bytes", "value-bytes", "hit-ratio", "mix", "range-records"];
/// Options that belong to a plan of ours and contradict wrk2's.
const NOT_WRK2_EXACT: [&str; 7] =
    ["warmup", "arrival", "ramp", "find-max", "spin", "requests", "abort-on-fail"];
/// What `--find-max` has to hold unless told.
const SLO: &str = "p99<5ms";
/// wrk's, as all defaults that have a short option.
const DURATION: Duration = Duration::from_secs(10);
/// How long a number of requests may take by default: as long as histograms reach.
const DURATION_OF_REQUESTS: Duration = Duration::from_secs(24 * 3_600);
const TIMEOUT: Duration = Duration::from_secs(2);
/// Runs repeat unless told otherwise.
const SEED: u64 = 1;
/// Most requests in one write.
const PIPELINE_MAX: usize = 1_024;

/// What loads and fills are both told.
#[derive(Debug)]
pub(super) struct Common {
    /// Not resolved yet.
    pub(super) targets: Vec<Target>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) thread_count: usize,
    pub(super) connection_count: usize,
    pub(super) timeout: Duration,
    pub(super) seed: u64,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) is_quiet: bool,
}

/// A run.
#[derive(Debug)]
pub(super) struct LoadSettings {
    pub(super) common: Common,
    pub(super) plan: Plan,
    pub(super) duration: Duration,
    /// Requests of each rate; `None`: as many as the duration has.
    pub(super) request_count_max: Option<u64>,
    /// `None`: what the plan needs.
    pub(super) warmup: Option<Duration>,
    pub(super) arrival: Arrival,
    pub(super) wrk2_exact: bool,
    pub(super) batch_latency: bool,
    pub(super) spin: Duration,
    pub(super) ok_statuses: StatusSet,
    pub(super) requests: Requests,
    pub(super) prints_response: bool,
    pub(super) prints_service: bool,
    pub(super) results: Results,
}

/// Which rates are held.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// One phase each.
    Steps(Vec<Rate>),
    /// Whatever it takes to find the highest that holds this.
    FindMax(Vec<Assertion>),
}

/// What is sent.
#[derive(Debug)]
pub(super) enum Requests {
    /// The URL's path.
    Fixed { method: String, body: Option<Body>, pipeline: usize },
    /// What a script says.
    Script { file: PathBuf, args: Vec<String> },
    /// What the interface of Kvant knows.
    Workload(WorkloadConfig),
}

/// The body of all requests.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    Text(String),
    File(PathBuf),
}

/// Where results go, beside standard output.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) asserts: Vec<Assertion>,
    /// The load ends when one of them is broken.
    pub(super) aborts_on_fail: bool,
    pub(super) baseline: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) hlog: Option<PathBuf>,
    pub(super) hgrm: Option<PathBuf>,
    #[cfg_attr(
        not(feature = "profiler"),
        expect(dead_code, reason = "a build without the profiler says that it has none")
    )]
    pub(super) profile: Option<ProfileOutput>,
}

impl LoadSettings {
    /// Reads and judges the arguments of `kvant load`.
    ///
    /// # Errors
    /// Everything that is wrong with them, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> Result<LoadSettings, Vec<String>> {
        let mut reader = Reader::new(args);
        // wrk2's waits are in milliseconds: there is nothing to meet precisely.
        let default_spin = if reader.flag("wrk2-exact") { Duration::ZERO } else { SPIN };
        let request_count_max = reader.optional("requests", positive_number);
        let default_duration = match request_count_max {
            Some(_) if !reader.has("ramp") => DURATION_OF_REQUESTS,
            _ => DURATION,
        };
        let settings = LoadSettings {
            common: Common::read(&mut reader, 2, 10),
            plan: plan(&mut reader),
            duration: reader.value("duration", default_duration, positive_time),
            request_count_max,
            warmup: reader.optional("warmup", units::parse_time),
            arrival: reader.value("arrival", Arrival::Uniform, arrival),
            wrk2_exact: reader.flag("wrk2-exact"),
            batch_latency: reader.flag("batch_latency"),
            spin: reader.value("spin", default_spin, spin),
            ok_statuses: reader.value("ok", StatusSet::default(), statuses),
            requests: requests(&mut reader),
            prints_response: reader.flag("latency") || reader.flag("u_latency"),
            prints_service: reader.flag("u_latency"),
            results: results(&mut reader),
        };
        if settings.plan.phase_count() != Some(1) {
            reader.refuse_given(&["hgrm"], "holds one distribution: give one rate, or take --json");
            reader.refuse_given(&["profile"], "holds one measured time: give one rate");
        }
        if settings.wrk2_exact {
            reader.refuse_given(
                &NOT_WRK2_EXACT,
                "wrk2 has nothing like it: leave it or --wrk2-exact out",
            );
            if settings.plan == Plan::Steps(vec![Rate::Closed]) {
                reader.refuse("rate", "wrk2 has no closed loop: leave --wrk2-exact out");
            }
        }
        reader.finish(settings)
    }
}

impl Plan {
    /// How many phases there are; `None`: that depends on what they come to.
    pub(super) fn phase_count(&self) -> Option<usize> {
        match self {
            Plan::Steps(rates) => Some(rates.len()),
            Plan::FindMax(_) => None,
        }
    }
}

impl Common {
    /// Reads what loads and fills are both told.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        thread_count: usize,
        connection_count: usize,
    ) -> Common {
        let common = Common {
            targets: targets(reader),
            headers: reader.all("header", header),
            thread_count: reader.value("threads", thread_count, positive_count),
            connection_count: reader.value("connections", connection_count, positive_count),
            timeout: reader.value("timeout", TIMEOUT, positive_time),
            seed: reader.value("seed", SEED, seed),
            ca_file: reader.path("cacert"),
            is_quiet: reader.flag("quiet"),
        };
        if common.thread_count > common.connection_count {
            // wrk's words, which people search for.
            let sentence = format!(
                "number of connections must be >= threads: there are {} connections and {} threads",
                common.connection_count, common.thread_count
            );
            reader.refuse("connections", sentence);
        }
        common
    }
}

fn targets(reader: &mut Reader<'_>) -> Vec<Target> {
    let targets = reader.all("url", |url| Target::parse(url).map_err(|error| error.to_string()));
    if !reader.has("url") {
        reader.refuse(
            "url",
            "is missing: say who is to be loaded, such as http://127.0.0.1:8080/v0/status",
        );
    }
    targets
}

fn plan(reader: &mut Reader<'_>) -> Plan {
    let rates = reader.optional("rate", units::parse_rates);
    let ramp = reader.optional("ramp", units::parse_ramp);
    let mut slos = reader.all("slo", assertion);
    match (reader.flag("find-max"), reader.has("ramp"), reader.has("rate")) {
        (true, ..) => {
            reader.refuse_given(&["rate", "ramp"], "--find-max looks for the rate: leave one of them out");
            reader.refuse_given(
                &["requests", "abort-on-fail"],
                "--find-max says itself how long it loads: leave one of them out",
            );
            if slos.is_empty() {
                slos.extend(assertion(SLO));
            }
            return Plan::FindMax(slos);
        }
        (false, true, true) => reader.refuse("ramp", "takes the place of --rate: leave one of them out"),
        (false, false, false) => reader.refuse(
            "rate",
            "is missing: say how many requests a second to send, such as -R 10k; -R 0 sends as soon as an answer is there",
        ),
        (false, ..) => {}
    }
    if slos.iter().any(Assertion::needs_baseline) {
        reader.refuse("slo", "cannot compare with a baseline");
    }
    reader.refuse_given(&["slo"], "is what --find-max has to hold: --find-max is missing");
    if let Some((from, to)) = ramp {
        return Plan::Steps(vec![Rate::Ramp { from, to }]);
    }
    let as_rate = |per_second: f64| {
        if per_second == 0.0 { Rate::Closed } else { Rate::Constant(per_second) }
    };
    Plan::Steps(rates.into_iter().flatten().map(as_rate).collect())
}

fn requests(reader: &mut Reader<'_>) -> Requests {
    let args = reader.all("args", |text| Ok(text.to_owned()));
    let pipeline = pipeline(reader, 1, PIPELINE_MAX);
    if !reader.has("workload") {
        reader.refuse_given(&WORKLOAD_ONLY, "is for --workload, which is missing");
    }
    if let Some(file) = reader.path("script") {
        reader.refuse_given(
            &["workload", "pipeline", "method", "body"],
            "the script makes the requests: leave one of them out",
        );
        return Requests::Script { file, args };
    }
    reader.refuse_given(&["args"], "are for a script, which is missing");
    if let Some(workload) = workload(reader) {
        reader
            .refuse_given(&["pipeline"], "a workload has one request in flight on each connection");
        reader.refuse_given(
            &["method", "body"],
            "the workload makes the requests: leave one of them out",
        );
        return Requests::Workload(workload);
    }
    let body = reader.optional("body", body);
    let default_method = if body.is_some() { "POST" } else { "GET" };
    Requests::Fixed {
        method: reader.value("method", default_method.to_owned(), method),
        body,
        pipeline,
    }
}

/// Requests in one write.
pub(super) fn pipeline(reader: &mut Reader<'_>, default: usize, max: usize) -> usize {
    reader.value("pipeline", default, |text| match positive_count(text)? {
        count if count <= max => Ok(count),
        count => Err(format!("{count} is not between 1 and {max}")),
    })
}

/// Refuses URLs with a path: `what` has paths of its own.
pub(super) fn refuse_paths(reader: &mut Reader<'_>, what: &str) {
    for url in reader.all("url", |url| Ok(Target::parse(url).ok())).into_iter().flatten() {
        if url.path != "/" {
            reader.refuse(
                "url",
                format!("{what} has paths of its own: leave `{}` out of `{}`", url.path, url.url),
            );
        }
    }
}

fn workload(reader: &mut Reader<'_>) -> Option<WorkloadConfig> {
    let mix = reader.optional("mix", |text| Mix::parse(text).map(|_| text.to_owned()));
    let mix = reader.optional("workload", |text| Mix::from_flags(text, mix.as_deref()))?;
    refuse_paths(reader, "a workload");
    let mut config = WorkloadConfig::new(mix);
    config.key_dist = reader.value("key-dist", config.key_dist, KeyDist::parse);
    config.hit_ratio = reader.value("hit-ratio", config.hit_ratio, ratio);
    config.range_records = reader.value("range-records", config.range_records, units::parse_count);
    keys_and_values(reader, &mut config);
    for problem in config.problems() {
        reader.refuse("workload", problem);
    }
    Some(config)
}

/// What fills and workloads have in common.
pub(super) fn keys_and_values(reader: &mut Reader<'_>, config: &mut WorkloadConfig) {
    config.key_count = reader.value("keys", config.key_count, units::parse_count);
    config.key_bytes = reader.value("key-bytes", config.key_bytes, KeyBytes::parse);
    config.value_bytes = reader.value("value-bytes", config.value_bytes, ValueBytes::parse);
}

fn results(reader: &mut Reader<'_>) -> Results {
    let results = Results {
        asserts: reader.all("assert", assertion),
        aborts_on_fail: reader.flag("abort-on-fail"),
        baseline: reader.path("baseline"),
        json: reader.path("json"),
        hlog: reader.path("hlog"),
        hgrm: reader.path("hgrm"),
        profile: reader.optional("profile", profile),
    };
    if results.aborts_on_fail && !reader.has("assert") {
        reader.refuse("abort-on-fail", "ends the load at a broken assertion: --assert is missing");
    }
    let needs_baseline = results.asserts.iter().any(Assertion::needs_baseline);
    match &results.baseline {
        Some(_) if !needs_baseline => {
            reader.refuse("baseline", "no --assert compares with it, such as 'p99<=base*1.1'");
        }
        None if needs_baseline => {
            reader.refuse("assert", "compares with a baseline: --baseline is missing")
        }
        _ => {}
    }
    results
}

fn profile(file: &str) -> Result<ProfileOutput, String> {
    if !cfg!(feature = "profiler") {
        return Err("this Kvant was built without its profiler".to_owned());
    }
    let output = ProfileOutput::of_name(PathBuf::from(file));
    output.ok_or_else(|| format!("`{file}` does not end with .html, .kprof, .pb.gz or .collapsed"))
}

fn assertion(text: &str) -> Result<Assertion, String> {
    Assertion::parse(text).map_err(|error| error.to_string())
}

fn header(text: &str) -> Result<(String, String), String> {
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

fn method(text: &str) -> Result<String, String> {
    let checked = request::check_method(text).map(|()| text.to_owned());
    checked.map_err(|error| format!("{}, such as PUT", error.message()))
}

/// `@FILE` is the content of a file, as in curl.
fn body(text: &str) -> Result<Body, String> {
    Ok(match text.strip_prefix('@') {
        Some("") => return Err("has no name of a file behind `@`".to_owned()),
        Some(file) => Body::File(PathBuf::from(file)),
        None => Body::Text(text.to_owned()),
    })
}

fn positive_number(text: &str) -> Result<u64, String> {
    match units::parse_count(text)? {
        0 => Err("must be at least 1".to_owned()),
        count => Ok(count),
    }
}

fn positive_count(text: &str) -> Result<usize, String> {
    let count = positive_number(text)?;
    usize::try_from(count).map_err(|_| format!("{count} is too many"))
}

fn spin(text: &str) -> Result<Duration, String> {
    match text {
        "always" => Ok(SPIN_ALWAYS),
        _ => units::parse_time(text),
    }
}

fn positive_time(text: &str) -> Result<Duration, String> {
    let time = units::parse_time(text)?;
    if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) }
}

fn ratio(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number from 0 to 1, such as 0.5"))
}

fn arrival(text: &str) -> Result<Arrival, String> {
    match text {
        "uniform" => Ok(Arrival::Uniform),
        "poisson" => Ok(Arrival::Poisson),
        "wrk2" => Ok(Arrival::Wrk2),
        _ => Err(format!("`{text}` is none of uniform, poisson and wrk2")),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number up to {}", u64::MAX))
}

fn statuses(text: &str) -> Result<StatusSet, String> {
    let status = |text: &str| match text.trim().parse() {
        Ok(status @ 100..=999) => Ok(status),
        _ => Err(format!("`{text}` is not an HTTP status, such as 404")),
    };
    text.split(',').map(status).collect::<Result<Vec<u16>, String>>().map(StatusSet::new)
}

#[cfg(test)]
mod tests;
