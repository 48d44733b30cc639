//! Records of a keyspace of a cluster.
//!
//! Times to live are the cluster's: whole seconds. A copy lives as long as its record, or up to two
//! seconds longer.

use super::records::{Record, Records, Source, Target};
use crate::commands::cassandra;
use crate::settings::ClusterSettings;
use kvant_base::{Error, Result};
use kvant_cassandra::{Cluster, Loader, Range};
use kvant_env::{Clock, Env};
use std::sync::Arc;

/// A connection with a cluster.
pub(super) struct Keyspace {
    cluster: Cluster,
    name: String,
    clock: Arc<dyn Clock>,
}

impl Keyspace {
    /// Connects; with `creates`, a keyspace that is not there is created.
    pub(super) fn open(
        env: &Env,
        settings: &ClusterSettings,
        nodes: &[String],
        keyspace: &str,
        creates: bool,
    ) -> Result<Keyspace> {
        let mut options = cassandra::options(env, settings, false)?;
        options.nodes = nodes.to_vec();
        options.keyspace = keyspace.to_string();
        options.must_exist = !creates;
        let clock = Arc::clone(&env.clock);
        let cluster = Cluster::open_now(&options, &clock).map_err(|error| {
            let nodes = nodes.join(",");
            Error::new(error.kind(), format!("cassandra://{nodes}/{keyspace}: {error}"))
        })?;
        Ok(Keyspace { cluster, name: keyspace.to_string(), clock })
    }

    /// Begins a copy of `from`, or goes on with one: after the key that is returned.
    pub(super) fn target(&self, from: &str) -> Result<(KeyspaceTarget<'_>, Option<Vec<u8>>)> {
        let (loader, key) = Loader::open(&self.cluster, &self.name, from)?;
        Ok((KeyspaceTarget { keyspace: self, loader }, key))
    }
}

impl Source for Keyspace {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        let range = match end {
            None => self.cluster.scan(start),
            Some(end) => self.cluster.range(start, Some(end), u64::MAX),
        };
        Ok(Box::new(KeyspaceRecords { keyspace: self, range }))
    }
}

struct KeyspaceRecords<'a> {
    keyspace: &'a Keyspace,
    range: Range,
}

impl Records for KeyspaceRecords<'_> {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.range.must_fetch() {
            self.keyspace.cluster.fetch(&mut self.range)?;
        }
        if self.range.take_next().is_none() {
            return Ok(None);
        }
        let (key, value, ttl_s) = self.range.taken();
        let expires_at_ms =
            ttl_s.map(|ttl_s| self.keyspace.clock.wall_ms() + u64::from(ttl_s) * 1_000);
        Ok(Some(Record { key, value, expires_at_ms }))
    }
}

pub(super) struct KeyspaceTarget<'a> {
    keyspace: &'a Keyspace,
    loader: Loader,
}

impl Target for KeyspaceTarget<'_> {
    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let ttl_s = match record.expires_at_ms {
            None => None,
            Some(expires_at_ms) => {
                let now_ms = self.keyspace.clock.wall_ms();
                let Some(left_ms) = expires_at_ms.checked_sub(now_ms).filter(|&ms| ms > 0) else {
                    return Ok(());
                };
                // The cluster counts from the second in which it received the write.
                Some(u32::try_from(left_ms.div_ceil(1_000) + 1).unwrap_or(u32::MAX))
            }
        };
        self.loader.put(&self.keyspace.cluster, record.key, record.value, ttl_s)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.loader.finish(&self.keyspace.cluster)
    }
}
