//! One record: what a GET, PUT or DELETE does, from its key and value to a typed outcome. The
//! callers decode requests and encode outcomes.
//!
//! Memory: a value longer than [`SMALL_BYTES`] is returned with a reservation for it. Where there
//! is none in time, the read fails with [`Failure::NoMemory`].

use super::batcher::Writing;
use super::failure::Failure;
use super::pool::{GetRequest, Later};
use super::storage::{BLOCK_BYTES_UNCOUNTED, Reading, Storage};
use crate::admission::Class;
use crate::http::query::EntityQuery;
use crate::key::Key;
use crate::memory::{Held, SMALL_BYTES};
use crate::store::{Backend, LocalStore, Lookup, Pending, RemoteAsk, RemoteCourse, Write};
use crate::timing::StorageWork;
use bytes::Bytes;
use kvant_base::tag::{self, Activity, Stage};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub(crate) enum EntityOutcome {
    /// The value, with its memory when it is longer than [`SMALL_BYTES`].
    Value(Bytes, Option<Held>),
    /// The value, which was appended to the caller's buffer.
    Appended,
    /// The key is absent, was deleted, or has expired.
    Absent,
    Stored,
    Deleted,
    Failed(Failure),
}

/// An entity request whose storage work has begun. Resolves to its outcome and the work's times.
#[expect(clippy::large_enum_variant, reason = "most work is done at once: a box would allocate")]
pub(crate) enum EntityWork {
    Done(EntityOutcome, StorageWork),
    /// In a batch.
    Write(Writing, WriteKind),
    /// Waits for a worker, for memory, or for other machines.
    Later(Pin<Box<dyn Future<Output = (EntityOutcome, StorageWork)>>>),
    Taken,
}

#[derive(Clone, Copy)]
pub(crate) enum WriteKind {
    Put,
    Delete,
}

impl Future for EntityWork {
    type Output = (EntityOutcome, StorageWork);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            EntityWork::Write(writing, kind) => {
                let written = ready!(Pin::new(writing).poll(cx));
                let outcome = match (written.result, kind) {
                    (Ok(()), WriteKind::Put) => EntityOutcome::Stored,
                    (Ok(()), WriteKind::Delete) => EntityOutcome::Deleted,
                    (Err(failure), _) => EntityOutcome::Failed(failure),
                };
                Poll::Ready((outcome, written.work))
            }
            EntityWork::Later(later) => later.as_mut().poll(cx),
            work => match mem::replace(work, EntityWork::Taken) {
                EntityWork::Done(outcome, work) => Poll::Ready((outcome, work)),
                _ => panic!("no future is polled after its end"),
            },
        }
    }
}

/// Begins to read the newest value of `key`. A read that completes at once may append the value to
/// `buffer`: [`EntityOutcome::Appended`].
#[inline]
pub(crate) fn get(
    storage: &Rc<Storage>,
    store: &Backend,
    query: EntityQuery,
    buffer: Option<&mut Vec<u8>>,
    now_ns: u64,
) -> EntityWork {
    let store = match store {
        Backend::Local(store) => store,
        Backend::Remote(store) => {
            let value = store.get(&query.key, remote_ask(&query));
            return EntityWork::Later(Box::pin(fetch(Rc::clone(storage), value, now_ns)));
        }
    };
    let key = query.key;
    let start = match storage.get(&**store, &key, BLOCK_BYTES_UNCOUNTED, buffer, now_ns) {
        Reading::Done(read) => match outcome_of(storage, read.result, None) {
            Ok(outcome) => return EntityWork::Done(outcome, read.work),
            Err(bytes) => SlowRead::Memory(bytes),
        },
        Reading::Later(later) => SlowRead::Later(later),
    };
    let (storage, store) = (Rc::clone(storage), Arc::clone(store));
    EntityWork::Later(Box::pin(get_slowly(storage, store, key, now_ns, start)))
}

/// Adds a put to the batch of this turn. `value` is short, or its memory is held by the caller.
#[inline]
pub(crate) fn put(
    storage: &Rc<Storage>,
    store: &Backend,
    query: EntityQuery,
    value: Bytes,
    now_ns: u64,
) -> EntityWork {
    let ask = remote_ask(&query);
    let write = Write::new(query.key, Some(value), query.ttl_ms);
    begin_write(storage, store, write, ask, WriteKind::Put, now_ns)
}

#[inline]
pub(crate) fn delete(
    storage: &Rc<Storage>,
    store: &Backend,
    query: EntityQuery,
    now_ns: u64,
) -> EntityWork {
    let ask = remote_ask(&query);
    let write = Write::new(query.key, None, None);
    begin_write(storage, store, write, ask, WriteKind::Delete, now_ns)
}

#[inline]
fn begin_write(
    storage: &Rc<Storage>,
    store: &Backend,
    write: Write,
    ask: RemoteAsk,
    kind: WriteKind,
    now_ns: u64,
) -> EntityWork {
    match store {
        Backend::Local(_) => match storage.memory_of_waiting(&write) {
            Ok(memory) => EntityWork::Write(storage.batcher.append(write, memory, now_ns), kind),
            Err(failure) => {
                EntityWork::Done(EntityOutcome::Failed(failure), StorageWork::at(now_ns))
            }
        },
        Backend::Remote(store) => {
            let written = store.write(&write, ask);
            EntityWork::Later(Box::pin(finish_write(Rc::clone(storage), written, kind, now_ns)))
        }
    }
}

fn remote_ask(query: &EntityQuery) -> RemoteAsk {
    RemoteAsk { ack_count: query.ack_count(), is_traced: query.is_traced }
}

