//! Keyspace and tables.
//!
//! ```cql
//! CREATE TABLE entity (bucket int, key blob, value blob, PRIMARY KEY (bucket, key));
//! CREATE TABLE kvant (name text PRIMARY KEY, value int);
//! ```
//!
//! The table `kvant` has the version of this schema and the count of buckets. Both are written on
//! condition that they are not there, so that servers which start together agree. They have the
//! same node create the tables: that with the least id of those that are connected.

use crate::errors::{self, Asked};
use crate::options::{BUCKET_COUNT_DEFAULT, Options, REPLICA_COUNT_DEFAULT};
use kvant_base::{Error, ErrorKind, Result};
use scylla::client::session::Session;
use scylla::cluster::metadata::Strategy;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, SerialConsistency, Statement};

const VERSION: i32 = 1;

/// What the keyspace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) bucket_count: u32,
    pub(crate) replica_count: u32,
}

/// Checks the keyspace; creates what is missing.
///
/// # Errors
/// `Invalid`: the keyspace is not Kvant's, or differs from the settings. `Unsupported`: a newer
/// version made it.
pub(crate) async fn open(session: &Session, options: &Options) -> Result<Schema> {
    let keyspace = &options.keyspace;
    if keyspace.is_empty() || !keyspace.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        let what = format!("`{keyspace}` is no name of a keyspace: use letters, digits and `_`");
        return Err(Error::invalid(what));
    }
    // The first metadata of a session may be none but the settings' own addresses.
    refresh(session).await?;
    require_own(session, keyspace)?;
    if options.must_exist {
        require_there(session, keyspace)?;
    }
    create(session, options).await?;
    refresh(session).await?;

    let version = setting(session, keyspace, "schema_version", VERSION).await?;
    if version != VERSION {
        let what = format!(
            "the keyspace `{keyspace}` has version {version} of the schema, and this program knows \
             version {VERSION}"
        );
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    let wanted = options.bucket_count.unwrap_or(BUCKET_COUNT_DEFAULT);
    let wanted = i32::try_from(wanted).map_err(|_| Error::invalid("too many buckets"))?;
    let buckets = setting(session, keyspace, "bucket_count", wanted).await?;
    let bucket_count = u32::try_from(buckets).ok().filter(|&count| count > 0);
    let bucket_count = bucket_count.ok_or_else(|| {
        Error::new(ErrorKind::Corruption, format!("`{keyspace}`.kvant has {buckets} buckets"))
    })?;
    let replica_count = replica_count(session, keyspace)?;
    for (name, has, said) in [
        ("buckets", bucket_count, options.bucket_count),
        ("nodes for each record", replica_count, options.replica_count),
    ] {
        if said.is_some_and(|said| said != has) {
            let said = said.unwrap_or_default();
            return Err(Error::invalid(format!(
                "the keyspace `{keyspace}` has {has} {name}, the settings say {said}: leave them out"
            )));
        }
    }
    Ok(Schema { bucket_count, replica_count })
}

async fn refresh(session: &Session) -> Result<()> {
    let refreshed = session.refresh_metadata().await;
    refreshed.map_err(|error| Error::new(ErrorKind::Away, error.to_string()))
}

/// A keyspace with other tables belongs to other programs.
fn require_own(session: &Session, keyspace: &str) -> Result<()> {
    let state = session.get_cluster_state();
    let Some(tables) = state.get_keyspace(keyspace).map(|found| &found.tables) else {
        return Ok(());
    };
    if tables.is_empty() || tables.contains_key("kvant") {
        return Ok(());
    }
    let names: Vec<&str> = tables.keys().map(String::as_str).take(3).collect();
    Err(Error::invalid(format!(
        "the keyspace `{keyspace}` is not Kvant's: it has the tables {}; name another",
        names.join(", ")
    )))
}

fn require_there(session: &Session, keyspace: &str) -> Result<()> {
    let state = session.get_cluster_state();
    let found = state.get_keyspace(keyspace);
    if found.is_some_and(|found| found.tables.contains_key("kvant")) {
        return Ok(());
    }
    let has = match found {
        None => "the cluster has no",
        Some(_) => "there are no tables in the",
    };
    Err(Error::invalid(format!("{has} keyspace `{keyspace}`")))
}

