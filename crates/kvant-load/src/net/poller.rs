//! Waits for sockets and for time with one epoll instance.
//!
//! Invariants:
//! 1. A socket is registered once, edge-triggered, for all that can happen to it: no request costs
//!    a change of the registration. Whoever is told of an edge reads (or writes) until the kernel
//!    has no more.
//! 2. Closing a descriptor takes it out; tokens carry a generation, so that an event of an old
//!    socket is known as such.
//! 3. Waits end to the nanosecond that the kernel can do (timer slack 1 ns), not to the
//!    millisecond. That takes Linux 5.11.
//!
//! Threads: belongs to one; a [`Waker`] may be used from any.

use kvant_base::wait::{self, WaitKind};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Events taken by one look at the sockets. Few, so that the time until the last of them is handled
/// is short: what waits in between looks like latency of the server.
pub(crate) const EVENTS_PER_WAIT: usize = 32;
/// The token of the waker.
const WAKER_TOKEN: u64 = u64::MAX;

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// Something happened to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    /// The token under which it was added.
    pub(crate) token: u64,
    /// The peer sends no more, or the connection broke: what is left to read ends with that.
    pub(crate) is_ending: bool,
}

/// Ends a wait of the poller that it belongs to.
#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Only look.
    None,
    /// At most so many nanoseconds.
    Ns(u64),
}

impl Poller {
    /// An epoll instance, whose waits `waker` ends.
    pub(crate) fn new(waker: &Waker) -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &*waker.0,
            EventData::new_u64(WAKER_TOKEN),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// Lets waits of the calling thread end on time.
    pub(crate) fn sharpen_timers() {
        match rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            // Refused in some sandboxes: waits are then up to 50 us late, which shows as send lag.
            Ok(()) | Err(_) => {}
        }
    }

    /// Watches a socket.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    /// Waits; how many events there are. A signal ends the wait without events.
    pub(crate) fn wait(&mut self, patience: Patience) -> io::Result<usize> {
        let timeout = match patience {
            Patience::None => Timespec::default(),
            Patience::Ns(ns) => Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as i64,
            },
        };
        self.events.clear();
        let _waiting = (patience != Patience::None).then(|| wait::begin(WaitKind::Idle, "pacing"));
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            Some(&timeout),
        ) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// An event of the last wait; `None` for the waker's.
    #[inline]
    pub(crate) fn event(&self, event: usize) -> Option<Happened> {
        let Event { flags, data, .. } = self.events[event];
        let token = data.u64();
        let is_ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        (token != WAKER_TOKEN).then_some(Happened { token, is_ending })
    }
}

impl Waker {
    /// For a poller that is to be.
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the wait in progress, or the next one.
    pub(crate) fn wake(&self) {
        match rustix::io::write(&*self.0, &1_u64.to_ne_bytes()) {
            // Refused only when the counter is full, after 2^64 calls: an edge is pending then.
            Ok(_) | Err(_) => {}
        }
    }
}
