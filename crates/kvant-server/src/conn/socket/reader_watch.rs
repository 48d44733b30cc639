//! Watches a reader while the kernel takes no more of its response.
//!
//! A full send buffer says little about the reader: the kernel takes more only when a large part of
//! the buffer was sent, which at 16 KiB/s takes minutes. The reader makes progress as long as it
//! acknowledges bytes.

use kvant_env::posix::unacknowledged_bytes;
use std::future::Future;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Checks of the send queue within the limit, and the longest time between two of them.
const CHECKS_PER_LIMIT: u32 = 4;
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The time since a reader last took a byte.
pub(super) struct ReaderWatch {
    idle_max: Duration,
    next_check: Pin<Box<Sleep>>,
    /// Bytes in the send queue at the last check. None are added while the kernel takes nothing.
    queued_bytes: Option<u64>,
    progressed_at: Instant,
}

impl ReaderWatch {
    pub(super) fn new(stream: &TcpStream, idle_max: Duration) -> ReaderWatch {
        ReaderWatch {
            idle_max,
            next_check: Box::pin(tokio::time::sleep(check_interval(idle_max))),
            queued_bytes: queued_bytes(stream),
            progressed_at: Instant::now(),
        }
    }

    /// Ready when the reader has taken nothing for too long.
    pub(super) fn poll_idle(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.next_check.as_mut().poll(cx));
            let now = Instant::now();
            let queued_bytes = queued_bytes(stream);
            if queued_bytes != self.queued_bytes {
                self.queued_bytes = queued_bytes;
                self.progressed_at = now;
            } else if now - self.progressed_at >= self.idle_max {
                return Poll::Ready(());
            }
            self.next_check.as_mut().reset(now + check_interval(self.idle_max));
        }
    }
}

fn check_interval(idle_max: Duration) -> Duration {
    (idle_max / CHECKS_PER_LIMIT).clamp(Duration::from_millis(1), CHECK_INTERVAL_MAX)
}

/// `None` where the system does not report it: then only bytes that it takes from the server are
/// progress.
pub(super) fn queued_bytes(stream: &TcpStream) -> Option<u64> {
    unacknowledged_bytes(stream.as_fd()).ok()
}
