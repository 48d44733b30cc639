//! The settings of `kvant load`: every bad value and every contradiction is a problem, and all
//! problems are reported together.
//!
//! Nothing here reads files or uses the network.

use super::parse::Body;
use crate::commands::profile::output::Output as ProfileOutput;
use crate::commands::reader::Reader;
use clap::ArgMatches;
use kvant_load::assertion::Assertion;
use kvant_load::workload::{Mix, WorkloadConfig};
use kvant_load::{Arrival, LoadConfig, Rate, Target};
use std::path::PathBuf;
use std::time::Duration;

/// Options that need `--workload`.
const WORKLOAD_ONLY: [&str; 7] =
    ["keys", "key-dist", "key-bytes", "value-bytes", "hit-ratio", "mix", "range-records"];
/// Options that contradict `--wrk2-exact`.
const NOT_WRK2_EXACT: [&str; 7] =
    ["warmup", "arrival", "ramp", "find-max", "spin", "requests", "abort-on-fail"];

/// Settings of both loads and fills.
#[derive(Debug)]
pub(super) struct Common {
    /// Targets are not resolved and certificates not read yet.
    pub(super) config: LoadConfig,
    pub(super) headers: Vec<(String, String)>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) is_quiet: bool,
}

#[derive(Debug)]
pub(super) struct LoadSettings {
    pub(super) common: Common,
    pub(super) plan: LoadPlan,
    pub(super) duration: Duration,
    /// Requests of each rate; `None`: the duration alone limits them.
    pub(super) request_count_max: Option<u64>,
    pub(super) warmup: Duration,
    pub(super) requests: Requests,
    pub(super) prints_response: bool,
    pub(super) prints_service: bool,
    pub(super) results: Results,
}

#[derive(Debug, PartialEq)]
pub(super) enum LoadPlan {
    Steps(Vec<Rate>),
    /// A search for the highest rate that meets these objectives.
    FindMax(Vec<Assertion>),
}

#[derive(Debug)]
pub(super) enum Requests {
    /// One request, of the URL's path.
    Fixed {
        method: String,
        body: Option<Body>,
        pipeline: usize,
    },
    Script {
        file: PathBuf,
        args: Vec<String>,
    },
    Workload(WorkloadConfig),
}

/// Assertions, and where results go beside standard output.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) asserts: Vec<Assertion>,
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
    /// The settings that the arguments give, or all their problems, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> Result<LoadSettings, Vec<String>> {
        let mut reader = Reader::new(args);
        let request_count_max = reader.get("requests");
        let mut common = Common::read(&mut reader);
        let plan = plan(&mut reader);
        let duration = reader.value("duration");
        let warmup = reader.value("warmup");
        let config = &mut common.config;
        config.arrival = reader.value("arrival");
        config.wrk2_exact = reader.flag("wrk2-exact");
        config.batch_latency = reader.flag("batch_latency");
        config.spin = reader.value("spin");
        config.ok_statuses = reader.get("ok").unwrap_or_default();
        let requests = requests(&mut reader, config);
        let settings = LoadSettings {
            plan,
            duration,
            request_count_max,
            warmup,
            requests,
            prints_response: reader.flag("latency") || reader.flag("u_latency"),
            prints_service: reader.flag("u_latency"),
            results: results(&mut reader),
            common,
        };
        if !matches!(&settings.plan, LoadPlan::Steps(rates) if rates.len() == 1) {
            reader.refuse_given(&["hgrm"], "holds one distribution: give one rate, or take --json");
            reader.refuse_given(&["profile"], "holds one measured time: give one rate");
        }
        if settings.common.config.arrival == Arrival::Wrk2 {
            reader.refuse_given(&["ramp"], "--arrival wrk2 holds one rate: leave one of them out");
        }
        if settings.common.config.wrk2_exact {
            reader.refuse_given(
                &NOT_WRK2_EXACT,
                "wrk2 has nothing like it: leave it or --wrk2-exact out",
            );
            if settings.plan == LoadPlan::Steps(vec![Rate::Closed]) {
                reader.refuse("rate", "wrk2 has no closed loop: leave --wrk2-exact out");
            }
        }
        reader.finish(settings)
    }
}

impl Common {
    /// Reads the options that loads and fills have in common.
    pub(super) fn read(reader: &mut Reader<'_>) -> Common {
        let targets = targets(reader);
        let headers = reader.list("header");
        let config = LoadConfig {
            targets,
            thread_count: reader.value("threads"),
            connection_count: reader.value("connections"),
            timeout: reader.value("timeout"),
            seed: reader.value("seed"),
            ..LoadConfig::default()
        };
        if config.thread_count > config.connection_count {
            // The first words are wrk's: people search for them.
            let sentence = format!(
                "number of connections must be >= threads: there are {} connections and {} threads",
                config.connection_count, config.thread_count
            );
            reader.refuse("connections", sentence);
        }
        Common { config, headers, ca_file: reader.path("cacert"), is_quiet: reader.flag("quiet") }
    }
}

