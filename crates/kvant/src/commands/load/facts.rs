//! The JSON of a run: settings, machine and results.

use super::settings::{LoadSettings, Requests};
use kvant_load::report::json::{ConfigFacts, HostFacts, PhaseResult, ResultFile};
use kvant_load::verdict::Verdict;
use kvant_load::{LoadConfig, Outcome};

#[derive(Debug)]
pub(super) struct Done {
    /// Its purpose in a search; else empty.
    pub(super) label: String,
    pub(super) outcome: Outcome,
    pub(super) verdict: Verdict,
}

/// A result without phases.
pub(super) fn result(settings: &LoadSettings, config: &LoadConfig) -> ResultFile {
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let command = args.map(|arg| without_secret(arg, &settings.common.headers)).collect();
    let requests = match &settings.requests {
        Requests::Fixed { method, .. } => method.clone(),
        Requests::Script { file, .. } => format!("script {}", file.display()),
        Requests::Workload(config) => {
            format!("workload {}, {} keys", config.mix, config.key_count)
        }
    };
    ResultFile::new(command, HostFacts::of_this_machine(), ConfigFacts::of(config, &requests))
}

pub(super) fn phase(done: &Done) -> PhaseResult {
    PhaseResult::of(&done.outcome, &done.label, Some(&done.verdict))
}

/// An argument of the command line without the value of a header, which may be a password.
fn without_secret(arg: String, headers: &[(String, String)]) -> String {
    let trimmed = arg.trim_end();
    let header = headers.iter().find(|(name, value)| {
        !value.is_empty()
            && trimmed.contains(&format!("{name}:"))
            && trimmed.ends_with(value.as_str())
    });
    match header {
        Some((_, value)) => format!("{}...", &trimmed[..trimmed.len() - value.len()]),
        None => arg,
    }
}

#[cfg(test)]
mod tests;
