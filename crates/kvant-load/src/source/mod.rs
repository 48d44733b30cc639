//! Where requests come from: one source a thread, asked for the next request at the moment when it
//! is sent.

pub mod fixed;

use crate::op::OpId;
use crate::target::Address;
use kvant_base::Result;
use std::time::Duration;

/// Makes requests. Each worker thread owns one.
pub trait RequestSource: Send {
    /// The next request, or pipelined batch of requests, for a connection to `targets[target]`.
    ///
    /// # Errors
    /// A script failed: the run ends with this error.
    fn next(&mut self, target: usize) -> Result<Batch<'_>>;

    /// Where this thread connects, whatever the addresses of its targets are (wrk's `thread.addr`);
    /// asked once, at the start.
    fn address(&self) -> Option<Address> {
        None
    }

    /// Whether [`RequestSource::observe`] wants to see answers; asked once, at the start.
    fn observes(&self) -> bool {
        false
    }

    /// An answer, complete. Called only when [`RequestSource::observes`].
    ///
    /// # Errors
    /// A script failed: the run ends with this error.
    fn observe(&mut self, response: &ResponseView<'_>) -> Result<()> {
        // Nothing looks at answers by default.
        let ResponseView { .. } = response;
        Ok(())
    }

    /// Whether [`RequestSource::delay`] has anything to say; asked once, at the start.
    fn delays(&self) -> bool {
        false
    }

    /// How long the connection that is about to send waits first (wrk's `delay()`).
    ///
    /// # Errors
    /// A script failed: the run ends with this error.
    fn delay(&mut self) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    /// Whether this thread is to stop sending for good (wrk's `thread:stop()`, or a workload that
    /// is done). A phase whose sources have all stopped ends when nothing is in flight any more.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether this source follows its requests, so that it can send some of them again; asked
    /// once, at the start. Only then are [`RequestSource::cookie`], [`RequestSource::settled`] and
    /// [`RequestSource::paused_until`] called.
    fn follows(&self) -> bool {
        false
    }

    /// Asked right after [`RequestSource::next`]: a number that names the batch which that made.
    fn cookie(&self) -> u64 {
        0
    }

    /// What became of request `index` of the batch called `cookie`. Told once for each request of
    /// each batch that `next` made, in whatever order: also for those that could not be written,
    /// and for those that were in flight when their connection broke or their deadline passed. Not
    /// told for what is in flight when the phase ends.
    fn settled(&mut self, cookie: u64, index: usize, fate: Fate, now_ns: u64) {
        // Nothing is sent again by default.
        let _unused = (cookie, index, fate, now_ns);
    }

    /// Asked before `next`: `Some` while there is nothing to send, with the time (nanoseconds of
    /// the run's clock) at which to ask again; `u64::MAX` when only a [`RequestSource::settled`]
    /// can change that. All connections wait meanwhile; ask again after any `settled`.
    fn paused_until(&mut self, now_ns: u64) -> Option<u64> {
        let _unused = now_ns;
        None
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// An answer came, whole.
    Answered {
        /// Its status.
        status: u16,
        /// Its `Retry-After` in seconds, where it has one that is a number.
        retry_after_s: Option<u32>,
    },
    /// No answer: the connection broke, the answer was no HTTP, or the deadline passed. Whether the
    /// server acted on it is unknown.
    Lost,
}

/// Bytes to send, and what is to come back.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// One or more complete requests.
    pub bytes: &'a [u8],
    /// The requests in order; never empty.
    pub requests: &'a [Expected],
}

/// A request that was sent, as far as its answer has to be understood and recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Which kind it is.
    pub op: OpId,
    /// A `HEAD`: its answer has no body whatever its headers say.
    pub is_head: bool,
}

/// An answer, for a script.
#[derive(Clone, Copy, Debug)]
pub struct ResponseView<'a> {
    /// The status code.
    pub status: u16,
    /// Names and values in the order of the answer.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, without its framing.
    pub body: &'a [u8],
}
