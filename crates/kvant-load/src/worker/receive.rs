//! Reads responses.
//!
//! All sockets are read into one buffer, in which responses are parsed. The parser of a connection
//! keeps a partial head.

use super::Worker;
use super::connection::{ConnState, parse_token};
use super::pace::Pace;
use super::send::FailureKind;
use crate::http::Response;
use crate::net::poller::SocketEvent;
use crate::source::{Fate, ResponseView};
use kvant_base::Result;
use std::io;

/// Full buffers read from one socket before other sockets are read.
const READS_PER_TURN: usize = 16;

impl Worker {
    #[inline]
    pub(super) fn handle_event(&mut self, event: SocketEvent) -> Result<()> {
        let (index, generation) = parse_token(event.token);
        let connection = &mut self.connections[index];
        if connection.generation != generation {
            return Ok(());
        }
        connection.is_ending |= event.is_ending;
        match connection.state {
            ConnState::Closed => return Ok(()),
            ConnState::Opening => {
                self.continue_opening(index)?;
                if matches!(self.connections[index].state, ConnState::Closed | ConnState::Opening) {
                    return Ok(());
                }
                // The server may have closed it already: no other event would say so.
            }
            ConnState::Waiting | ConnState::Free | ConnState::Busy => self.continue_writing(index),
        }
        self.receive(index)
    }

    /// Continues to read sockets that had more than [`READS_PER_TURN`] buffers.
    pub(super) fn receive_unread(&mut self) -> Result<()> {
        for _ in 0..self.unread.len() {
            if let Some(index) = self.unread.pop_front()
                && !matches!(self.connections[index].state, ConnState::Closed | ConnState::Opening)
            {
                self.receive(index)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        for _ in 0..READS_PER_TURN {
            let connection = &mut self.connections[index];
            let Some(stream) = &mut connection.stream else {
                return Ok(());
            };
            match stream.read(&mut self.buffer) {
                Ok(0) => {
                    self.read_clock();
                    return self.end_of_stream(index);
                }
                Ok(count) => {
                    let generation = connection.generation;
                    // A short read drains the socket, but for the end of the stream.
                    let is_drained = count < self.buffer.len()
                        && stream.ends_with_short_read()
                        && !connection.is_ending;
                    self.read_clock();
                    self.cross_boundaries();
                    if self.run.is_measuring {
                        self.recorder.interval.read_bytes += count as u64;
                    }
                    self.parse_received(index, count)?;
                    if is_drained || self.connections[index].generation != generation {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    self.read_clock();
                    return self.lose_or_close(index);
                }
            }
        }
        self.unread.push_back(index);
        Ok(())
    }

    #[inline]
    fn parse_received(&mut self, index: usize, count: usize) -> Result<()> {
        let mut at = 0;
        while at < count {
            let connection = &mut self.connections[index];
            let flight = &connection.flight;
            let Some(expected) = flight.expected.get(flight.completed) else {
                // No request is in flight: the server closes with a 408, or is out of step.
                self.close(index);
                return Ok(());
            };
            let collector = connection.collector.as_deref_mut();
            let input = &self.buffer[at..count];
            let Ok(parsed) = connection.parser.parse(input, expected.is_head, collector) else {
                return self.lose(index, FailureKind::Read);
            };
            at += parsed.consumed_bytes;
            let Some(response) = parsed.response else {
                return Ok(());
            };
            if !self.complete(index, response, at < count)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Handles the response to a request. `has_more` says whether more bytes have arrived after it.
    /// Returns whether they are to be parsed.
    #[inline]
    fn complete(&mut self, index: usize, response: Response, has_more: bool) -> Result<bool> {
        let connection = &mut self.connections[index];
        connection.has_response = true;
        let flight = &mut connection.flight;
        let request = flight.completed;
        let expected = flight.expected[request];
        flight.completed += 1;
        let is_last = flight.completed == flight.expected.len();
        let is_current = flight.is_current;
        if let (Pace::Private(paces), true) = (&mut self.run.pace, is_current) {
            paces[index].complete(1);
        }
        if flight.is_recorded {
            let is_timed = is_last || !self.config.batch_latency;
            self.recorder.response(flight, expected, response.status, self.now_ns, is_timed);
        }
        if connection.collector.is_some() && is_current {
            self.show_to_source(index, request, response.status)?;
            self.is_source_stopped();
        }
        if !is_last && response.keeps_alive {
            return Ok(true);
        }
        let connection = &self.connections[index];
        if !is_last {
            self.lose(index, FailureKind::Read)?;
        } else if has_more
            || !response.keeps_alive
            || connection.is_ending
            || !connection.unwritten.is_empty()
        {
            // The connection ends, or the server is out of step.
            self.close(index);
        } else {
            self.busy.remove(&mut self.links, index);
            self.ready_to_send(index)?;
            self.dispatch(1)?;
        }
        Ok(false)
    }

    fn show_to_source(&mut self, index: usize, request: usize, status: u16) -> Result<()> {
        let connection = &self.connections[index];
        let Some(collector) = &connection.collector else {
            return Ok(());
        };
        let cookie = connection.flight.cookie;
        let call = self.show_calls.begin(&*self.clock);
        let now_ns = self.now_ns;
        let (source, observes, follows) =
            (&mut self.source, self.source_observes, self.source_follows);
        collector.with_view(status, |view| {
            if follows {
                let fate = Fate::Answered { status, retry_after_s: retry_after_s(view) };
                source.settled(cookie, request, fate, now_ns);
            }
            if observes { source.observe(view) } else { Ok(()) }
        })?;
        if let Some(call) = call {
            self.recorder.end_source_call(call, self.clock.monotonic_ns());
        }
        if follows {
            self.run.paused_until_ns = self.run.paused_until_ns.min(now_ns);
        }
        Ok(())
    }

    /// The end of the stream completes a response without a length.
    fn end_of_stream(&mut self, index: usize) -> Result<()> {
        self.cross_boundaries();
        let connection = &mut self.connections[index];
        if connection.state == ConnState::Busy
            && let Ok(Some(response)) = connection.parser.end()
        {
            let response = Response { keeps_alive: false, ..response };
            return self.complete(index, response, false).map(drop);
        }
        self.lose_or_close(index)
    }

    fn lose_or_close(&mut self, index: usize) -> Result<()> {
        if self.connections[index].state == ConnState::Busy {
            return self.lose(index, FailureKind::Read);
        }
        self.close(index);
        Ok(())
    }
}

/// `Retry-After`, if it is a number of seconds.
fn retry_after_s(view: &ResponseView<'_>) -> Option<u32> {
    let (_, value) =
        view.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    str::from_utf8(value).ok()?.trim().parse().ok()
}
