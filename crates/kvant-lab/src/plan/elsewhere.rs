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
            SubjectKind::Kvant { .. } | SubjectKind::Command { .. } => {
                let option = |name| self.option(name).unwrap_or_default();
                let [nodes, keyspace] = ["cluster-nodes", "cluster-keyspace"].map(option);
                self.is_in_cluster().then(|| format!("cassandra://{nodes}/{keyspace}"))
            }
        }
    }

    /// Where nodes of its cluster are reached, `HOST:PORT` each, if it keeps its records in one.
    pub(crate) fn cluster_nodes(&self) -> Vec<String> {
        if !self.is_in_cluster() {
            return Vec::new();
        }
        // As `kvant serve` does without the option, and without a port.
        let nodes = self.option("cluster-nodes").unwrap_or("127.0.0.1").split(',').map(str::trim);
        let with_port = |node: &str| match node.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => node.to_owned(),
            _ => format!("{node}:9042"),
        };
        nodes.map(with_port).collect()
    }

    fn is_in_cluster(&self) -> bool {
        self.option("engine") == Some("cassandra")
    }

    /// An option of `kvant serve`.
    fn option(&self, name: &str) -> Option<&str> {
        let SubjectKind::Kvant { options, .. } = &self.kind else { return None };
        let found = options.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
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
