//! Requests that wait until a node has room for them.
//!
//! Threads: any task.

use kvant_base::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time;

/// Between two attempts, unless a node announces room: one that said itself that it is overloaded
/// does not say when it no longer is.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Repeats `attempt` while nodes are overloaded, for `limit` at most. `room` is notified when a
/// node may have room again.
pub(crate) async fn wait_for_it<T, F>(
    room: &Notify,
    limit: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let waited = time::timeout(limit, async {
        loop {
            let announced = room.notified();
            match attempt().await {
                // Announced or not, it is worth another attempt then.
                Err(error) if error.kind() == ErrorKind::Overloaded => {
                    let _announced = time::timeout(PAUSE_MAX, announced).await;
                }
                result => return result,
            }
        }
    });
    let too_long = |_| Error::new(ErrorKind::NoAnswer, "no node had room for a page in time");
    waited.await.map_err(too_long)?
}

#[cfg(test)]
mod tests;
