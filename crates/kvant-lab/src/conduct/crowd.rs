//! A crowd of idle connections: each sends one request and is silent afterwards. Slow ones among
//! them then send an endless head, a byte per second, and are opened again when the server closes
//! them.
//!
//! Invariant: opening the connections ends by [`OPEN_MAX`], and soon after the run is to end.
//!
//! Threads: the caller's opens the connections. One reads the responses, sends the heads and counts
//! the connections that the server closes.

use super::stop::Stop;
use crate::plan::{Beside, Requests};
use kvant_base::{Error, Result};
use kvant_load::record::Interval;
use kvant_load::request::{HeaderBlock, append_request};
use kvant_load::{Address, Errors, Outcome, Target, load};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait until all connections are open.
const OPEN_MAX: Duration = Duration::from_secs(60);
/// Longest wait for one of them: a run that is to end waits for it.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Longest wait for the responses after that.
const RESPONSES_MAX: Duration = Duration::from_secs(10);
/// Between two looks at whether the crowd is to leave, and at what it is to send: short, so that
/// the bytes of heads come one by one.
const LOOK_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const SLOW_LOOK_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// A head that never ends: bytes of the last field follow.
const SLOW_HEAD: &[u8] = b"GET /v0/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
/// Connections of the load beside the crowd.
const OTHERS_MAX: usize = 4_096;
/// Events of one wait.
const EVENTS_MAX: usize = 256;

/// Open, silent connections.
pub(super) struct Crowd {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
    planned: u64,
    start: Instant,
}

/// A connection of the crowd.
#[derive(Debug)]
struct Member {
    stream: TcpStream,
    has_response: bool,
    /// Bytes of its endless head.
    sent_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Connections that could not be opened.
    refused: u64,
    /// Connections with a response.
    answered: u64,
    /// Connections that the server closed before the end.
    lost: u64,
    /// Slow ones among them that were to be opened again.
    reopened: u64,
    read_bytes: u64,
}

impl Crowd {
    /// Opens the connections of `planned` and returns when each has its response, or none comes
    /// any more, or the run is to end. Connections that were not opened count as refused.
    ///
    /// # Errors
    /// `Io` if there are not enough resources; `Invalid` for a target that speaks TLS.
    pub(super) fn start(planned: &Beside, target: &Target, stop: &Stop) -> Result<Crowd> {
        let workload = &planned.workload;
        let Some(Address::Tcp(address)) = target.addresses.first().filter(|_| !target.is_tls)
        else {
            return Err(Error::invalid("an idle crowd needs a TCP address without TLS"));
        };
        let (method, path) = match &workload.requests {
            Requests::Fixed { method, path, .. } => (method.clone(), path.clone()),
            _ => ("GET".to_owned(), "/v0/status".to_owned()),
        };
        load::raise_limit(workload.connection_count + OTHERS_MAX, 1)?;
        let mut request = Vec::new();
        append_request(&mut request, &method, &path, &HeaderBlock::new(target, &[])?, None);
        let failed = |error: io::Error| Error::io("open", Path::new("an idle crowd"), error);
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let mut members = Members {
            epoll,
            address: *address,
            request,
            slow_head_count: planned.slow_head_count.min(workload.connection_count),
            members: Vec::new(),
            counts: Counts::default(),
        };
        members.open_all(workload.connection_count, stop);
        members.wait_for_responses(stop);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("lab-crowd".to_owned())
            .spawn(move || members.watch(&over))
            .map_err(failed)?;
        let planned = workload.connection_count as u64;
        Ok(Crowd { is_over, thread: Some(thread), planned, start: Instant::now() })
    }

    /// Closes the connections. Connections that the server closed before count as read errors.
    pub(super) fn finish(mut self) -> Outcome {
        let counts = self.leave();
        Outcome {
            measured_ns: self.start.elapsed().as_nanos().try_into().unwrap_or(u64::MAX),
            total: Interval {
                planned: self.planned + counts.reopened,
                sent: self.planned + counts.reopened - counts.refused,
                completed: counts.answered,
                read_bytes: counts.read_bytes,
                errors: Errors { connect: counts.refused, read: counts.lost, ..Errors::default() },
                ..Interval::default()
            },
            ..Outcome::default()
        }
    }

