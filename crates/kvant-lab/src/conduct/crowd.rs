//! A crowd of idle connections: each sends one request and is silent afterwards.
//!
//! Threads: one opens the connections, reads the responses and counts the connections that the
//! server closes.

use crate::plan::{Requests, Workload};
use kvant_base::{Error, Result};
use kvant_load::record::Interval;
use kvant_load::request::{HeaderBlock, append_request};
use kvant_load::{Address, Errors, Outcome, Target, load};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for a connection, and for the responses of all.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Between two looks at whether the crowd is to leave.
const LOOK_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
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

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Connections that could not be opened.
    refused: u64,
    /// Connections with a response.
    answered: u64,
    /// Connections that the server closed before the end.
    lost: u64,
    read_bytes: u64,
}

impl Crowd {
    /// Opens the connections of `workload` and returns when each has its response, or none comes
    /// any more.
    ///
    /// # Errors
    /// `Io` if there are not enough resources; `Invalid` for a target that speaks TLS.
    pub(super) fn start(workload: &Workload, target: &Target) -> Result<Crowd> {
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
        let mut members = Members { epoll, streams: Vec::new(), counts: Counts::default() };
        for _ in 0..workload.connection_count {
            members.open(*address, &request);
        }
        members.wait_for_responses();
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
                planned: self.planned,
                sent: self.planned - counts.refused,
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
    /// By number; `None` once lost. The flag says whether it has had its response.
    streams: Vec<Option<(TcpStream, bool)>>,
    counts: Counts,
}

impl Members {
    fn open(&mut self, address: std::net::SocketAddr, request: &[u8]) {
        let number = self.streams.len() as u64;
        let open = || -> io::Result<TcpStream> {
            let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX)?;
            stream.write_all(request)?;
            stream.set_nonblocking(true)?;
            let data = EventData::new_u64(number);
            epoll::add(&self.epoll, &stream, data, EventFlags::IN | EventFlags::RDHUP)?;
            Ok(stream)
        };
        match open() {
            Ok(stream) => self.streams.push(Some((stream, false))),
            Err(_) => {
                self.counts.refused += 1;
                self.streams.push(None);
            }
        }
    }

    fn wait_for_responses(&mut self) {
        let until = Instant::now() + WAIT_MAX;
        let is_waiting = |counts: &Counts, all: usize| {
            counts.answered + counts.lost + counts.refused < all as u64
        };
        while is_waiting(&self.counts, self.streams.len()) && Instant::now() < until {
            if self.handle_events().is_err() {
                return;
            }
        }
    }

    fn watch(mut self, is_over: &AtomicBool) -> Counts {
        while !is_over.load(Ordering::Relaxed) {
            if self.handle_events().is_err() {
                break;
            }
        }
        self.counts
    }

    fn handle_events(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&LOOK_PERIOD),
        ) {
            Err(error) if error == rustix::io::Errno::INTR => return Ok(()),
            result => result?,
        };
        for Event { data, .. } in events {
            self.read(data.u64() as usize);
        }
        Ok(())
    }

    /// Reads what there is. A connection whose end has come is lost.
    fn read(&mut self, number: usize) {
        let Some(Some((stream, has_response))) = self.streams.get_mut(number) else { return };
        let mut buffer = [0; 4096];
        let is_lost = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => {
                    self.counts.read_bytes += count as u64;
                    if !std::mem::replace(has_response, true) {
                        self.counts.answered += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break true,
            }
        };
        if is_lost {
            self.counts.lost += 1;
            self.streams[number] = None;
        }
    }
}
