//! Keyspaces that are created, found again, or refused.

use crate::node::{self, cql, open, refusal, wait};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_cassandra::{Ask, Options};

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_keyspace_is_created_once_and_keeps_its_counts() {
    let options = node::options();
    let first = open(&options).unwrap();
    wait(first.put(b"key", Bytes::from_static(b"value"), None, Ask::default())).0.unwrap();
    let unsaid = Options { replica_count: None, bucket_count: None, ..options.clone() };
    let second = open(&unsaid).unwrap();
    assert_eq!((second.replica_count(), second.bucket_count()), (1, 16));
    assert_eq!(wait(second.get(b"key", Ask::default())).0.unwrap().as_deref(), Some(&b"value"[..]));
    for (wrong, word) in [
        (Options { bucket_count: Some(32), ..options.clone() }, "buckets"),
        (Options { replica_count: Some(2), ..options.clone() }, "nodes for each record"),
    ] {
        let error = refusal(&wrong);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_keyspace_of_others_is_refused_and_left_alone() {
    let options = node::options();
    let keyspace = &options.keyspace;
    cql(&[
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': 1}}"
        ),
        format!("CREATE TABLE {keyspace}.users (id int PRIMARY KEY)"),
    ]);
    let error = refusal(&options);
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("users"), "{error}");
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_schema_of_a_newer_version_is_refused() {
    let options = node::options();
    drop(open(&options).unwrap());
    let keyspace = &options.keyspace;
    cql(&[format!(
        "UPDATE {keyspace}.kvant SET value = 2 WHERE name = 'schema_version' IF EXISTS"
    )]);
    let error = refusal(&options);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("version 2"), "{error}");
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn wrong_settings_are_refused_at_once() {
    let options = node::options();
    let wrong_password = Some((node::USER.to_string(), "wrong".to_string()));
    for (wrong, word) in [
        (Options { credentials: wrong_password, ..options.clone() }, "refuses"),
        (Options { credentials: None, ..options.clone() }, "refuses"),
        (Options { keyspace: "no-name".to_string(), ..options.clone() }, "no name"),
        (Options { replica_count: Some(3), ..options.clone() }, "1 nodes"),
        (Options { ack_count: Some(2), ..options.clone() }, "stored on 1"),
    ] {
        let error = refusal(&wrong);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(word), "{error}");
    }
}
