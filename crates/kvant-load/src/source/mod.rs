//! Where requests come from: one source a thread, asked for the next request at the moment when it is sent.

pub mod fixed;

use crate::op::OpId;
use kvant_base::Result;
use std::time::Duration;

/// Makes requests. Each worker thread owns one.
pub trait RequestSource: Send {
    /// The next request, or pipelined batch of requests, for a connection to `targets[target]`.
    ///
    /// # Errors
    /// A script failed: the run ends with this error.
    fn next(&mut self, target: usize) -> Result<Batch<'_>>;

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

    /// Whether this thread is to stop sending for good (wrk's `thread:stop()`, or a workload that is done).
    fn is_stopped(&self) -> bool {
        false
    }
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
