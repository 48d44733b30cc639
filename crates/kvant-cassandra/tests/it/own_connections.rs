//! Connections of a thread's own.

use crate::node::{self, NoLog, open, wait};
use kvant_cassandra::{Ask, Cluster};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const GET_COUNT: u64 = 500;

/// By the connections among `connections` and by others: how many more requests the node had after
/// [`GET_COUNT`] gets of `cluster`.
async fn get_often(cluster: &Cluster, connections: &HashMap<i32, u64>) -> (u64, u64) {
    let before = node::requests_by_port().await;
    for _ in 0..GET_COUNT {
        cluster.get(b"key", Ask::default()).await.0.unwrap();
    }
    let (mut by_these, mut by_others) = (0, 0);
    for (port, count) in node::requests_by_port().await {
        let more = count.saturating_sub(before.get(&port).copied().unwrap_or(0));
        *if connections.contains_key(&port) { &mut by_these } else { &mut by_others } += more;
    }
    (by_these, by_others)
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_thread_with_connections_of_its_own_uses_them_as_long_as_they_are_kept() {
    let cluster = open(&node::options()).unwrap();
    wait(async {
        let shared = node::requests_by_port().await;
        let (by_shared, _) = get_often(&cluster, &shared).await;
        assert!(by_shared >= GET_COUNT, "{by_shared} of {GET_COUNT}");

        tokio::select! {
            () = cluster.keep_own_connections(Arc::new(NoLog)) => unreachable!("they are kept"),
            () = async {
                // The first answers come by the shared ones, until others are there.
                for attempt in 0.. {
                    let (by_shared, by_own) = get_often(&cluster, &shared).await;
                    if by_own >= GET_COUNT {
                        assert!(by_shared < GET_COUNT, "{by_shared} by connections of others");
                        break;
                    }
                    assert!(attempt < 100, "{by_own} of {GET_COUNT}");
                    sleep(Duration::from_millis(100)).await;
                }
            } => {}
        }

        let (by_shared, _) = get_often(&cluster, &shared).await;
        assert!(by_shared >= GET_COUNT, "{by_shared} of {GET_COUNT}");
    });
}
