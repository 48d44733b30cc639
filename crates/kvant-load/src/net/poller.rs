//! Waits for sockets and for time with one epoll instance.
//!
//! Invariants:
//! 1. A socket is registered once, edge-triggered, for all events: no request changes the
//!    registration. The receiver of an event reads (or writes) until the kernel would block.
//! 2. Closing a descriptor removes it. Tokens carry a generation, which reveals events of a closed
//!    socket.
//! 3. Waits have a resolution of nanoseconds (timer slack 1 ns), not milliseconds. This requires
//!    Linux 5.11.
//!
//! Threads: a poller belongs to one; a [`Waker`] may be used from any.

use kvant_base::wait::{self, WaitKind};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Events of one wait. The last of them waits until the others are handled, which adds to the
/// measured latency: so there are few.
pub(crate) const EVENTS_PER_WAIT: usize = 32;
const WAKER_TOKEN: u64 = u64::MAX;

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketEvent {
    pub(crate) token: u64,
    /// The peer sends nothing after what the socket holds now.
    pub(crate) is_ending: bool,
}

#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Poller {
    pub(crate) fn new(waker: &Waker) -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKER_TOKEN), flags)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// Lets waits of the calling thread end on time.
    pub(crate) fn sharpen_timers() {
        match rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            // Some sandboxes refuse it: waits are then up to 50 us late, which shows as send lag.
            Ok(()) | Err(_) => {}
        }
    }

    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    /// Waits for events, at most `timeout_ns`. Returns their number, 0 after a signal.
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let timeout = Timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as i64,
            tv_nsec: (timeout_ns % 1_000_000_000) as i64,
        };
        self.events.clear();
        let _waiting = (timeout_ns > 0).then(|| wait::begin(WaitKind::Idle, "pacing"));
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, buffer, Some(&timeout)) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// An event of the last wait; `None` if it is the waker's.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> Option<SocketEvent> {
        let epoll::Event { flags, data, .. } = self.events[index];
        let token = data.u64();
        let is_ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        (token != WAKER_TOKEN).then_some(SocketEvent { token, is_ending })
    }
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the current wait, or the next one.
    pub(crate) fn wake(&self) {
        match rustix::io::write(&*self.0, &1_u64.to_ne_bytes()) {
            // It fails only when the counter is full, and then an event is pending.
            Ok(_) | Err(_) => {}
        }
    }
}
