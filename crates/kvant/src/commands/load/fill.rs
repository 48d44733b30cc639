//! `kvant load fill`: stores all keys of a workload.

use super::settings::{Common, keys_and_values, refuse_paths};
use super::targets;
use crate::commands::reader::Reader;
use crate::commands::signals::Stop;
use crate::exit::print;
use clap::ArgMatches;
use kvant_base::Result;
use kvant_env::Env;
use kvant_load::units::{format_binary, format_metric, format_time_ns};
use kvant_load::workload::{self, FillConfig, FillProgress, FillReport, Mix, WorkloadConfig};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Upper bound of a fill that makes progress; after too many refusals of a key it fails earlier.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

#[derive(Debug)]
pub(super) struct FillSettings {
    common: Common,
    fill: FillConfig,
}

impl FillSettings {
    /// The settings that the arguments give, or all their problems, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> std::result::Result<FillSettings, Vec<String>> {
        let mut reader = Reader::new(args);
        let common = Common::read(&mut reader);
        let mut workload = WorkloadConfig {
            seed: common.config.seed,
            ..WorkloadConfig::new(Mix::only(workload::Kind::Put))
        };
        keys_and_values(&mut reader, &mut workload);
        refuse_paths(&mut reader, &common.config.targets, "a fill");
        if !reader.has("keys") {
            reader.refuse("keys", "is missing: say how many keys to store, such as 1M");
        }
        let pipeline = reader.value("pipeline");
        let fill = FillConfig { pipeline, time_max: TIME_MAX, ..FillConfig::new(workload) };
        for problem in fill.problems() {
            reader.refuse("keys", problem);
        }
        reader.finish(FillSettings { common, fill })
    }
}

/// Fills; returns the exit code.
pub(super) fn fill(settings: &FillSettings, stop: &Stop) -> Result<u8> {
    let common = &settings.common;
    let load = targets::connect(common)?;
    let key_count = settings.fill.workload.key_count;
    let mut line = ProgressLine { is_shown: !common.is_quiet && io::stderr().is_terminal() };
    let report =
        workload::fill(&settings.fill, &common.headers, load, Env::posix(), &mut |_, progress| {
            line.show(progress, key_count);
            !stop.is_requested()
        });
    line.write("\n");
    let report = report?;
    print(text(&report))?;
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

/// Progress on standard error, if that is a terminal.
struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    fn show(&mut self, progress: &FillProgress, key_count: u64) {
        let stored = progress.stored_keys();
        let percent = stored as f64 * 100.0 / key_count.max(1) as f64;
        self.write(&format!(
            "\r  {stored} of {key_count} keys ({percent:.1} %), {} sent again  ",
            progress.resent()
        ));
    }

    /// If standard error cannot be written, the fill continues without progress.
    fn write(&mut self, text: &str) {
        self.is_shown = self.is_shown && io::stderr().write_all(text.as_bytes()).is_ok();
    }
}
