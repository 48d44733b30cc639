//! Opens connections: a bounded number at once, the target's other addresses when one fails, and a
//! back-off that doubles when all do.

use super::Worker;
use super::connection::ConnState;
use super::stage::Stage;
use crate::net::stream::{self, Stream};
use kvant_base::Result;
use rustix::fd::AsFd;
use std::io;

impl Worker {
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
        connection.state = ConnState::Opening;
        self.opening.push(&mut self.links, index);
        Ok(())
    }

    /// Handles an event of a connection that is being opened.
    pub(super) fn continue_opening(&mut self, index: usize) -> Result<()> {
        match self.connect_and_shake_hands(index) {
            Ok(true) => {
                self.opening.remove(&mut self.links, index);
                let now_ns = self.read_clock();
                let connection = &mut self.connections[index];
                connection.addresses_failed = 0;
                self.recorder.interval.connect.record_ns(now_ns - connection.opening_ns);
                return self.ready_to_send(index);
            }
            Ok(false) => {}
            Err(error) => self.open_failed(index, &error),
        }
        Ok(())
    }

    /// Connects, and continues the TLS handshake until it would block; whether the connection is
    /// open.
    fn connect_and_shake_hands(&mut self, index: usize) -> io::Result<bool> {
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

    /// Tries the next address, or backs off after the last one.
    pub(super) fn open_failed(&mut self, index: usize, error: &io::Error) {
        let connection = &mut self.connections[index];
        if connection.state == ConnState::Opening {
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
            // Other connections start with the next address.
            let preferred = &mut self.addresses[connection.target];
            if *preferred == failed {
                *preferred = connection.address;
            }
            self.to_open.push_back(index);
            return;
        }
        connection.addresses_failed = 0;
        connection.count_failure();
        // A unix socket reports a full backlog at once, where TCP would wait: not a failure yet.
        if error.kind() != io::ErrorKind::WouldBlock {
            self.recorder.interval.errors.connect += 1;
        }
        self.open_later(index);
    }

    /// Closes a connection, whose requests in flight are accounted for, and schedules its
    /// reopening.
    pub(super) fn close(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        match connection.state {
            ConnState::Closed => return,
            ConnState::Opening => self.opening.remove(&mut self.links, index),
            ConnState::Free => self.free.remove(&mut self.links, index),
            ConnState::Busy => self.busy.remove(&mut self.links, index),
            ConnState::Waiting => self.timers.cancel(index),
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
