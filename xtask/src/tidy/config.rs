//! What the checks know about this repository, from `xtask/tidy.toml`: the order of crates and
//! modules, and exceptions with their reasons.

use super::finding::Finding;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The file, as findings name it.
pub(super) const FILE: &str = "xtask/tidy.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    pub(super) url_hosts: Vec<String>,
    /// Directories whose Rust code may have Cyrillic letters.
    pub(super) russian: Vec<String>,
    /// Lowest first.
    #[serde(rename = "crate")]
    pub(super) crates: Vec<Crate>,
    pub(super) exceptions: Exceptions,
}

#[derive(Deserialize)]
pub(super) struct Crate {
    pub(super) name: String,
    /// Lowest first: each a module, or an item of it that stands lower than the rest
    /// (`module::Item`), and the rows that it may use.
    pub(super) modules: Vec<Vec<String>>,
}

/// Exceptions of each rule, in that rule's terms, with reasons.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Exceptions {
    pub(super) order: BTreeMap<String, String>,
    pub(super) fan_out: BTreeMap<String, String>,
    pub(super) circles: BTreeMap<String, String>,
    pub(super) roots: BTreeMap<String, String>,
    pub(super) long_files: BTreeMap<String, String>,
}

/// The exceptions of one rule. It records which of them were needed, so that the list only shrinks.
pub(super) struct Ratchet<'a> {
    exceptions: &'a BTreeMap<String, String>,
    needed: BTreeSet<&'a str>,
}

impl<'a> Ratchet<'a> {
    pub(super) fn new(exceptions: &'a BTreeMap<String, String>) -> Ratchet<'a> {
        Ratchet { exceptions, needed: BTreeSet::new() }
    }

    /// Whether there is an exception for `what`; marks it as needed.
    pub(super) fn allows(&mut self, what: &str) -> bool {
        let exception = self.exceptions.get_key_value(what);
        self.needed.extend(exception.map(|(what, _)| what.as_str()));
        exception.is_some()
    }

    /// A finding for each exception that was not needed.
    pub(super) fn unneeded(self) -> impl Iterator<Item = Finding> {
        let unneeded =
            self.exceptions.iter().filter(move |(what, _)| !self.needed.contains(what.as_str()));
        unneeded.map(|(what, reason)| {
            let problem =
                format!("the exception for {what} ({reason}) is not needed any more: remove it");
            Finding::new(FILE, 1, problem)
        })
    }
}
