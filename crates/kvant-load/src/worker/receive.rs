//! Reads answers.
//!
//! All sockets are read into one buffer, in which answers are parsed; only the beginning of a head
//! that arrives in pieces is kept, by the parser of its connection.

use super::Worker;
use super::connection::{State, of_token};
use super::pace::Pace;
use super::recorder::{SOURCE_SAMPLE, thread_cpu_ns};
use super::send::Loss;
use crate::http::Response;
use crate::net::poller::Happened;
use crate::source::{Fate, ResponseView};
use kvant_base::Result;
use std::io;

/// Full buffers read from one socket before the others have their turn.
const READS_PER_TURN: usize = 16;

impl Worker {
    /// Something happened to a socket.
    #[inline]
    pub(super) fn handle(&mut self, happened: Happened) -> Result<()> {
        let (index, generation) = of_token(happened.token);
        let connection = &mut self.connections[index];
        if connection.generation != generation {
            return Ok(());
        }
        match connection.state {
            State::Closed => Ok(()),
            State::Opening => self.go_on_opening(index),
            State::Waiting | State::Free | State::Busy => {
                connection.is_ending |= happened.is_ending;
                self.write_on(index);
                self.receive(index)
            }
        }
    }

    /// Reads on where a turn ended.
    pub(super) fn receive_more(&mut self, index: usize) -> Result<()> {
        match self.connections[index].state {
            State::Closed | State::Opening => Ok(()),
            State::Waiting | State::Free | State::Busy => self.receive(index),
        }
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
                    return self.ended(index);
                }
                Ok(count) => {
                    let generation = connection.generation;
                    // A short read says that the kernel has no more, unless the end of the stream
                    // stands behind it.
                    let is_drained = count < self.buffer.len()
                        && stream.ends_with_short_read()
                        && !connection.is_ending;
                    self.read_clock();
                    self.cross_boundaries();
                    if self.run.is_measuring {
                        self.recorder.interval.read_bytes += count as u64;
                    }
                    self.take(index, count)?;
                    if is_drained || self.connections[index].generation != generation {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    self.read_clock();
                    return self.broke(index);
                }
            }
        }
        self.unread.push_back(index);
        Ok(())
    }

    /// Understands what was read.
    #[inline]
    fn take(&mut self, index: usize, count: usize) -> Result<()> {
        let mut at = 0;
        while at < count {
            let connection = &mut self.connections[index];
            let flight = &connection.flight;
            let Some(expected) = flight.expected.get(flight.answered) else {
                // Nobody asked for this: a server that says good-bye with a 408, or one that is out
                // of step.
                self.close(index);
                return Ok(());
            };
            let collector = connection.collector.as_deref_mut();
            let step =
                match connection.parser.parse(&self.buffer[at..count], expected.is_head, collector)
                {
                    Ok(step) => step,
                    Err(_) => return self.lose(index, Loss::Read),
                };
            at += step.consumed_bytes;
            let Some(answer) = step.response else {
                return Ok(());
            };
            if !self.answered(index, answer, at < count)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A request has its answer. `has_more`: more bytes have arrived behind it. Whether they are to
    /// be understood.
    #[inline]
    fn answered(&mut self, index: usize, answer: Response, has_more: bool) -> Result<bool> {
        let connection = &mut self.connections[index];
        connection.has_answered = true;
        let flight = &mut connection.flight;
        let request = flight.answered;
        let expected = flight.expected[request];
        flight.answered += 1;
        let is_last = flight.answered == flight.expected.len();
        let is_current = flight.is_current;
        if let (Pace::Private(paces), true) = (&mut self.run.pace, is_current) {
            paces[index].complete(1);
        }
        if flight.is_recorded {
            let is_timed = is_last || !self.config.batch_latency;
            self.recorder.answer(flight, expected, answer.status, self.now_ns, is_timed);
        }
        if connection.collector.is_some() && is_current {
            self.show(index, request, answer.status)?;
            self.is_source_stopped();
        }
        if !is_last && answer.keeps_alive {
            return Ok(true);
        }
        let connection = &self.connections[index];
        if !is_last {
            self.lose(index, Loss::Read)?;
        } else if has_more
            || !answer.keeps_alive
            || connection.is_ending
            || !connection.unwritten.is_empty()
        {
            // Done with, or the server answers what was not asked.
            self.close(index);
        } else {
            self.busy.remove(&mut self.links, index);
            self.ready_to_send(index)?;
            self.dispatch(1)?;
        }
        Ok(false)
    }

    /// Shows the source an answer.
    fn show(&mut self, index: usize, request: usize, status: u16) -> Result<()> {
        let connection = &self.connections[index];
        let Some(collector) = &connection.collector else {
            return Ok(());
        };
        let cookie = connection.flight.cookie;
        self.show_calls += 1;
        let is_sampled = self.show_calls.is_multiple_of(SOURCE_SAMPLE);
        let asked_ns = is_sampled.then(|| (thread_cpu_ns(), self.clock.monotonic_ns()));
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
        if let Some((cpu_ns, wall_ns)) = asked_ns {
            self.recorder.source_called(cpu_ns, self.clock.monotonic_ns() - wall_ns);
        }
        if follows {
            self.run.paused_until_ns = self.run.paused_until_ns.min(now_ns);
        }
        Ok(())
    }

    /// The server sends no more.
    fn ended(&mut self, index: usize) -> Result<()> {
        self.cross_boundaries();
        let connection = &mut self.connections[index];
        if connection.state == State::Busy {
            // An answer that has no length ends with the connection.
            return match connection.parser.end() {
                Ok(Some(answer)) => {
                    let answer = Response { keeps_alive: false, ..answer };
                    self.answered(index, answer, false).map(drop)
                }
                Ok(None) | Err(_) => self.lose(index, Loss::Read),
            };
        }
        self.close(index);
        Ok(())
    }

    /// Reading failed.
    fn broke(&mut self, index: usize) -> Result<()> {
        if self.connections[index].state == State::Busy {
            return self.lose(index, Loss::Read);
        }
        self.close(index);
        Ok(())
    }
}

/// `Retry-After`, where it is a number of seconds.
fn retry_after_s(view: &ResponseView<'_>) -> Option<u32> {
    let (_, value) =
        view.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    str::from_utf8(value).ok()?.trim().parse().ok()
}