async fn create(session: &Session, options: &Options) -> Result<()> {
    let keyspace = &options.keyspace;
    let state = session.get_cluster_state();
    let found = state.get_keyspace(keyspace);
    if found.is_none() {
        let wanted = options.replica_count.unwrap_or(REPLICA_COUNT_DEFAULT);
        let node_count = state.get_nodes_info().len();
        if node_count < wanted as usize {
            return Err(Error::invalid(format!(
                "the cluster has {node_count} nodes, fewer than the {wanted} that are to store each \
                 record"
            )));
        }
        let keyspace = format!(
            "CREATE KEYSPACE IF NOT EXISTS \"{keyspace}\" WITH replication = {{'class': \
             'NetworkTopologyStrategy', 'replication_factor': {wanted}}}"
        );
        run(session, keyspace).await?;
    }
    for (table, columns) in [
        ("kvant", "name text PRIMARY KEY, value int"),
        ("entity", "bucket int, key blob, value blob, PRIMARY KEY (bucket, key)"),
    ] {
        if found.is_none_or(|found| !found.tables.contains_key(table)) {
            let statement =
                format!("CREATE TABLE IF NOT EXISTS \"{keyspace}\".{table} ({columns})");
            run(session, statement).await?;
        }
    }
    Ok(())
}

async fn run(session: &Session, statement: String) -> Result<()> {
    let mut statement = Statement::new(statement);
    // A node of Cassandra looks whether it knows the table itself, and gives a new one a random id:
    // two servers that use two nodes would make two tables of one name, and lose what is in one of
    // them (CASSANDRA-10699).
    let state = session.get_cluster_state();
    let connected = state.get_nodes_info().iter().filter(|node| node.is_connected());
    if let Some(node) = connected.min_by_key(|node| node.host_id) {
        let node = NodeIdentifier::HostId(node.host_id);
        let profile = session.get_default_execution_profile_handle().pointee_to_builder();
        let one = SingleTargetLoadBalancingPolicy::new(node, None);
        let profile = profile.load_balancing_policy(one).build();
        statement.set_execution_profile_handle(Some(profile.into_handle()));
    }
    let done = session.query_unpaged(statement, ()).await;
    done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, false))
}

/// A statement about the keyspace as a whole, on which servers in all datacenters have to agree.
pub(crate) fn of_keyspace(text: String) -> Statement {
    let mut statement = Statement::new(text);
    statement.set_consistency(Consistency::Quorum);
    statement.set_serial_consistency(Some(SerialConsistency::Serial));
    statement
}

/// The value of a setting that `name` has in the keyspace, or now gets.
async fn setting(session: &Session, keyspace: &str, name: &str, value: i32) -> Result<i32> {
    let failed = |error| errors::of_request(&error, Asked::Write, false);
    let insert =
        format!("INSERT INTO \"{keyspace}\".kvant (name, value) VALUES (?, ?) IF NOT EXISTS");
    session.query_unpaged(of_keyspace(insert), (name, value)).await.map_err(failed)?;
    let select = format!("SELECT value FROM \"{keyspace}\".kvant WHERE name = ?");
    let found = session.query_unpaged(of_keyspace(select), (name,)).await.map_err(failed)?;
    let unreadable = |what: String| {
        Error::new(ErrorKind::Corruption, format!("`{keyspace}`.kvant has no {name}: {what}"))
    };
    let rows = found.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
    let (found,) = rows.single_row::<(i32,)>().map_err(|error| unreadable(error.to_string()))?;
    Ok(found)
}

/// Nodes that store each record, in all datacenters together.
fn replica_count(session: &Session, keyspace: &str) -> Result<u32> {
    let state = session.get_cluster_state();
    let found = state.get_keyspace(keyspace);
    let found =
        found.ok_or_else(|| Error::new(ErrorKind::Away, "the keyspace is not known yet"))?;
    let count = match &found.strategy {
        Strategy::SimpleStrategy { replication_factor } => *replication_factor,
        Strategy::NetworkTopologyStrategy { datacenter_repfactors } => {
            datacenter_repfactors.values().sum()
        }
        other => {
            return Err(Error::invalid(format!(
                "the keyspace `{keyspace}` has the replication {other:?}, which Kvant does not know"
            )));
        }
    };
    u32::try_from(count).map_err(|_| Error::invalid("too many replicas"))
}
