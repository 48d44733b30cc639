//! Opens connections, and opens them again: a bounded number at once, other addresses when one
//! cannot be reached, and a back-off that doubles when none can.

use super::Worker;
use super::connection::State;
use super::phase::Stage;
use crate::net::stream::{self, Stream};
use kvant_base::Result;
use rustix::fd::AsFd;
use std::io;

/// Connections being opened at once, over all threads: fewer than a listener's queue commonly
/// holds.
pub(super) const OPENING_MAX: usize = 64;

impl Worker {
    /// Opens connections whose turn it is.
    pub(super) fn open_some(&mut self) {
        if self.config.wrk2_exact && self.run.stage != Stage::Running {
            return;
        }
        while self.opening.count() < self.opening_max {
            let Some(index) = self.to_open.pop_front() else {
                return;
            };
            if let Err(error) = self.open(index) {
                self.open_failed(index, &error);
            }
        }
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        let now_ns = self.read_clock();
        let connection = &mut self.connections[index];
        if connection.addresses_failed == 0 {
            connection.address = self.addresses[connection.target];
        }
        let address = match &self.address {
            Some(address) => address,
            None => &self.config.targets[connection.target].addresses[connection.address],
        };
        connection.opening_ns = now_ns;
        let socket = stream::connect(address)?;
        self.poller.add(&socket, connection.token(index))?;
        connection.stream = Some(Stream::Plain(socket));
        connection.state = State::Opening;
        self.opening.push(&mut self.links, index);
        Ok(())
    }

    /// Something happened to a connection that is being opened.
    pub(super) fn go_on_opening(&mut self, index: usize) -> Result<()> {
        match self.is_open(index) {
            Ok(true) => self.opened(index),
            Ok(false) => Ok(()),
            Err(error) => {
                self.open_failed(index, &error);
                Ok(())
            }
        }
    }

    /// Connects, and shakes hands, as far as that goes now; whether all is done.
    fn is_open(&mut self, index: usize) -> io::Result<bool> {
        let connection = &mut self.connections[index];
        let stream =
            connection.stream.take().expect("a connection that is being opened has a socket");
        let mut tls = match (stream, &self.tls) {
            (Stream::Tls(tls), _) => tls,
            (Stream::Plain(socket), connector) => {
                stream::connect_result(socket.as_fd())?;
                let target = &self.config.targets[connection.target];
                match connector {
                    Some(connector) if target.is_tls => {
                        let tls = connector.start(socket, &target.host);
                        Box::new(tls.map_err(io::Error::other)?)
                    }
                    _ => {
                        connection.stream = Some(Stream::Plain(socket));
                        return Ok(true);
                    }
                }
            }
        };
        let is_done = tls.handshake()?;
        connection.stream = Some(Stream::Tls(tls));
        Ok(is_done)
    }

    fn opened(&mut self, index: usize) -> Result<()> {
        self.opening.remove(&mut self.links, index);
        let now_ns = self.read_clock();
        let connection = &mut self.connections[index];
        connection.addresses_failed = 0;
        self.recorder.interval.connect.record_ns(now_ns - connection.opening_ns);
        self.ready_to_send(index)
    }

    /// An address could not be connected to.
    pub(super) fn open_failed(&mut self, index: usize, error: &io::Error) {
        let connection = &mut self.connections[index];
        if connection.state == State::Opening {
            self.opening.remove(&mut self.links, index);
        }
        connection.drop_socket();
        let address_count = match self.address {
            Some(_) => 1,
            None => self.config.targets[connection.target].addresses.len(),
        };
        connection.addresses_failed += 1;
        if connection.addresses_failed < address_count {
            let failed = connection.address;
            connection.address = (failed + 1) % address_count;
            // The others need not find out for themselves.
            let preferred = &mut self.addresses[connection.target];
            if *preferred == failed {
                *preferred = connection.address;
            }
            self.to_open.push_back(index);
            return;
        }
        connection.addresses_failed = 0;
        connection.count_failure();
        // A unix socket does not wait in the listener's queue: that it is full is no failure yet.
        if error.kind() != io::ErrorKind::WouldBlock {
            self.recorder.interval.errors.connect += 1;
        }
        self.open_later(index);
    }

    /// Closes a connection and sees to it that it is opened again. Whatever was in flight has been
    /// accounted for.
    pub(super) fn close(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        match connection.state {
            State::Closed => return,
            State::Opening => self.opening.remove(&mut self.links, index),
            State::Free => self.free.remove(&mut self.links, index),
            State::Busy => self.busy.remove(&mut self.links, index),
            State::Waiting => self.timers.cancel(index),
        }
        connection.drop_socket();
        connection.count_failure();
        self.open_later(index);
    }

    fn open_later(&mut self, index: usize) {
        match self.connections[index].back_off_ns() {
            0 => self.to_open.push_back(index),
            back_off_ns => self.timers.set(index, self.now_ns + back_off_ns),
        }
    }
}