/// Refuses URLs with a path: `what` has paths of its own.
pub(super) fn refuse_paths(reader: &mut Reader<'_>, targets: &[Target], what: &str) {
    for Target { path, url, .. } in targets.iter().filter(|target| target.path != "/") {
        let sentence = format!("{what} has paths of its own: leave `{path}` out of `{url}`");
        reader.refuse("url", sentence);
    }
}

fn targets(reader: &mut Reader<'_>) -> Vec<Target> {
    let targets = reader.list("url");
    if !reader.has("url") {
        reader.refuse(
            "url",
            "is missing: say who is to be loaded, such as http://127.0.0.1:8080/v0/status",
        );
    }
    targets
}

fn plan(reader: &mut Reader<'_>) -> LoadPlan {
    let rates: Option<Vec<Rate>> = reader.get("rate");
    let ramp: Option<Rate> = reader.get("ramp");
    let slos: Vec<Assertion> = reader.list("slo");
    if slos.iter().any(Assertion::needs_baseline) {
        reader.refuse("slo", "cannot compare with a baseline");
    }
    match (reader.flag("find-max"), reader.has("ramp"), reader.has("rate")) {
        (true, ..) => {
            reader.refuse_given(&["rate", "ramp"], "--find-max looks for the rate: leave one of them out");
            reader.refuse_given(
                &["requests", "abort-on-fail"],
                "--find-max says itself how long it loads: leave one of them out",
            );
            return LoadPlan::FindMax(slos);
        }
        (false, true, true) => reader.refuse("ramp", "takes the place of --rate: leave one of them out"),
        (false, false, false) => reader.refuse(
            "rate",
            "is missing: say how many requests a second to send, such as -R 10k; -R 0 sends as soon as an answer is there",
        ),
        (false, ..) => {}
    }
    reader.refuse_given(&["slo"], "is what --find-max has to hold: --find-max is missing");
    LoadPlan::Steps(match ramp {
        Some(ramp) => vec![ramp],
        None => rates.unwrap_or_default(),
    })
}

fn requests(reader: &mut Reader<'_>, config: &mut LoadConfig) -> Requests {
    let args = reader.list("args");
    let pipeline = reader.value("pipeline");
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
    if let Some(workload) = workload(reader, config) {
        config.ok_statuses = config.ok_statuses.union(&workload.expected_statuses());
        reader
            .refuse_given(&["pipeline"], "a workload has one request in flight on each connection");
        reader.refuse_given(
            &["method", "body"],
            "the workload makes the requests: leave one of them out",
        );
        return Requests::Workload(workload);
    }
    let body = reader.get("body");
    Requests::Fixed { method: reader.value("method"), body, pipeline }
}

fn workload(reader: &mut Reader<'_>, load: &LoadConfig) -> Option<WorkloadConfig> {
    let mix = reader.get("mix");
    let workload: String = reader.get("workload")?;
    let mix = match Mix::of_workload(&workload, mix) {
        Ok(mix) => mix,
        Err(problem) => {
            reader.refuse("workload", problem);
            return None;
        }
    };
    refuse_paths(reader, &load.targets, "a workload");
    let mut config = WorkloadConfig {
        key_dist: reader.value("key-dist"),
        hit_ratio: reader.value("hit-ratio"),
        range_records: reader.value("range-records"),
        seed: load.seed,
        ..WorkloadConfig::new(mix)
    };
    keys_and_values(reader, &mut config);
    for problem in config.problems() {
        reader.refuse("workload", problem);
    }
    Some(config)
}

/// Reads the options of keys and values, which workloads and fills have in common.
pub(super) fn keys_and_values(reader: &mut Reader<'_>, config: &mut WorkloadConfig) {
    config.key_count = reader.get("keys").unwrap_or(config.key_count);
    config.key_bytes = reader.value("key-bytes");
    config.value_bytes = reader.value("value-bytes");
}

fn results(reader: &mut Reader<'_>) -> Results {
    let results = Results {
        asserts: reader.list("assert"),
        aborts_on_fail: reader.flag("abort-on-fail"),
        baseline: reader.path("baseline"),
        json: reader.path("json"),
        hlog: reader.path("hlog"),
        hgrm: reader.path("hgrm"),
        profile: reader.get("profile"),
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

#[cfg(test)]
mod tests;
