//! Where storage is called: on the selector itself (`--dispatch inline`).
//!
//! Every route reaches the store through here, so that a pool of workers with a queue in front, and the mix of both, are other
//! variants of [`Dispatch`] and no other route.
//!
//! Inline, a read that misses all caches blocks the selector for one disk access. Writes never do: they wait for fsyncs and stalls
//! as futures ([`crate::batcher`]).

use crate::stores::{Records, Store};
use bytes::Bytes;
use kvant_base::Result;
use kvant_engine::ReadTrace;

/// How storage calls are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dispatch {
    /// On the calling selector.
    #[default]
    Inline,
}

impl Dispatch {
    /// [`Store::get`].
    #[inline]
    pub(crate) fn get(self, store: &dyn Store, key: &[u8], trace: &mut ReadTrace) -> Result<Option<Bytes>> {
        match self {
            Dispatch::Inline => store.get(key, trace),
        }
    }

    /// [`Store::range`].
    pub(crate) fn range(
        self,
        store: &dyn Store,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Result<Box<dyn Records>> {
        match self {
            Dispatch::Inline => store.range(start, end),
        }
    }
}
