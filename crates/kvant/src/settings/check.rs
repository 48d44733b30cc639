//! Checks that need more than one setting, and the engine's own.

use super::{Chosen, Origin, Problem, SETTINGS, Settings};
use kvant_base::{limits, size};
use kvant_engine::Options;
use std::path::PathBuf;

impl Settings {
    /// The directory of checkpoints: as set, or beside the data.
    pub(crate) fn checkpoints_dir(&self) -> PathBuf {
        self.checkpoints.clone().unwrap_or_else(|| match self.data.file_name() {
            Some(_) => self.data.with_file_name("checkpoints"),
            None => self.data.join("../checkpoints"),
        })
    }

    /// The engine's options that follow from these settings.
    pub(crate) fn engine_options(&self) -> Options {
        Options {
            sync: self.sync,
            value_bytes_max: self.value_bytes_max,
            compression: [self.compression; limits::LEVELS],
            ..Options::for_memory(self.memory_bytes)
        }
    }
}

/// What is wrong with the settings together. A setting whose own value was refused takes part in no
/// check: what is in its place is not what was meant.
pub(crate) fn cross_check(
    settings: &Settings,
    chosen: &[Chosen],
    refused: &[bool],
) -> Vec<Problem> {
    let origin = |name: &str| -> Option<&Origin> {
        let at = SETTINGS
            .iter()
            .position(|setting| setting.name == name)
            .expect("checks name settings of the table");
        (!refused[at]).then(|| &chosen[at].origin)
    };
    let mut problems = Vec::new();
    let mut refuse =
        |name: &str, origin: &Origin, sentence| problems.push(Problem::of(name, origin, sentence));

    let listeners = [("listen", Some(settings.listen)), ("admin-listen", settings.admin_listen)];
    for (name, addr) in listeners {
        let (Some(addr), Some(from), Some(_)) = (addr, origin(name), origin("insecure")) else {
            continue;
        };
        if !settings.insecure && !addr.ip().to_canonical().is_loopback() {
            let sentence = format!(
                "{addr} is not a loopback address, and there are no credentials: whoever reaches it can change \
                 everything; say --insecure if that is meant"
            );
            refuse(name, from, sentence);
        }
    }
    if let (Some(_), Some(from)) = (origin("listen"), origin("admin-listen"))
        && settings.admin_listen == Some(settings.listen)
        && settings.listen.port() != 0
    {
        let sentence =
            format!("{} is the address of listen: leave it out to share it", settings.listen);
        refuse("admin-listen", from, sentence);
    }

    if let (Some(_), Some(from), Some(dir)) =
        (origin("data"), origin("checkpoints"), &settings.checkpoints)
        && dir.starts_with(&settings.data)
    {
        let sentence = format!(
            "{} lies in the data directory: name another on the same file system",
            dir.display()
        );
        refuse("checkpoints", from, sentence);
    }

    if let Some(from) = origin("selector-cpus")
        && let Some(sentence) = kvant_server::cpus_problem(&settings.selector_cpus)
    {
        refuse("selector-cpus", from, sentence);
    }

    let (Some(memory_from), Some(value_from), Some(_)) =
        (origin("memory"), origin("value-bytes-max"), origin("sync"))
    else {
        return problems;
    };
    let value_bytes_limit = (settings.memory_bytes / 4).min(limits::VALUE_BYTES_MAX_LIMIT);
    if settings.value_bytes_max > value_bytes_limit {
        let sentence = format!(
            "{} is more than {}, a quarter of the memory ({}, {memory_from}) or 1GiB, whichever is less",
            size::format(settings.value_bytes_max),
            size::format(value_bytes_limit),
            size::format(settings.memory_bytes),
        );
        refuse("value-bytes-max", value_from, sentence);
    } else {
        for sentence in settings.engine_options().problems() {
            refuse("memory", memory_from, sentence);
        }
    }
    problems
}
