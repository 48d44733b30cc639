//! Request bodies: values on their way in, and bodies that nobody wants.
//!
//! How long a body may take is bounded: no pause is longer than `--range-idle-max`, and all pauses
//! together are no longer than that and the time that the bytes so far take at
//! [`BYTES_PER_SECOND_MIN`].

use crate::answer::Reply;
use crate::config::ServerConfig;
use crate::connection::{DRAIN_BYTES_EXTRA, DRAIN_TIME_MAX};
use crate::counters;
use crate::memory::{Held, SMALL_BYTES};
use crate::problem::Problem;
use crate::selector::Selector;
use crate::service::Step;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Slower clients than this are waited for only as long as a single pause may last. A slow modem is
/// twice as fast.
const BYTES_PER_SECOND_MIN: u64 = 4 << 10;

/// Answers a request whose body is not wanted. The body is read and thrown away first, so that the
/// connection can go on; where that would take too much or too long, or where the client waits for
/// leave to send it, the connection ends with the answer.
pub(crate) fn refuse(
    config: &ServerConfig,
    body: Option<Incoming>,
    mut reply: Reply,
    problem: Problem,
) -> Step {
    let Some(body) = body.filter(|_| !problem.is_closing()) else {
        return Step::answer(problem.answer(&mut reply));
    };
    let discarding = discard(config, body, &reply, 0);
    Step::slow(async move {
        let problem = if discarding.await { problem } else { problem.closing() };
        problem.answer(&mut reply)
    })
}

/// Reads a body to its end and throws it away. False: its end is out of reach, the connection
/// cannot go on.
pub(crate) fn discard(
    config: &ServerConfig,
    mut body: Incoming,
    reply: &Reply,
    taken_bytes: u64,
) -> impl Future<Output = bool> + use<> {
    let allowance_bytes = (config.value_bytes_max + DRAIN_BYTES_EXTRA).saturating_sub(taken_bytes);
    let hopeless = reply.expects_continue() || body.size_hint().lower() > allowance_bytes;
    async move {
        if hopeless {
            return false;
        }
        let to_the_end = async {
            let mut discarded_bytes = 0;
            while let Some(frame) = next_frame(&mut body).await {
                let Ok(frame) = frame else { return false };
                discarded_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if discarded_bytes > allowance_bytes {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DRAIN_TIME_MAX, to_the_end).await.unwrap_or(false)
    }
}

/// The next part of a body.
pub(crate) async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}

/// A body that broke off or whose chunks are malformed.
pub(crate) fn broken_body() -> Problem {
    Problem::bad_head("nothing was written: the body ended early or its chunks are malformed")
}

/// A value with the memory that it holds.
pub(crate) struct Value {
    pub(crate) bytes: Bytes,
    pub(crate) _memory: Held,
}

/// A value that could not be read, and how much of it was.
pub(crate) struct Unread {
    pub(crate) problem: Problem,
    pub(crate) taken_bytes: u64,
}

/// Reads a value of up to `bytes_max` after its `first` part. What it needs is reserved before it
/// is read, waiting for memory with the body unread.
pub(crate) async fn read_value(
    selector: &Selector,
    reply: &mut Reply,
    body: &mut Incoming,
    first: Option<Bytes>,
    bytes_max: u64,
) -> Result<Value, Unread> {
    let shared = &selector.shared;
    let wait_max = shared.config.queue_wait_max;
    let first = first.unwrap_or_default();
    let known_bytes = body.size_hint().exact().map(|rest| rest + first.len() as u64);
    let start_bytes = known_bytes.unwrap_or(SMALL_BYTES).min(bytes_max);
    let Some(mut held) = shared.memory.hold(start_bytes, wait_max).await else {
        return Err(Unread { problem: no_memory(selector), taken_bytes: first.len() as u64 });
    };
    let mut value = Vec::with_capacity(start_bytes as usize);
    value.extend_from_slice(&first);
    reply.continue_sent();
    let pause_max = shared.config.range_idle_max;
    let mut paused = Duration::ZERO;
    loop {
        let taken_bytes = value.len() as u64;
        let unread = |problem| Err(Unread { problem, taken_bytes });
        let pauses_max =
            pause_max.saturating_add(Duration::from_secs(taken_bytes / BYTES_PER_SECOND_MIN));
        let asked = Instant::now();
        let frame_wait_max = pause_max.min(pauses_max.saturating_sub(paused));
        let frame = tokio::time::timeout(frame_wait_max, next_frame(body)).await;
        paused += asked.elapsed();
        let frame = match frame {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return unread(broken_body()),
            Ok(None) => {
                return Ok(Value { bytes: value.into(), _memory: held });
            }
            Err(_) => return unread(timed_out(selector)),
        };
        // Trailers say nothing about a value.
        let Ok(data) = frame.into_data() else { continue };
        let total_bytes = taken_bytes + data.len() as u64;
        if total_bytes > bytes_max {
            return unread(Problem::value_too_long(bytes_max));
        }
        if total_bytes > value.capacity() as u64 {
            let capacity_bytes = (2 * value.capacity() as u64).clamp(total_bytes, bytes_max);
            if !shared.memory.grow(&mut held, capacity_bytes, wait_max).await {
                return unread(no_memory(selector));
            }
            // Not more than is held.
            value.reserve_exact(capacity_bytes as usize - value.len());
        }
        value.extend_from_slice(&data);
    }
}

/// Counts and explains a refusal of a body that did not come in time.
pub(crate) fn timed_out(selector: &Selector) -> Problem {
    counters::add(&selector.counters.body_timeouts, 1);
    Problem::request_timeout()
}

/// Counts and explains a refusal for want of memory.
pub(crate) fn no_memory(selector: &Selector) -> Problem {
    counters::add(&selector.counters.memory_refusals, 1);
    Problem::no_memory()
}
