//! Connections of a thread's own.
//!
//! Where the connection is on the thread that awaits a request, neither the request nor its
//! response passes another thread (`docs/decisions/0042-*`).
//!
//! Invariant: a session is in its slot only while the event loop of its thread polls [`keep`].

use crate::connect;
use crate::figures::Figures;
use crate::options::Options;
use kvant_base::Result;
use scylla::client::session::Session;
use std::cell::RefCell;
use std::future;
use std::sync::Arc;

thread_local! {
    static OWN: RefCell<Option<OwnConnections>> = const { RefCell::new(None) };
}

struct OwnConnections {
    /// Of which cluster: each has its own.
    figures: Arc<Figures>,
    session: Arc<Session>,
}

/// The calling thread's session with the cluster that has these figures, if it has one.
pub(crate) fn session(figures: &Arc<Figures>) -> Option<Arc<Session>> {
    OWN.with_borrow(|own| {
        let own = own.as_ref().filter(|own| Arc::ptr_eq(&own.figures, figures))?;
        Some(Arc::clone(&own.session))
    })
}

/// Connects on the calling thread, whose requests use these connections until this is dropped.
/// Resolves only with an error.
pub(crate) async fn keep(options: &Options, figures: Arc<Figures>) -> Result<()> {
    let session = Arc::new(connect::connect(options, &figures).await?);
    let _emptied = EmptiedAtEnd;
    OWN.set(Some(OwnConnections { figures, session }));
    future::pending().await
}

struct EmptiedAtEnd;

impl Drop for EmptiedAtEnd {
    fn drop(&mut self) {
        drop(OWN.take());
    }
}
