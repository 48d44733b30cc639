//! Stores that the lab can neither copy nor empty: those of clusters, and of servers that run
//! already.

use super::{Plan, Subject, SubjectKind};
use crate::record::Case;

impl Subject {
    /// Where its store is, if it is in a cluster or in a server that runs already. Subjects with
    /// the same place share the store.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        match &self.kind {
            SubjectKind::Url(url) => Some(url.clone()),
            SubjectKind::Kvant { options, .. } => {
                let option = |name: &str| {
                    let found = options.iter().find(|(known, _)| known == name);
                    found.map_or("", |(_, value)| value.as_str())
                };
                let place = || {
                    let [nodes, keyspace] = ["cluster-nodes", "cluster-keyspace"].map(option);
                    format!("cassandra://{nodes}/{keyspace}")
                };
                (option("engine") == "cassandra").then(place)
            }
            SubjectKind::Command { .. } => None,
        }
    }
}

impl Plan {
    /// Refuses a case that has to begin on an empty store if nothing can empty it.
    pub(super) fn refuse_full_store(&self, case: &Case) -> Result<(), String> {
        let resolved = self.resolve(case).map_err(|error| error.to_string())?;
        let (subject, workload) = (&resolved.subject, &resolved.workload);
        if !workload.starts_empty || subject.has_fixed_response || subject.elsewhere().is_none() {
            return Ok(());
        }
        Err(format!(
            "workload `{}` has to begin on an empty store, and nothing empties that of subject \
             `{}`, which is a server that runs already or keeps its records in a cluster: leave \
             `empty` out",
            workload.name, subject.name
        ))
    }
}

#[cfg(test)]
mod tests;
