//! Records of a keyspace of a cluster.
//!
//! Times to live are the cluster's: whole seconds. A copy lives as long as its record, or up to two
//! seconds longer ([`super::verify`] allows for them).

use super::records::{FIRST_KEY_OF_A_BYTE, Record, Records, Source, Target};
use kvant_base::{Error, Result};
use kvant_cassandra::{Cluster, Loader, Options, Range};
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
        mut options: Options,
        nodes: &[String],
        keyspace: &str,
        creates: bool,
    ) -> Result<Keyspace> {
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
        let range = self.cluster.scan(start.max(FIRST_KEY_OF_A_BYTE), end);
        Ok(Box::new(KeyspaceRecords { keyspace: self, range }))
    }
}

struct KeyspaceRecords<'a> {
    keyspace: &'a Keyspace,
    range: Range,
}

impl Records for KeyspaceRecords<'_> {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            if self.range.must_fetch() {
                self.keyspace.cluster.fetch(&mut self.range)?;
            }
            if self.range.take_next().is_none() {
                return Ok(None);
            }
            // A record may expire between its page and its turn.
            let (_, _, expires_at_ms) = self.range.taken();
            if expires_at_ms.is_none_or(|at_ms| self.keyspace.clock.wall_ms() < at_ms) {
                break;
            }
        }
        let (key, value, expires_at_ms) = self.range.taken();
        Ok(Some(Record { key, value, expires_at_ms }))
    }
}

pub(super) struct KeyspaceTarget<'a> {
    keyspace: &'a Keyspace,
    loader: Loader,
}

impl Target for KeyspaceTarget<'_> {
    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let Record { key, value, expires_at_ms } = record;
        if key.is_empty() {
            // It would be out of reach there.
            let what = "a record with the empty key cannot be copied to a cluster";
            return Err(Error::invalid(what));
        }
        self.loader.put(&self.keyspace.cluster, key, value, expires_at_ms)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.loader.finish(&self.keyspace.cluster)
    }
}
