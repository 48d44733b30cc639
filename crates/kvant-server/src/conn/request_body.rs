//! Request bodies: values on their way in, and bodies that are discarded.
//!
//! How long a body may take is bounded: no pause is longer than `--range-idle-max`, and all pauses
//! together are no longer than that and the time that the bytes so far take at
//! [`BYTES_PER_SECOND_MIN`].

use super::context::{Call, ConnContext, RequestStep};
use crate::config::ServerConfig;
use crate::http::{Problem, Reply};
use crate::memory::{Held, SMALL_BYTES};
use crate::work::Failure;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes beyond the longest value that are read and discarded so that a client sees why it was
/// refused.
pub(super) const DRAIN_BYTES_EXTRA: u64 = 16 << 20;
/// How long a client may go on sending after a refusal.
pub(super) const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// Slower clients than this are waited for only as long as a single pause may last. A slow modem is
/// twice as fast.
const BYTES_PER_SECOND_MIN: u64 = 4 << 10;

/// How the discarding of a body ended.
#[derive(PartialEq)]
pub(super) enum Discarded {
    /// At the end of the body.
    Whole,
    /// Before it: the rest would take too much or too long.
    Partly,
    /// The body broke off, or its chunks are malformed.
    Broken,
}

/// Refuses a request. Its body is discarded first, so that the connection can go on; where that
/// would take too much or too long, or where the client waits for `100 Continue`, the connection
/// ends with the response.
pub(crate) fn refuse(
    config: &ServerConfig,
    body: Option<Incoming>,
    mut reply: Reply,
    problem: Problem,
) -> RequestStep {
    let Some(body) = body.filter(|_| !problem.is_closing()) else {
        return RequestStep::ready(problem.respond(&mut reply));
    };
    let discarding = discard(config, body, &reply, 0);
    RequestStep::later(async move {
        let problem = match discarding.await {
            Discarded::Whole => problem,
            Discarded::Partly | Discarded::Broken => problem.closing(),
        };
        problem.respond(&mut reply)
    })
}

/// Reads a body to its end and discards it. If it does not get there, the connection cannot go on.
pub(super) fn discard(
    config: &ServerConfig,
    mut body: Incoming,
    reply: &Reply,
    taken_bytes: u64,
) -> impl Future<Output = Discarded> + use<> {
    let allowance_bytes = (config.value_bytes_max + DRAIN_BYTES_EXTRA).saturating_sub(taken_bytes);
    let gives_up = reply.expects_continue() || body.size_hint().lower() > allowance_bytes;
    async move {
        if gives_up {
            return Discarded::Partly;
        }
        let to_the_end = async {
            let mut discarded_bytes = 0;
            while let Some(frame) = next_frame(&mut body).await {
                let Ok(frame) = frame else { return Discarded::Broken };
                discarded_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if discarded_bytes > allowance_bytes {
                    return Discarded::Partly;
                }
            }
            Discarded::Whole
        };
        tokio::time::timeout(DRAIN_TIME_MAX, to_the_end).await.unwrap_or(Discarded::Partly)
    }
}

async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}

/// A body that broke off or whose chunks are malformed.
pub(super) fn broken_body() -> Problem {
    Problem::bad_head("nothing was done: the body ended early or its chunks are malformed")
}

/// A value, with the memory that it holds unless it is short.
pub(crate) struct Value {
    pub(crate) bytes: Bytes,
    _memory: Option<Held>,
}

/// A value that could not be read, and how much of it was.
struct Unread {
    problem: Problem,
    taken_bytes: u64,
}

/// The most bytes of a body, and the problem of a longer one.
#[derive(Clone, Copy)]
pub(crate) struct BodyMax {
    pub(crate) bytes: u64,
    pub(crate) problem: fn(u64) -> Problem,
}

/// Reads a body of up to `max`; or discards it and returns what is wrong with it.
pub(crate) async fn read(
    call: &Call,
    reply: &mut Reply,
    mut body: Incoming,
    max: BodyMax,
) -> Result<Value, Problem> {
    let Unread { problem, taken_bytes } = match try_read(call, reply, &mut body, max).await {
        Ok(value) => {
            call.socket.has_body.set(false);
            return Ok(value);
        }
        Err(unread) => unread,
    };
    let can_go_on = !problem.is_closing()
        && discard(&call.cx.config, body, reply, taken_bytes).await == Discarded::Whole;
    Err(if can_go_on { problem } else { problem.closing() })
}