    fn leave(&mut self) -> Counts {
        self.is_over.store(true, Ordering::Relaxed);
        let counts = self.thread.take().map(JoinHandle::join);
        // A panic has been reported.
        counts.and_then(std::result::Result::ok).unwrap_or_default()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.leave();
    }
}

struct Members {
    epoll: OwnedFd,
    address: SocketAddr,
    request: Vec<u8>,
    /// The first ones send heads.
    slow_head_count: usize,
    /// By number; `None` once lost.
    members: Vec<Option<Member>>,
    counts: Counts,
}

impl Members {
    fn open_all(&mut self, count: usize, stop: &Stop) {
        let until = Instant::now() + OPEN_MAX;
        for number in 0..count {
            let is_over = stop.is_requested() || Instant::now() >= until;
            let member = if is_over { None } else { self.open(number).ok() };
            self.counts.refused += u64::from(member.is_none());
            self.members.push(member);
        }
    }

    fn open(&self, number: usize) -> io::Result<Member> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_nodelay(true)?;
        stream.write_all(&self.request)?;
        stream.set_nonblocking(true)?;
        let data = EventData::new_u64(number as u64);
        epoll::add(&self.epoll, &stream, data, EventFlags::IN | EventFlags::RDHUP)?;
        Ok(Member { stream, has_response: false, sent_bytes: 0 })
    }

    fn wait_for_responses(&mut self, stop: &Stop) {
        let until = Instant::now() + RESPONSES_MAX;
        let is_waiting = |counts: &Counts, all: usize| {
            counts.answered + counts.lost + counts.refused < all as u64
        };
        while is_waiting(&self.counts, self.members.len())
            && Instant::now() < until
            && !stop.is_requested()
        {
            if self.handle_events().is_err() {
                return;
            }
        }
    }

    fn watch(mut self, is_over: &AtomicBool) -> Counts {
        let start = Instant::now();
        // Bytes of heads sent so far by all together.
        let mut turn = 0;
        while !is_over.load(Ordering::Relaxed) {
            if self.handle_events().is_err() {
                break;
            }
            // Each slow one has its turn once a second.
            let due = (start.elapsed().as_secs_f64() * self.slow_head_count as f64) as usize;
            // After a pause, a turn is left out.
            turn = turn.max(due.saturating_sub(self.slow_head_count));
            while turn < due {
                self.send_of_head(turn % self.slow_head_count);
                turn += 1;
            }
        }
        self.counts
    }

    /// Sends a byte of an endless head.
    fn send_of_head(&mut self, number: usize) {
        let Some(Some(member)) = self.members.get_mut(number) else { return };
        if member.has_response {
            let byte = SLOW_HEAD.get(member.sent_bytes).copied().unwrap_or(b'x');
            // A connection that was closed is ready to be read.
            member.sent_bytes += member.stream.write(&[byte]).unwrap_or(0);
        }
    }

    fn handle_events(&mut self) -> io::Result<()> {
        let period = if self.slow_head_count > 0 { &SLOW_LOOK_PERIOD } else { &LOOK_PERIOD };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(period)) {
            Err(error) if error == rustix::io::Errno::INTR => return Ok(()),
            result => result?,
        };
        for Event { data, .. } in events {
            self.read(data.u64() as usize);
        }
        Ok(())
    }

    /// Reads what there is. A connection whose end has come is lost; a slow one is opened again.
    fn read(&mut self, number: usize) {
        let Some(Some(member)) = self.members.get_mut(number) else { return };
        let mut buffer = [0; 4096];
        let is_lost = loop {
            match member.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => {
                    self.counts.read_bytes += count as u64;
                    if !std::mem::replace(&mut member.has_response, true) {
                        self.counts.answered += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break true,
            }
        };
        if !is_lost {
            return;
        }
        self.counts.lost += 1;
        // A slow one whose first request was refused would be refused again at once.
        let is_opened_again = number < self.slow_head_count && member.sent_bytes > 0;
        // Closes it first.
        self.members[number] = None;
        if is_opened_again {
            self.counts.reopened += 1;
            let member = self.open(number).ok();
            self.counts.refused += u64::from(member.is_none());
            self.members[number] = member;
        }
    }
}

#[cfg(test)]
mod tests;