/// Waits for a write on other machines.
async fn finish_write(
    storage: Rc<Storage>,
    written: Pending<'static, (kvant_base::Result<()>, RemoteCourse)>,
    kind: WriteKind,
    begun_ns: u64,
) -> (EntityOutcome, StorageWork) {
    let (result, course) = written.await;
    let done_ns = storage.meter.now_ns();
    let outcome = match (result, kind) {
        (Ok(()), WriteKind::Put) => EntityOutcome::Stored,
        (Ok(()), WriteKind::Delete) => EntityOutcome::Deleted,
        (Err(error), _) => {
            EntityOutcome::Failed(storage.failure_of_remote(error, Class::Write, done_ns))
        }
    };
    (outcome, StorageWork::of_remote(begun_ns, course, done_ns))
}

/// Waits for a value from other machines. Its memory is reserved when its length is known; where
/// the last values were long, memory for one as long is reserved before the request.
async fn fetch(
    storage: Rc<Storage>,
    value: Pending<'static, (kvant_base::Result<Option<Bytes>>, RemoteCourse)>,
    begun_ns: u64,
) -> (EntityOutcome, StorageWork) {
    let wait_max = storage.config.queue_wait_max;
    let expected_bytes = storage.remote_value_bytes.get().min(storage.memory.share_bytes());
    let mut held = None;
    if expected_bytes > SMALL_BYTES {
        held = storage.memory.hold(expected_bytes, wait_max).await;
        if held.is_none() {
            let work = StorageWork::never_begun(begun_ns, storage.meter.now_ns());
            return (EntityOutcome::Failed(Failure::NoMemory), work);
        }
    }
    let begun_to_fetch_ns = storage.meter.now_ns();
    let (result, course) = value.await;
    if let Ok(value) = &result {
        let value_bytes = value.as_ref().map_or(0, |value| value.len() as u64);
        let before_bytes = storage.remote_value_bytes.get();
        storage.remote_value_bytes.set(value_bytes.max(before_bytes - before_bytes.div_ceil(16)));
    }
    let done_ns = storage.meter.now_ns();
    let found = result
        .map(Lookup::Known)
        .map_err(|error| storage.failure_of_remote(error, Class::Read, done_ns));
    let work = StorageWork {
        queued_ns: begun_ns,
        ..StorageWork::of_remote(begun_to_fetch_ns, course, done_ns)
    };
    let outcome = match outcome_of(&storage, found.clone(), held) {
        Ok(outcome) => outcome,
        Err(bytes) => {
            let held = storage.memory.hold(bytes, wait_max).await;
            let failed = EntityOutcome::Failed(Failure::NoMemory);
            match held {
                Some(held) => outcome_of(&storage, found, Some(held)).unwrap_or(failed),
                None => failed,
            }
        }
    };
    (outcome, work)
}

enum SlowRead {
    Later(Later<GetRequest>),
    /// This many bytes of memory.
    Memory(u64),
}

async fn get_slowly(
    storage: Rc<Storage>,
    store: Arc<dyn LocalStore>,
    key: Key,
    begun_ns: u64,
    mut waits_for: SlowRead,
) -> (EntityOutcome, StorageWork) {
    loop {
        let (reading, held) = match waits_for {
            SlowRead::Later(later) => (Reading::Later(later), None),
            SlowRead::Memory(bytes) => {
                let wait_max = storage.config.queue_wait_max;
                let Some(held) = storage.memory.hold(bytes, wait_max).await else {
                    // Requests that came together time out together: responding to thousands of
                    // them would fill a turn of the event loop.
                    storage.read_budget.pass().await;
                    let work = StorageWork::never_begun(begun_ns, storage.meter.now_ns());
                    return (EntityOutcome::Failed(Failure::NoMemory), work);
                };
                let block_bytes_max =
                    u32::try_from(bytes).unwrap_or(u32::MAX).max(BLOCK_BYTES_UNCOUNTED);
                let now_ns = storage.meter.now_ns();
                (storage.get(&*store, &key, block_bytes_max, None, now_ns), Some(held))
            }
        };
        let read = match reading {
            Reading::Done(read) => read,
            Reading::Later(later) => {
                let done = later.await;
                let _tag = tag::enter_at(Activity::Get, Stage::Dispatch);
                storage.finish_read(&*store, done)
            }
        };
        // Attempts of the event loop and waits for memory came first.
        let work = StorageWork { queued_ns: begun_ns, ..read.work };
        match outcome_of(&storage, read.result, held) {
            Ok(outcome) => return (outcome, work),
            Err(bytes) => waits_for = SlowRead::Memory(bytes),
        }
    }
}

/// The outcome of a read, or how much memory has to be reserved before it is read again.
#[inline]
fn outcome_of(
    storage: &Storage,
    result: Result<Lookup, Failure>,
    held: Option<Held>,
) -> Result<EntityOutcome, u64> {
    match result {
        Ok(Lookup::Known(Some(value))) => {
            let value_bytes = value.len() as u64;
            if value_bytes <= SMALL_BYTES {
                return Ok(EntityOutcome::Value(value, None));
            }
            let held = match held {
                Some(mut held) => {
                    held.resize(value_bytes);
                    held
                }
                None => storage.memory.try_hold(value_bytes).ok_or(value_bytes)?,
            };
            Ok(EntityOutcome::Value(value, Some(held)))
        }
        Ok(Lookup::Appended) => Ok(EntityOutcome::Appended),
        Ok(Lookup::Known(None)) => Ok(EntityOutcome::Absent),
        Ok(Lookup::NeedsDisk { block_bytes }) => Err(block_bytes.into()),
        Err(failure) => Ok(EntityOutcome::Failed(failure)),
    }
}
