//! Makes refused clients back off.
//!
//! A client that sends its next request right after a `503` would be refused again and again, and a
//! selector could end up doing nothing else. So the selector reads its connection only after a
//! rest. Rests are so long that refusals take a twentieth of the selector's time. The kernel's flow
//! control holds back the client.
//!
//! This is the generic cell rate algorithm (ITU-T I.371): one virtual time, to which each refusal
//! adds its share.
//!
//! Threads: belongs to one selector.

use std::cell::Cell;

/// What a refusal costs a selector: reading, parsing and responding.
const REFUSAL_NS: u64 = 8_000;
/// One refusal in this time takes a twentieth of it.
const SHARE_NS: u64 = 20 * REFUSAL_NS;
/// Refusals of a burst that cause no rest.
const BURST_COUNT: u64 = 32;
/// The longest rest: a client must not wait for long for a server that has recovered.
const REST_MAX_NS: u64 = 100_000_000;

#[derive(Default)]
pub(crate) struct Pacer {
    /// When all refusals so far have been paid for.
    paid_ns: Cell<u64>,
}

impl Pacer {
    /// How long a connection whose request is refused now rests before it is read again.
    #[inline]
    pub(crate) fn rest_ns(&self, now_ns: u64) -> u64 {
        let burst_ns = BURST_COUNT * SHARE_NS;
        let paid_ns = self.paid_ns.get().max(now_ns) + SHARE_NS;
        self.paid_ns.set(paid_ns.min(now_ns + burst_ns + REST_MAX_NS));
        (self.paid_ns.get() - now_ns).saturating_sub(burst_ns)
    }
}

#[cfg(test)]
mod tests;
