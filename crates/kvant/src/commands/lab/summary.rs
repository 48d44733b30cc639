//! The figures of a run as a table: a row for each attempt.

use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_lab::record::{Attempt, AttemptVerdict, Case, Run, RunState};
use kvant_load::report::json::ResultFile;
use kvant_load::units::format_time_ns;
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
    let number = format!("{:04}", attempt.number);
    let file = ResultFile::read(&dir.join("attempts").join(number).join("load.json"))?;
    if let Some(found) = &file.find_max {
        return Ok(match found.rate_max_per_s {
            Some(rate) => {
                let sure = if found.is_confirmed { "" } else { ", not confirmed" };
                format!("{:>10} {rate:>10.0}  highest rate that holds{sure}\n", "")
            }
            None => "no rate holds\n".to_owned(),
        });
    }
    let mut text = String::new();
    for phase in &file.phases {
        if !text.is_empty() {
            text += &format!("  {:<40} {:>9} ", "", phase.label);
        }
        let planned = match phase.rate.kind.as_str() {
            "closed" => "closed".to_owned(),
            _ => format!("{:.0}", phase.rate.to_per_s),
        };
        text += &format!("{planned:>10} {:>10.0}", phase.rate_achieved_per_s);
        let response = &phase.response_with_unanswered;
        for ns in [response.p50_ns, response.p99_ns, response.p99_9_ns, response.max_ns] {
            text += &format!(" {:>9}", format_time_ns(ns));
        }
        text.push('\n');
    }
    Ok(text)
}
