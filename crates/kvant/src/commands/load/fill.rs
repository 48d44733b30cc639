//! `kvant load fill`: stores all keys of a workload.

use super::outputs::print;
use super::run;
use super::settings::{self, Common};
use super::signals::Stop;
use crate::commands::reader::Reader;
use clap::ArgMatches;
use kvant_base::Result;
use kvant_env::Env;
use kvant_load::units::{format_binary, format_metric, format_time_ns};
use kvant_load::workload::{self, FillConfig, FillProgress, FillReport, Kind, Mix, WorkloadConfig};
use kvant_load::{Arrival, LoadConfig, StatusSet};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// A fill ends by itself when a key is refused too often; nobody waits longer than this for one
/// that does not.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What `kvant load fill` was told.
#[derive(Debug)]
pub(super) struct FillSettings {
    common: Common,
    fill: FillConfig,
}

impl FillSettings {
    /// Reads and judges the arguments of `kvant load fill`.
    ///
    /// # Errors
    /// Everything that is wrong with them, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> std::result::Result<FillSettings, Vec<String>> {
        let mut reader = Reader::new(args);
        let common = Common::read(&mut reader, 1, 64);
        let mut workload = WorkloadConfig::new(Mix::only(Kind::Put));
        settings::keys_and_values(&mut reader, &mut workload);
        settings::refuse_paths(&mut reader, "a fill");
        if !reader.has("keys") {
            reader.refuse("keys", "is missing: say how many keys to store, such as 1M");
        }
        let mut fill = FillConfig::new(workload);
        fill.pipeline =
            settings::pipeline(&mut reader, fill.pipeline, workload::fill::PIPELINE_MAX);
        fill.workload.seed = common.seed;
        fill.time_max = TIME_MAX;
        for problem in fill.problems() {
            reader.refuse("keys", problem);
        }
        reader.finish(FillSettings { common, fill })
    }
}

/// Fills; the result is the exit code.
///
/// # Errors
/// What kept it from running.
pub(super) fn fill(settings: &FillSettings, stop: &Stop) -> Result<u8> {
    let common = &settings.common;
    let (targets, ca_pem) = run::reach(common)?;
    let load = LoadConfig {
        targets,
        thread_count: common.thread_count,
        connection_count: common.connection_count,
        timeout: common.timeout,
        arrival: Arrival::Uniform,
        seed: common.seed,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::ZERO,
        ca_pem,
    };
    let key_count = settings.fill.workload.key_count;
    let mut line = Line::new(common.is_quiet);
    let report =
        workload::fill(&settings.fill, &common.headers, load, Env::posix(), &mut |_, progress| {
            line.show(progress, key_count);
            !stop.is_asked()
        });
    line.end();
    let report = report?;
    print(&text(&report))?;
    match report.problem {
        None => Ok(0),
        Some(problem) => {
            crate::complain(&problem);
            Ok(crate::EXIT_FAILED)
        }
    }
}

fn text(report: &FillReport) -> String {
    format!(
        "{} of {} keys stored in {}, {}B of keys and values\n  {} keys/sec, {}B/sec, {} sent again\n",
        report.stored_keys,
        report.key_count,
        format_time_ns(report.elapsed_ns),
        format_binary(report.stored_bytes as f64),
        format_metric(report.rate()),
        format_binary(report.bytes_rate()),
        report.resent,
    )
}

/// Progress on standard error, where that is a terminal.
struct Line {
    is_shown: bool,
}

impl Line {
    fn new(is_quiet: bool) -> Line {
        Line { is_shown: !is_quiet && io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: &FillProgress, key_count: u64) {
        let stored = progress.stored_keys();
        let percent = stored as f64 * 100.0 / key_count.max(1) as f64;
        self.write(&format!(
            "\r  {stored} of {key_count} keys ({percent:.1} %), {} sent again  ",
            progress.resent()
        ));
    }

    fn end(&mut self) {
        self.write("\n");
    }

    /// Progress is a courtesy: where it cannot be written, the fill goes on without.
    fn write(&mut self, text: &str) {
        self.is_shown = self.is_shown && io::stderr().write_all(text.as_bytes()).is_ok();
    }
}
