//! Where storage is called: on the selector that read the request, or by a worker
//! ([`crate::pool`]).
//!
//! - `inline`: the selector, always. A read that misses all caches blocks it for one access to the
//!   disk.
//! - `pool`: a worker, always.
//! - `hybrid`: the selector as long as no disk has to be waited for: reads of what is in memory,
//!   and writes, whose log goes to the page cache and whose fsyncs happen elsewhere. Other reads
//!   and all ranges go to the workers.
//!
//! In every mode writes wait for fsyncs and stalls as futures ([`crate::batcher`]), on no thread.
//!
//! Who does it himself is asked first whether it comes too late ([`crate::admission::Lag`]); the
//! pool's queue judges the rest.

use crate::admission::{Class, Refusal};
use crate::config::DispatchMode;
use crate::io::SocketState;
use crate::key::Key;
use crate::pool::{Done, Later, Outcome, RangeWork, Work};
use crate::problem::Problem;
use crate::range::RangeReader;
use crate::routes::entity;
use crate::selector::Selector;
use crate::service::Call;
use crate::stores::Store;
use crate::timing::StorageWork;
use kvant_base::{Error, Result};
use kvant_engine::Lookup;
use std::any::Any;
use std::time::Duration;

/// Why there is no result.
#[derive(Clone)]
pub(crate) enum Failure {
    /// Storage failed.
    Storage(Error),
    /// Storage was not asked.
    Refused(Refusal),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Storage(error)
    }
}

/// A read that was begun.
pub(crate) enum Reading {
    Done(Read),
    /// A worker does it. Its result is for [`read`].
    Later(Later),
}

/// A read and its times.
pub(crate) struct Read {
    /// `NeedsDisk`: a block is longer than was allowed.
    pub(crate) result: std::result::Result<Lookup, Failure>,
    pub(crate) work: StorageWork,
}

/// Whether to refuse a request whose head has just been understood.
#[inline]
pub(crate) fn admit(call: &Call, class: Class) -> Option<Refusal> {
    let parsed_ns = call.socket.stamps()?.parsed_ns;
    let lag_ns = call.socket.lag_ns(parsed_ns);
    call.selector.lag.admit(class, lag_ns, parsed_ns)
}

/// Begins to read the newest value of `key`. A block of the disk longer than `block_bytes_max` is
/// not read: there is no memory for it yet.
#[inline]
pub(crate) fn get(
    selector: &Selector,
    store: &dyn Store,
    key: &Key,
    block_bytes_max: u32,
    now_ns: u64,
) -> Reading {
    match selector.shared.config.dispatch {
        DispatchMode::Inline => {
            Reading::Done(get_here(selector, store, key, block_bytes_max, now_ns))
        }
        DispatchMode::Hybrid => {
            let mut work = StorageWork::at(now_ns);
            match store.try_get(key, &mut work.read) {
                Ok(Lookup::NeedsDisk { block_bytes }) if block_bytes <= block_bytes_max => {
                    send(selector, Work::Get(key.clone(), block_bytes_max))
                }
                result => Reading::Done(done_here(selector, work, result)),
            }
        }
        DispatchMode::Pool => send(selector, Work::Get(key.clone(), block_bytes_max)),
    }
}

fn send(selector: &Selector, work: Work) -> Reading {
    Reading::Later(selector.port().send(work))
}

fn get_here(
    selector: &Selector,
    store: &dyn Store,
    key: &[u8],
    block_bytes_max: u32,
    now_ns: u64,
) -> Read {
    let mut work = StorageWork::at(now_ns);
    let result = store.get_bounded(key, block_bytes_max, &mut work.read);
    done_here(selector, work, result)
}

#[inline]
fn done_here(selector: &Selector, mut work: StorageWork, result: Result<Lookup>) -> Read {
    work.done_ns = selector.now_ns();
    selector.lag.note_cost(Class::Read, work.done_ns - work.started_ns);
    Read { result: result.map_err(Failure::from), work }
}

/// What came of a read that was sent to a worker.
pub(crate) fn read(selector: &Selector, store: &dyn Store, done: Done) -> Read {
    let work = done.work;
    let result = match done.outcome {
        Outcome::Got(result) => result.map_err(Failure::from),
        Outcome::Refused(refusal, _) => Err(Failure::Refused(refusal)),
        Outcome::RunHere(Work::Get(key, block_bytes_max)) => {
            let here = get_here(selector, store, &key, block_bytes_max, selector.now_ns());
            let work = StorageWork { queued_ns: work.queued_ns, ..here.work };
            return Read { work, ..here };
        }
        _ => unreachable!("the outcome of a read is one of a read"),
    };
    Read { result, work }
}

/// A piece of a range that is being read.
pub(crate) enum ReadingPiece {
    Done(Piece),
    /// A worker does it. Its result is for [`piece`].
    Later(Later),
}

/// A range, whether its next piece could be read, and the times.
pub(crate) struct Piece {
    pub(crate) reader: Box<RangeReader>,
    pub(crate) result: std::result::Result<(), Failure>,
    pub(crate) work: StorageWork,
}

/// Begins to read the next piece of a range.
pub(crate) fn read_piece(
    selector: &Selector,
    store: &dyn Store,
    reader: Box<RangeReader>,
) -> ReadingPiece {
    match selector.shared.config.dispatch {
        DispatchMode::Inline => {
            ReadingPiece::Done(piece_here(selector, store, reader, selector.now_ns()))
        }
        DispatchMode::Pool | DispatchMode::Hybrid => {
            ReadingPiece::Later(selector.port().send(Work::Range(reader)))
        }
    }
}

fn piece_here(
    selector: &Selector,
    store: &dyn Store,
    mut reader: Box<RangeReader>,
    queued_ns: u64,
) -> Piece {
    let mut work = StorageWork::at(queued_ns);
    work.started_ns = selector.now_ns();
    let result = reader.read_piece(store);
    work.read = RangeWork::trace(&*reader);
    work.done_ns = selector.now_ns();
    selector.lag.note_cost(Class::Range, work.done_ns - work.started_ns);
    Piece { reader, result: result.map_err(Failure::from), work }
}

/// What came of a piece that was sent to a worker.
pub(crate) fn piece(selector: &Selector, store: &dyn Store, done: Done) -> Piece {
    let work = done.work;
    match done.outcome {
        Outcome::Piece(reader, result) => {
            Piece { reader: own(reader), result: result.map_err(Failure::from), work }
        }
        Outcome::Refused(refusal, Work::Range(reader)) => {
            Piece { reader: own(reader), result: Err(Failure::Refused(refusal)), work }
        }
        Outcome::RunHere(Work::Range(reader)) => {
            piece_here(selector, store, own(reader), work.queued_ns)
        }
        _ => unreachable!("the outcome of a range is one of a range"),
    }
}

fn own(reader: Box<dyn RangeWork>) -> Box<RangeReader> {
    (reader as Box<dyn Any>).downcast().expect("selectors send ranges of this type only")
}

/// Explains a failure. A client that was refused rests before its next request is read.
#[cold]
pub(crate) fn explain(selector: &Selector, socket: &SocketState, failure: &Failure) -> Problem {
    match failure {
        Failure::Storage(error) => entity::failed(selector, error),
        Failure::Refused(refusal) => {
            let rest_ns = selector.pacer.rest_ns(selector.now_ns());
            if rest_ns > 0 {
                socket.rest(Duration::from_nanos(rest_ns));
            }
            Problem::refused(*refusal)
        }
    }
}
