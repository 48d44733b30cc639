//! The engine `cassandra` from the settings.

use crate::settings::ClusterSettings;
use kvant_base::log::Log;
use kvant_base::{Error, Result};
use kvant_cassandra::{Cluster, Options};
use kvant_env::{Env, host};
use kvant_server::{Backend, CassandraStore};
use std::path::Path;
use std::sync::Arc;

/// Connects with the cluster, however long that takes. `limits_adapt`: whether requests in flight
/// at a node are limited by what they cost.
pub(super) fn open(
    settings: &ClusterSettings,
    limits_adapt: bool,
    env: Env,
    log: &Arc<dyn Log>,
    waiting: &dyn Fn(&Error),
) -> Result<Backend> {
    let options = options(settings, limits_adapt)?;
    let cluster = Cluster::open(&options, env.clock, log, waiting)?;
    Ok(Backend::Remote(Arc::new(CassandraStore::new(cluster))))
}

pub(super) fn options(settings: &ClusterSettings, limits_adapt: bool) -> Result<Options> {
    let credentials = match (&settings.user, &settings.password_file) {
        (Some(user), Some(path)) => Some((user.clone(), password(path)?)),
        _ => None,
    };
    Ok(Options {
        nodes: settings.nodes.clone(),
        keyspace: settings.keyspace.clone(),
        must_exist: false,
        datacenter: settings.datacenter.clone(),
        credentials,
        tls_ca: settings.tls_ca.clone(),
        replica_count: settings.replica_count,
        bucket_count: settings.bucket_count,
        ack_count: settings.ack_count,
        timeout: settings.timeout,
        connection_count: settings.connection_count,
        has_second_reads: settings.has_second_reads,
        limits_adapt,
    })
}

/// The first line of a file.
fn password(path: &Path) -> Result<String> {
    let bytes = host::read_bytes(path).map_err(|error| Error::io("read", path, error))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid("the password is not UTF-8").with_file(path))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_string()),
        _ => Err(Error::invalid("the first line, which is the password, is empty").with_file(path)),
    }
}
