//! A selector's side of the pool.

use super::Pool;
use super::work::{Done, Outcome, Work};
use crate::timing::StorageWork;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Where a selector sends work and gets it back.
pub(crate) struct Port {
    pool: Arc<Pool>,
}

impl Port {
    /// The port of the selector with this index.
    pub(crate) fn new(pool: Arc<Pool>, _selector: usize) -> Rc<Port> {
        Rc::new(Port { pool })
    }

    /// Starts the port's tasks. To be called once, inside the selector's runtime.
    pub(crate) fn spawn(self: &Rc<Self>) {}

    /// Sends work to the pool, with everything else that is sent in this turn of the event loop.
    pub(crate) fn send(self: &Rc<Self>, work: Work) -> Later {
        let now_ns = self.pool.clock().monotonic_ns();
        let times = StorageWork {
            queued_ns: now_ns,
            started_ns: now_ns,
            done_ns: now_ns,
            ..StorageWork::default()
        };
        Later(Some(Done {
            outcome: Outcome::RunHere(work),
            work: times,
        }))
    }
}

/// Resolves when the work is done or refused. Dropping it does not take the work back.
pub(crate) struct Later(Option<Done>);

impl Future for Later {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Done> {
        Poll::Ready(self.0.take().expect("no future is polled after its end"))
    }
}
