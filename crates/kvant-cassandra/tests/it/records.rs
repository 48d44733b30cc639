//! Single records.

use crate::node::{self, open, wait};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_cassandra::Ask;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn the_last_write_that_was_accepted_wins_whatever_arrives_first() {
    let cluster = open(&node::options()).unwrap();
    wait(async {
        for round in 0..50 {
            // The first is sent last.
            let first =
                cluster.put(b"key", Bytes::from(format!("old {round}")), None, Ask::default());
            let last =
                cluster.put(b"key", Bytes::from(format!("new {round}")), None, Ask::default());
            last.await.0.unwrap();
            first.await.0.unwrap();
            let found = cluster.get(b"key", Ask::default()).await.0.unwrap();
            assert_eq!(found, Some(Bytes::from(format!("new {round}"))));
            let put = cluster.put(b"key", Bytes::from_static(b"deleted"), None, Ask::default());
            cluster.delete(b"key", Ask::default()).await.0.unwrap();
            put.await.0.unwrap();
            assert_eq!(cluster.get(b"key", Ask::default()).await.0.unwrap(), None);
        }
    });
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_value_lives_as_long_as_it_was_given_and_not_much_longer() {
    let cluster = open(&node::options()).unwrap();
    wait(async {
        // Whatever the part of a second in which they are written.
        for number in 0..4_u8 {
            tokio::time::sleep(Duration::from_millis(240)).await;
            let begin = Instant::now();
            let value = Bytes::from_static(b"short-lived");
            cluster.put(&[number], value, Some(1_000), Ask::default()).await.0.unwrap();
            while cluster.get(&[number], Ask::default()).await.0.unwrap().is_some() {
                assert!(begin.elapsed() < Duration::from_millis(3_500), "{number} lives on");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(begin.elapsed() >= Duration::from_secs(1), "{number} expired early");
        }
    });
}

/// Cassandra's default allows 16 MiB a request, head and key included.
#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_record_that_is_too_long_for_the_node_is_refused_and_disturbs_no_other() {
    let cluster = open(&node::options()).unwrap();
    let put = |key, value| cluster.put(key, Bytes::from(value), None, Ask::default());
    wait(async {
        put(b"key", vec![1; (16 << 20) - 1000]).await.0.unwrap();
        let (too_long, other) = tokio::join!(put(b"key", vec![2; 16 << 20]), put(b"a", vec![3]));
        let error = too_long.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains("native_transport_max_frame_size"), "{error}");
        other.0.unwrap();
        let value = cluster.get(b"key", Ask::default()).await.0.unwrap().unwrap();
        assert_eq!((value.len(), value[0]), ((16 << 20) - 1000, 1));
    });
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn more_answers_than_nodes_are_an_error() {
    let cluster = open(&node::options()).unwrap();
    for ack_count in [0, 2] {
        let error = wait(cluster.get(b"key", Ask { ack_count: Some(ack_count), ..Ask::default() }))
            .0
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(
        wait(cluster.get(b"key", Ask { ack_count: Some(1), ..Ask::default() })).0.unwrap(),
        None
    );
}