async fn try_read(
    call: &Call,
    reply: &mut Reply,
    body: &mut Incoming,
    max: BodyMax,
) -> Result<Value, Unread> {
    let first = match body.size_hint().exact() {
        Some(bytes) if bytes > max.bytes => {
            return Err(Unread { problem: (max.problem)(max.bytes), taken_bytes: 0 });
        }
        Some(..=SMALL_BYTES) => {
            let first = read_first(call, body).await?;
            reply.mark_continue_sent();
            if body.is_end_stream() {
                return Ok(Value { bytes: first, _memory: None });
            }
            first
        }
        _ => Bytes::new(),
    };
    read_rest(&call.cx, reply, body, &first, max).await
}

/// Reads the first part of a short body, mostly all of it, which came with the head. No timer runs
/// for it: the sweep bounds the wait.
async fn read_first(call: &Call, body: &mut Incoming) -> Result<Bytes, Unread> {
    let progress = &call.socket.progress;
    let frame = poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Pending if progress.body_is_due() => Poll::Ready(Err(timed_out(&call.cx))),
        Poll::Pending => {
            progress.await_body();
            Poll::Pending
        }
        Poll::Ready(frame) => {
            progress.begin_request();
            Poll::Ready(frame.transpose().map_err(|_| broken_body()))
        }
    });
    match frame.await {
        // Trailers say nothing about a value.
        Ok(frame) => Ok(frame.and_then(|frame| frame.into_data().ok()).unwrap_or_default()),
        Err(problem) => Err(Unread { problem, taken_bytes: 0 }),
    }
}

/// Reads a value after its `first` part. Its memory is reserved before it is read: a body for which
/// there is none waits unread.
async fn read_rest(
    cx: &ConnContext,
    reply: &mut Reply,
    body: &mut Incoming,
    first: &[u8],
    max: BodyMax,
) -> Result<Value, Unread> {
    let (wait_max, pause_max) = (cx.config.queue_wait_max, cx.config.range_idle_max);
    let known_bytes = body.size_hint().exact().map(|rest| rest + first.len() as u64);
    let start_bytes = known_bytes.unwrap_or(SMALL_BYTES).min(max.bytes);
    let Some(mut held) = cx.memory.hold(start_bytes, wait_max).await else {
        let problem = cx.storage.explain(&Failure::NoMemory);
        return Err(Unread { problem, taken_bytes: first.len() as u64 });
    };
    let mut value = Vec::with_capacity(start_bytes as usize);
    value.extend_from_slice(first);
    reply.mark_continue_sent();
    let mut paused = Duration::ZERO;
    loop {
        let taken_bytes = value.len() as u64;
        let unread = |problem| Err(Unread { problem, taken_bytes });
        let pauses_max =
            pause_max.saturating_add(Duration::from_secs(taken_bytes / BYTES_PER_SECOND_MIN));
        let began = Instant::now();
        let frame_wait_max = pause_max.min(pauses_max.saturating_sub(paused));
        let frame = tokio::time::timeout(frame_wait_max, next_frame(body)).await;
        paused += began.elapsed();
        let frame = match frame {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return unread(broken_body()),
            Ok(None) => return Ok(Value { bytes: value.into(), _memory: Some(held) }),
            Err(_) => return unread(timed_out(cx)),
        };
        // Trailers say nothing about a value.
        let Ok(data) = frame.into_data() else { continue };
        let total_bytes = taken_bytes + data.len() as u64;
        if total_bytes > max.bytes {
            return unread((max.problem)(max.bytes));
        }
        if total_bytes > value.capacity() as u64 {
            let capacity_bytes = (2 * value.capacity() as u64).clamp(total_bytes, max.bytes);
            if !cx.memory.grow(&mut held, capacity_bytes, wait_max).await {
                return unread(cx.storage.explain(&Failure::NoMemory));
            }
            // Not more than is held.
            value.reserve_exact(capacity_bytes as usize - value.len());
        }
        value.extend_from_slice(&data);
    }
}

/// Counts and explains the refusal of a body that did not come in time.
fn timed_out(cx: &ConnContext) -> Problem {
    cx.meter.counters.body_timeouts.add(1);
    Problem::request_timeout()
}
