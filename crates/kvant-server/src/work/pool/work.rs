//! The kinds of work, each with a reply of its own type.

use super::slots::Slots;
use crate::admission::{Class, Refusal};
use crate::key::Key;
use crate::store::{Lookup, Write};
use crate::timing::StorageWork;
use crate::work::range_reader::RangeReader;
use kvant_base::Result;
use kvant_base::tag::Activity;
use std::cell::RefCell;

#[derive(Debug)]
pub(in crate::work) struct GetRequest {
    pub(in crate::work) key: Key,
    pub(in crate::work) block_bytes_max: u32,
}

/// Work that a selector can send to the pool.
pub(in crate::work) trait PoolWork: Sized + 'static {
    type Output;
    fn into_work(self) -> Work;
    fn into_reply(done: Done<Self>) -> AnyReply;
    fn slots(in_flight: &InFlight) -> &RefCell<Slots<Done<Self>>>;
}

/// Declares the kinds of work, each with the type of its output.
macro_rules! kinds_of_work {
    ($($(#[$doc:meta])* $Kind:ident($Work:ty) -> $Output:ty, in $slots:ident;)+) => {
        pub(in crate::work) enum Work {
            $($(#[$doc])* $Kind($Work),)+
        }

        pub(in crate::work) enum AnyReply {
            $($Kind(Done<$Work>),)+
        }

        #[derive(Default)]
        pub(in crate::work) struct InFlight {
            $($slots: RefCell<Slots<Done<$Work>>>,)+
        }

        $(impl PoolWork for $Work {
            type Output = $Output;

            fn into_work(self) -> Work {
                Work::$Kind(self)
            }

            fn into_reply(done: Done<Self>) -> AnyReply {
                AnyReply::$Kind(done)
            }

            fn slots(in_flight: &InFlight) -> &RefCell<Slots<Done<Self>>> {
                &in_flight.$slots
            }
        })+

        impl Work {
            /// The reply when no worker does it, at the `times` of that decision.
            pub(super) fn not_done(self, refusal: Option<Refusal>, times: StorageWork) -> AnyReply {
                match self {
                    $(Work::$Kind(work) => not_done(work, refusal, times),)+
                }
            }
        }

        impl InFlight {
            /// Jobs whose reply has not arrived, or was not taken.
            pub(super) fn count(&self) -> usize {
                [$(self.$slots.borrow().in_flight_count()),+].iter().sum()
            }

            /// Passes the reply to the job in `slot` on to the future that waits for it.
            pub(super) fn receive(&self, slot: usize, reply: AnyReply) {
                match reply {
                    $(AnyReply::$Kind(done) => finish(&self.$slots, slot, done),)+
                }
            }
        }
    };
}

kinds_of_work! {
    Get(GetRequest) -> Result<Lookup>, in gets;
    /// Committed together. The output: whether the sync level is reached.
    Write(Vec<Write>) -> Result<()>, in writes;
    /// One piece of a range.
    Range(Box<RangeReader>) -> (Box<RangeReader>, Result<()>), in ranges;
}

fn not_done<W: PoolWork>(work: W, refusal: Option<Refusal>, times: StorageWork) -> AnyReply {
    let reply = match refusal {
        Some(refusal) => PoolReply::Refused(refusal, work),
        None => PoolReply::CallerRuns(work),
    };
    W::into_reply(Done { reply, work: times })
}

fn finish<W: PoolWork>(slots: &RefCell<Slots<Done<W>>>, slot: usize, done: Done<W>) {
    let (waker, unwanted) = slots.borrow_mut().finish(slot, done);
    drop(unwanted);
    if let Some(waker) = waker {
        waker.wake();
    }
}

pub(in crate::work) enum PoolReply<W: PoolWork> {
    Finished(W::Output),
    Refused(Refusal, W),
    /// The selector does it itself (`--overload caller-runs`).
    CallerRuns(W),
}

/// What became of a job, and when.
pub(in crate::work) struct Done<W: PoolWork> {
    pub(crate) reply: PoolReply<W>,
    /// For a job that was not finished, `started_ns` and `done_ns` are when that was decided.
    /// `stall` is not set.
    pub(crate) work: StorageWork,
}

/// Where the reply to a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) selector: usize,
    pub(super) slot: usize,
}

impl Work {
    pub(super) fn class(&self) -> Class {
        match self {
            Work::Get(_) => Class::Read,
            Work::Write(_) => Class::Write,
            Work::Range(_) => Class::Range,
        }
    }

    /// The activity under which profiles show it: for writes, that of the first.
    pub(super) fn activity(&self) -> Activity {
        match self {
            Work::Get(_) => Activity::Get,
            Work::Write(writes) => writes.first().map_or(Activity::None, Write::activity),
            Work::Range(_) => Activity::Range,
        }
    }

    /// The number of its requests: its share of the queue's capacity.
    pub(super) fn request_count(&self) -> usize {
        match self {
            Work::Write(writes) => writes.len(),
            Work::Get(_) | Work::Range(_) => 1,
        }
    }

    /// Whether it goes on with a response that has begun, and so is never refused.
    pub(super) fn is_begun(&self) -> bool {
        matches!(self, Work::Range(reader) if reader.is_begun())
    }
}
