//! The figures of a run as a table: a row for each attempt.

use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_lab::record::{Attempt, AttemptVerdict, Case, Run, RunState};
use kvant_load::units::format_time_ns;
use serde_json::Value;
use std::path::Path;

/// The table of the run in `dir`.
///
/// # Errors
/// `Io` if a file cannot be read; `Invalid` if it is no run.
pub(super) fn text(dir: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = dir.join(name);
        host::read_text(&path).map_err(|error| Error::io("read", &path, error))
    };
    let refused = |error: serde_json::Error| {
        Error::invalid(format!("not a run of kvant lab: {error}")).with_file(dir)
    };
    let run: Run = serde_json::from_str(&read("run.json")?).map_err(refused)?;
    let journal = read("journal.jsonl")?;
    // The last line of a run that was killed may be incomplete.
    let whole = &journal[..journal.rfind('\n').map_or(0, |end| end + 1)];
    let mut text = format!("{}\n", run.title);
    if let Some(data) = &run.data {
        text += &format!("  {}, fingerprint {}\n", data.text, data.fingerprint);
    }
    text += &format!(
        "  {:<40} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
        "case", "attempt", "planned", "achieved", "p50", "p99", "p99.9", "max"
    );
    for line in whole.lines() {
        let attempt: Attempt = serde_json::from_str(line).map_err(refused)?;
        let Some(case) = run.cases.get(attempt.case) else { continue };
        text += &format!("  {:<40} {:>9} ", name(case), attempt.number);
        text += &match &attempt.verdict {
            AttemptVerdict::Valid => figures(dir, &attempt)?,
            AttemptVerdict::Disturbed(why) => format!("disturbed: {why}\n"),
            AttemptVerdict::Failed(why) => format!("failed: {why}\n"),
            AttemptVerdict::CutShort(why) => format!("cut short: {why}\n"),
        };
    }
    if let RunState::Interrupted { reason } = &run.state {
        text += &format!("Incomplete: {reason}\n");
    }
    Ok(text)
}

/// `SUBJECT WORKLOAD PHASE CELL`.
fn name(case: &Case) -> String {
    let cell = case.cell.iter().filter(|value| !value.is_empty()).map(String::as_str);
    let parts = [case.subject.as_str(), &case.workload, &case.phase].into_iter().chain(cell);
    parts.collect::<Vec<&str>>().join(" ")
}

/// The rest of a row: the maximum of a search, or a line for each phase.
fn figures(dir: &Path, attempt: &Attempt) -> Result<String> {
    let path = dir.join("attempts").join(format!("{:04}", attempt.number)).join("load.json");
    let text = host::read_text(&path).map_err(|error| Error::io("read", &path, error))?;
    let refused =
        |error| Error::invalid(format!("not a result of kvant load: {error}")).with_file(&path);
    let file: Value = serde_json::from_str(&text).map_err(refused)?;
    let found = &file["find_max"];
    if found.is_object() {
        return Ok(match found["rate_max_per_s"].as_f64() {
            Some(rate) => {
                let is_sure = found["is_confirmed"] == true;
                let sure = if is_sure { "" } else { ", not confirmed" };
                format!("{:>10} {rate:>10.0}  highest rate that holds{sure}\n", "")
            }
            None => "no rate holds\n".to_owned(),
        });
    }
    let mut text = String::new();
    for phase in file["phases"].as_array().into_iter().flatten() {
        if !text.is_empty() {
            let label = phase["label"].as_str().unwrap_or_default();
            text += &format!("  {:<40} {label:>9} ", "");
        }
        let planned = match phase["rate"]["to_per_s"].as_f64() {
            Some(rate) if rate > 0.0 => format!("{rate:.0}"),
            _ => "closed".to_owned(),
        };
        let achieved = phase["rate_achieved_per_s"].as_f64().unwrap_or_default();
        text += &format!("{planned:>10} {achieved:>10.0}");
        let response = &phase["response_with_unanswered"];
        for name in ["p50_ns", "p99_ns", "p99_9_ns", "max_ns"] {
            let ns = response[name].as_u64().unwrap_or_default();
            text += &format!(" {:>9}", format_time_ns(ns));
        }
        text.push('\n');
    }
    Ok(text)
}
