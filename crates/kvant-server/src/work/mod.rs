//! Storage work: what requests do in the store, and on which thread.
//!
//! - [`lifecycle`]: whether there is a store yet;
//! - [`storage`]: a selector's access to the store: admission, dispatch, limits;
//! - [`entity`]: one record: a GET, PUT or DELETE from its query and value to a typed outcome;
//! - [`batcher`], [`committer`]: the writes of one turn of the event loop, committed together;
//! - [`range_reader`]: a range, read piece by piece;
//! - [`pool`]: workers, behind a bounded queue.

mod batcher;
mod committer;
pub(crate) mod entity;
mod failure;
pub(crate) mod lifecycle;
pub(crate) mod pool;
pub(crate) mod range_reader;
pub(crate) mod storage;

pub(crate) use entity::{EntityOutcome, EntityWork};
pub(crate) use failure::Failure;
pub(crate) use lifecycle::Lifecycle;
pub(crate) use range_reader::RangeReader;
pub(crate) use storage::{Piece, Storage};

use crate::store::Backend;
use std::rc::Rc;
use std::sync::Arc;

/// Starts the tasks that commit writes, exchange work with the pool, and keep the selector's
/// connections with the machines of a remote store. Called once, inside the selector's runtime.
pub(crate) fn spawn_tasks(storage: &Rc<Storage>) {
    tokio::task::spawn_local(committer::run(Rc::clone(storage)));
    if let Some(port) = &storage.port {
        port.spawn_tasks();
    }
    tokio::task::spawn_local(keep_own_connections(Rc::clone(storage)));
}

async fn keep_own_connections(storage: Rc<Storage>) {
    if let Backend::Remote(store) = storage.lifecycle.wait_for_store().await {
        store.keep_own_connections(Arc::clone(&storage.log)).await;
    }
}
