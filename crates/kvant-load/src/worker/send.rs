//! Sends requests: selects the planned time and the connection, and writes.

use super::Worker;
use super::connection::ConnState;
use super::pace::Pace;
use super::stage::Stage;
use crate::plan::Wrk2Step;
use crate::source::Fate;
use kvant_base::{Result, duration};
use std::io;

impl Worker {
    /// Sends due requests on free connections, at most `batches_max` batches.
    #[inline]
    pub(super) fn dispatch(&mut self, batches_max: usize) -> Result<()> {
        let mut batches = 0;
        while batches < batches_max {
            let Some(index) = self.free.first() else {
                return Ok(());
            };
            let run = &mut self.run;
            if run.stage != Stage::Running || run.is_stopped() || self.now_ns < run.begin_ns {
                return Ok(());
            }
            let (now_ns, boundary_ns) = (self.now_ns, run.boundary_ns);
            let planned_ns = match &mut run.pace {
                Pace::Closed => None,
                Pace::Shared(shared) => match shared.next_ns() {
                    // Requests planned after the boundary belong to the next interval.
                    next_ns if next_ns > now_ns || next_ns >= boundary_ns => return Ok(()),
                    next_ns => Some(next_ns),
                },
                Pace::Private(paces) => match paces[index].next_step(now_ns) {
                    Wrk2Step::Send { planned_ns } if planned_ns >= boundary_ns => return Ok(()),
                    Wrk2Step::Send { planned_ns } => Some(planned_ns),
                    Wrk2Step::Wait { until_ns } => {
                        self.free.remove(&mut self.links, index);
                        self.wait_until(index, until_ns);
                        continue;
                    }
                },
            };
            if self.is_source_stopped() || self.source_follows && self.is_paused() {
                return Ok(());
            }
            if self.run.is_measuring && self.run.quota.take(1) == 0 {
                return Ok(());
            }
            self.free.remove(&mut self.links, index);
            self.send(index, planned_ns)?;
            self.is_source_stopped();
            batches += 1;
        }
        Ok(())
    }

    /// When [`Worker::dispatch`] is to be called again; `u64::MAX` if that depends on events.
    pub(super) fn next_send_ns(&self) -> u64 {
        let run = &self.run;
        if run.stage != Stage::Running
            || run.is_stopped()
            || run.quota.left() == 0
            || self.free.first().is_none()
        {
            return u64::MAX;
        }
        let due_ns = match &run.pace {
            Pace::Closed | Pace::Private(_) => run.begin_ns,
            Pace::Shared(shared) => shared.next_ns(),
        };
        due_ns.max(run.paused_until_ns)
    }

    /// The first deadline of a connection in [`ConnState::Waiting`], if it must be met precisely.
    pub(super) fn next_waiting_ns(&mut self) -> u64 {
        if self.config.wrk2_exact {
            return u64::MAX;
        }
        self.timers.next_ns().unwrap_or(u64::MAX)
    }

    fn is_paused(&mut self) -> bool {
        if self.run.paused_until_ns > self.now_ns {
            return true;
        }
        let until_ns = self.source.paused_until(self.now_ns);
        if until_ns.is_none() && self.run.paused_until_ns != 0 {
            self.run.unpaused_ns = self.now_ns;
        }
        self.run.paused_until_ns = until_ns.unwrap_or(0);
        until_ns.is_some()
    }

    /// Writes the next batch on a connection that is in no list. `planned_ns` is `None` in a closed
    /// loop.
    fn send(&mut self, index: usize, planned_ns: Option<u64>) -> Result<()> {
        let connection = &mut self.connections[index];
        let call = self.next_calls.begin(&*self.clock);
        let batch = self.source.next(connection.target)?;
        let written_ns = self.clock.monotonic_ns();
        self.now_ns = written_ns;
        if let Some(call) = call {
            self.recorder.end_source_call(call, written_ns);
        }

        let flight = &mut connection.flight;
        flight.expected.clear();
        flight.expected.extend_from_slice(batch.requests);
        flight.completed = 0;
        flight.is_current = true;
        flight.written_ns = written_ns;
        let count = batch.requests.len();
        let free_ns = connection.free_ns.max(self.run.begin_ns).max(self.run.unpaused_ns);
        let sendable_ns = free_ns.max(planned_ns.unwrap_or(0));
        let lag_ns = written_ns.saturating_sub(sendable_ns);
        flight.planned_ns = planned_ns.unwrap_or(written_ns);
        flight.lag_ns = if planned_ns.is_some() { lag_ns } else { 0 };
        flight.is_recorded = self.run.is_measuring && flight.planned_ns >= self.run.measured_ns;
        let is_recorded = flight.is_recorded;

        let stream = connection.stream.as_mut().expect("a free connection has a socket");
        let is_written = loop {
            match stream.write(batch.bytes) {
                Ok(taken) => {
                    connection.unwritten.add(&batch.bytes[taken..]);
                    break true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.unwritten.add(batch.bytes);
                    break true;
                }
                Err(_) => break false,
            }
        };
        if self.source_follows {
            connection.flight.cookie = self.source.cookie();
        }
        connection.state = ConnState::Busy;
        self.busy.push(&mut self.links, index);
        if let Pace::Shared(shared) = &mut self.run.pace {
            shared.take(count);
        }
        if self.run.is_measuring {
            // Requests planned in the warm-up do not count.
            self.run.quota.take_instead_of_one(if is_recorded { count as u64 } else { 0 });
        }
        if is_recorded {
            self.run.tried += count as u64;
        }
        if !is_written {
            return self.lose(index, FailureKind::Write);
        }
        if !self.connections[index].unwritten.is_empty() {
            // TLS takes a part of a long batch although the socket takes more: no event follows.
            self.continue_writing(index);
        }
        if is_recorded {
            self.recorder.interval.sent += count as u64;
            self.recorder.interval.send_lag.record_ns(lag_ns);
        }
        Ok(())
    }

