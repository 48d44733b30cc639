//! A session with the cluster.

use crate::errors;
use crate::figures::Figures;
use crate::options::Options;
use crate::routing::Routing;
use kvant_base::{Error, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression, PoolSize};
use scylla::policies::load_balancing::DefaultPolicy;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest time of an attempt to connect with a node.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// A node that does not answer for so long, together, is away: what it owes is sent elsewhere.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_WAIT_MAX: Duration = Duration::from_secs(2);
/// A cluster writes its traces after the answer, and not at once.
const TRACE_ATTEMPT_COUNT: NonZeroU32 = NonZeroU32::new(20).expect("is not 0");
const TRACE_INTERVAL: Duration = Duration::from_millis(100);

/// Connects with any of the nodes, and then with all.
///
/// # Errors
/// `Away`: none answers. `Invalid`: the settings or the credentials are wrong.
pub(crate) async fn connect(options: &Options, figures: &Arc<Figures>) -> Result<Session> {
    let mut policy = DefaultPolicy::builder();
    if let Some(datacenter) = &options.datacenter {
        policy = policy.prefer_datacenter(datacenter.clone()).permit_dc_failover(true);
    }
    let profile = ExecutionProfile::builder()
        .request_timeout(Some(options.timeout))
        .load_balancing_policy(Routing::new(policy.build(), Arc::clone(figures)))
        .build();
    let connections = NonZeroUsize::new(options.connection_count)
        .ok_or_else(|| Error::invalid("a node needs at least one connection"))?;
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.nodes)
        // Each selector has a session, which reads the schema now and then.
        .keyspaces_to_fetch([&options.keyspace])
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(CONNECT_TIME_MAX)
        .keepalive_interval(KEEPALIVE_INTERVAL)
        .keepalive_timeout(KEEPALIVE_WAIT_MAX)
        .pool_size(PoolSize::PerShard(connections))
        .tracing_info_fetch_attempts(TRACE_ATTEMPT_COUNT)
        .tracing_info_fetch_interval(TRACE_INTERVAL)
        .compression(None::<Compression>);
    if let Some((user, password)) = &options.credentials {
        builder = builder.user(user, password);
    }
    if let Some(path) = &options.tls_ca {
        builder = builder.tls_context(Some(tls(path)?));
    }
    builder.build().await.map_err(|error| errors::of_connecting(&error))
}

/// Trusts the certificates in `path` alone.
fn tls(path: &Path) -> Result<Arc<ClientConfig>> {
    let unusable = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("the certificates cannot be used: {error}")).with_file(path)
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"there is none in PEM form"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
