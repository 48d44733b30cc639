//! Sources of requests: one per thread, called for each request when it is sent.

pub mod fixed;

use crate::op::OpId;
use crate::target::Address;
use kvant_base::Result;
use std::time::Duration;

/// Makes requests. Each worker thread owns one. An error, the failure of a script, ends the run.
pub trait RequestSource: Send {
    /// The next request, or pipelined batch of requests, for a connection to `targets[target]`.
    fn next(&mut self, target: usize) -> Result<Batch<'_>>;

    /// The address of all connections of this thread, in place of those of the targets (wrk's
    /// `thread.addr`). Called once, at the start.
    fn address(&self) -> Option<Address> {
        None
    }

    /// Whether to call [`RequestSource::observe`]. Called once, at the start.
    fn observes(&self) -> bool {
        false
    }

    /// Receives a complete response.
    fn observe(&mut self, response: &ResponseView<'_>) -> Result<()> {
        let ResponseView { .. } = response;
        Ok(())
    }

    /// Whether to call [`RequestSource::delay`]. Called once, at the start.
    fn delays(&self) -> bool {
        false
    }

    /// How long a connection waits before its next request (wrk's `delay()`).
    fn delay(&mut self) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    /// Whether this thread stops sending for good (wrk's `thread:stop()`, or the end of a
    /// workload). A phase ends when all sources have stopped and nothing is in flight.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether this source follows its requests, so that it can send some of them again: whether to
    /// call [`RequestSource::cookie`], [`RequestSource::settled`] and
    /// [`RequestSource::paused_until`]. Called once, at the start.
    fn follows(&self) -> bool {
        false
    }

    /// An identifier of the batch that [`RequestSource::next`] has just made.
    fn cookie(&self) -> u64 {
        0
    }

    /// The fate of request `index` of the batch with this `cookie`. Called once for each request of
    /// each batch, in any order, including requests that could not be written or were lost; but not
    /// for those in flight at the end of the phase.
    fn settled(&mut self, cookie: u64, index: usize, fate: Fate, now_ns: u64) {
        let _unused = (cookie, index, fate, now_ns);
    }

    /// Called before `next`. While there is nothing to send: the time (nanoseconds of the run's
    /// clock) at which to call again; `u64::MAX` if only [`RequestSource::settled`] can change
    /// that. All connections wait meanwhile. Any `settled` causes another call.
    fn paused_until(&mut self, now_ns: u64) -> Option<u64> {
        let _unused = now_ns;
        None
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A complete response.
    Answered {
        /// The status code.
        status: u16,
        /// `Retry-After` in seconds, if it is a number.
        retry_after_s: Option<u32>,
    },
    /// No response: the connection broke, the response was malformed, or the deadline passed.
    /// Whether the server performed the request is unknown.
    Lost,
}

/// Bytes to send, and the requests in them.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// One or more complete requests.
    pub bytes: &'a [u8],
    /// The requests in order; never empty.
    pub requests: &'a [Expected],
}

/// What is needed to parse and record the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The kind of the request.
    pub op: OpId,
    /// Whether it is a `HEAD`, whose response has no body.
    pub is_head: bool,
}

/// A response, for a script.
#[derive(Clone, Copy, Debug)]
pub struct ResponseView<'a> {
    /// The status code.
    pub status: u16,
    /// Names and values in the order of the response.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, without its framing.
    pub body: &'a [u8],
}