    /// Writes unwritten bytes, as many as the kernel takes. Errors are left to reading: the server
    /// may have responded before it closed.
    #[inline]
    pub(super) fn continue_writing(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        if stream.flush().is_err() {
            return;
        }
        while !connection.unwritten.is_empty() {
            match stream.write(connection.unwritten.bytes()) {
                Ok(taken) => connection.unwritten.remove_written(taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Makes an open connection, which is in no list and has nothing in flight, free or waiting.
    pub(super) fn ready_to_send(&mut self, index: usize) -> Result<()> {
        self.connections[index].free_ns = self.turn_ns;
        if self.source_delays && self.run.stage == Stage::Running {
            return self.delay(index);
        }
        self.set_free(index);
        Ok(())
    }

    /// Lets a connection, which is in no list, wait for as long as the source says.
    pub(super) fn delay(&mut self, index: usize) -> Result<()> {
        let delay_ns = duration::ns(self.source.delay()?);
        if delay_ns == 0 {
            self.set_free(index);
        } else {
            let until_ns = self.now_ns.max(self.run.begin_ns).saturating_add(delay_ns);
            self.connections[index].free_ns = until_ns;
            self.wait_until(index, until_ns);
        }
        Ok(())
    }

    /// Frees an open connection, which is in no list.
    pub(super) fn set_free(&mut self, index: usize) {
        self.connections[index].state = ConnState::Free;
        self.free.push(&mut self.links, index);
    }

    /// Lets a connection, which is in no list, wait for its own time.
    pub(super) fn wait_until(&mut self, index: usize, until_ns: u64) {
        self.connections[index].state = ConnState::Waiting;
        self.timers.set(index, until_ns);
    }

    pub(super) fn fire_timers(&mut self) {
        while let Some(index) = self.timers.pop_due(self.now_ns) {
            match self.connections[index].state {
                ConnState::Closed => self.to_open.push_back(index),
                ConnState::Waiting => self.set_free(index),
                ConnState::Opening | ConnState::Free | ConnState::Busy => {}
            }
        }
    }

    /// Fails requests and connection attempts whose deadlines have passed.
    pub(super) fn expire(&mut self) -> Result<()> {
        let (timeout_ns, seen_ns) = (self.timeout_ns, self.poll_progress.seen_ns);
        let is_expired = |since_ns: u64| since_ns.saturating_add(timeout_ns) <= seen_ns;
        while let Some(index) = self.busy.first() {
            if !is_expired(self.connections[index].flight.written_ns) {
                break;
            }
            self.lose(index, FailureKind::Timeout)?;
        }
        while let Some(index) = self.opening.first() {
            if !is_expired(self.connections[index].opening_ns) {
                break;
            }
            self.open_failed(index, &io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Records requests that get no response, and closes their connection.
    pub(super) fn lose(&mut self, index: usize, kind: FailureKind) -> Result<()> {
        let flight = &self.connections[index].flight;
        let count = flight.unanswered().len() as u64;
        if flight.is_recorded {
            match kind {
                FailureKind::Write => self.recorder.interval.errors.write += count,
                FailureKind::Read => self.recorder.interval.errors.read += count,
                FailureKind::Timeout => {
                    for &expected in flight.unanswered() {
                        self.recorder.timeout(flight, expected, self.now_ns);
                    }
                }
            }
        }
        let is_current = flight.is_current;
        // wrk2 advances the plan with responses only.
        if let Pace::Private(paces) = &mut self.run.pace
            && is_current
            && !self.config.wrk2_exact
        {
            paces[index].complete(count);
        }
        if self.source_follows && is_current {
            for request in flight.completed..flight.expected.len() {
                self.source.settled(flight.cookie, request, Fate::Lost, self.now_ns);
            }
            self.run.paused_until_ns = self.run.paused_until_ns.min(self.now_ns);
        }
        self.close(index);
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    Write,
    /// The response was truncated or malformed.
    Read,
    Timeout,
}
