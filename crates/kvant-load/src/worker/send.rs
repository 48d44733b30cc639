//! Sends requests: which moment, which connection, and the write itself.

use super::Worker;
use super::connection::State;
use super::pace::Pace;
use super::phase::Stage;
use super::recorder::{SOURCE_SAMPLE, thread_cpu_ns};
use crate::plan::Wrk2Step;
use crate::source::Fate;
use kvant_base::Result;
use std::io;

/// Why a request is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is no plan: a connection is free.
    Free,
    /// The plan's moment.
    Planned(u64),
}

impl Worker {
    /// Sends what is due on the connections that are free, at most `batches_max` batches.
    #[inline]
    pub(super) fn dispatch(&mut self, batches_max: usize) -> Result<()> {
        let mut batches = 0;
        while batches < batches_max {
            let Some(index) = self.free.first() else {
                return Ok(());
            };
            let run = &self.run;
            if run.stage != Stage::Running || run.is_stopped() || self.now_ns < run.begin_ns {
                return Ok(());
            }
            let (now_ns, boundary_ns) = (self.now_ns, self.run.boundary_ns);
            let cause = match &mut self.run.pace {
                Pace::Closed => Cause::Free,
                Pace::Shared(shared) => match shared.next_ns() {
                    // What lies behind the boundary belongs to the time after it, which has not
                    // begun.
                    next_ns if next_ns > now_ns || next_ns >= boundary_ns => return Ok(()),
                    next_ns => Cause::Planned(next_ns),
                },
                Pace::Private(paces) => match paces[index].ask(now_ns) {
                    Wrk2Step::Send { planned_ns } if planned_ns >= boundary_ns => return Ok(()),
                    Wrk2Step::Send { planned_ns } => Cause::Planned(planned_ns),
                    Wrk2Step::Wait { until_ns } => {
                        self.free.remove(&mut self.links, index);
                        self.wait_until(index, until_ns);
                        continue;
                    }
                },
            };
            if self.is_source_stopped() {
                return Ok(());
            }
            if self.source_follows && self.is_paused() {
                return Ok(());
            }
            if self.run.is_limited && self.run.is_measuring && !self.run.quota.take() {
                return Ok(());
            }
            self.free.remove(&mut self.links, index);
            self.send(index, cause)?;
            self.is_source_stopped();
            batches += 1;
        }
        Ok(())
    }

    /// When [`Worker::dispatch`] has something to do again; `u64::MAX` when that is not a question
    /// of time.
    pub(super) fn next_send_ns(&self) -> u64 {
        let run = &self.run;
        let has_no_room = run.is_limited && !run.quota.has_room();
        if run.stage != Stage::Running
            || run.is_stopped()
            || has_no_room
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

    /// When the first connection that waits for a moment of its own is to send, where that is to be
    /// met precisely.
    pub(super) fn next_waiting_ns(&mut self) -> u64 {
        if self.config.wrk2_exact {
            return u64::MAX;
        }
        self.timers.next_ns().unwrap_or(u64::MAX)
    }

    /// Whether the source has nothing to send at the moment.
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

    /// Writes the next batch on a connection that is in no list.
    fn send(&mut self, index: usize, cause: Cause) -> Result<()> {
        let connection = &mut self.connections[index];
        self.next_calls += 1;
        let is_sampled = self.next_calls.is_multiple_of(SOURCE_SAMPLE);
        let asked_ns = is_sampled.then(|| (thread_cpu_ns(), self.clock.monotonic_ns()));
        let batch = self.source.next(connection.target)?;
        let written_ns = self.clock.monotonic_ns();
        self.now_ns = written_ns;
        if let Some((cpu_ns, wall_ns)) = asked_ns {
            self.recorder.source_called(cpu_ns, written_ns - wall_ns);
        }

        let flight = &mut connection.flight;
        flight.expected.clear();
        flight.expected.extend_from_slice(batch.requests);
        flight.answered = 0;
        flight.is_current = true;
        flight.written_ns = written_ns;
        let count = batch.requests.len();
        let free_ns = connection.free_ns.max(self.run.begin_ns).max(self.run.unpaused_ns);
        let sendable_ns = match cause {
            Cause::Free => {
                flight.planned_ns = written_ns;
                flight.lag_ns = 0;
                free_ns
            }
            Cause::Planned(at_ns) => {
                let sendable_ns = at_ns.max(free_ns);
                flight.planned_ns = at_ns;
                flight.lag_ns = written_ns.saturating_sub(sendable_ns);
                sendable_ns
            }
        };
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
        connection.state = State::Busy;
        self.busy.push(&mut self.links, index);
        if let Pace::Shared(shared) = &mut self.run.pace {
            shared.take(count);
        }
        if self.run.is_limited && self.run.is_measuring {
            // One place was taken before the batch was known. What the warm-up planned needs none.
            match is_recorded {
                true => self.run.quota.take_more(count as u64 - 1),
                false => self.run.quota.give_back(1),
            }
        }
        if is_recorded {
            self.run.tried += count as u64;
        }
        if !is_written {
            return self.lose(index, Loss::Write);
        }
        if is_recorded {
            let interval = &mut self.recorder.interval;
            interval.sent += count as u64;
            interval.send_lag.record_ns(written_ns.saturating_sub(sendable_ns));
        }
        Ok(())
    }

    /// Writes more of what the kernel did not take.
    #[inline]
    pub(super) fn write_on(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        // Errors are left to reading: the server may have answered before it closed.
        let is_flushed = stream.flush().is_ok();
        if !is_flushed || connection.unwritten.is_empty() {
            return;
        }
        while !connection.unwritten.is_empty() {
            match stream.write(connection.unwritten.bytes()) {
                Ok(taken) => connection.unwritten.written(taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// A connection, which is in no list, is open and nothing is in flight on it.
    pub(super) fn ready_to_send(&mut self, index: usize) -> Result<()> {
        self.connections[index].free_ns = self.turn_ns;
        if self.source_delays && self.run.stage == Stage::Running {
            return self.delay(index);
        }
        self.set_free(index);
        Ok(())
    }

    /// Asks the source how long a connection, which is in no list, waits.
    pub(super) fn delay(&mut self, index: usize) -> Result<()> {
        let delay_ns = u64::try_from(self.source.delay()?.as_nanos()).unwrap_or(u64::MAX);
        if delay_ns == 0 {
            self.set_free(index);
        } else {
            let until_ns = self.now_ns.max(self.run.begin_ns).saturating_add(delay_ns);
            self.connections[index].free_ns = until_ns;
            self.wait_until(index, until_ns);
        }
        Ok(())
    }

    /// Puts an open connection, which is in no list, among the free ones.
    pub(super) fn set_free(&mut self, index: usize) {
        self.connections[index].state = State::Free;
        self.free.push(&mut self.links, index);
    }

    /// Lets a connection, which is in no list, wait for a moment of its own.
    pub(super) fn wait_until(&mut self, index: usize, until_ns: u64) {
        self.connections[index].state = State::Waiting;
        self.timers.set(index, until_ns);
    }

    /// What connections have waited for has come.
    pub(super) fn fire_timers(&mut self) {
        while let Some(index) = self.timers.pop_due(self.now_ns) {
            match self.connections[index].state {
                State::Closed => self.to_open.push_back(index),
                State::Waiting => self.set_free(index),
                State::Opening | State::Free | State::Busy => {}
            }
        }
    }

    /// Deadlines that have passed.
    pub(super) fn expire(&mut self) -> Result<()> {
        while let Some(index) = self.busy.first() {
            if self.connections[index].flight.written_ns.saturating_add(self.timeout_ns)
                > self.looks.seen_ns
            {
                break;
            }
            self.lose(index, Loss::Timeout)?;
        }
        while let Some(index) = self.opening.first() {
            if self.connections[index].opening_ns.saturating_add(self.timeout_ns)
                > self.looks.seen_ns
            {
                break;
            }
            self.open_failed(index, &io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Accounts for requests that will have no answer, and closes their connection.
    pub(super) fn lose(&mut self, index: usize, loss: Loss) -> Result<()> {
        let flight = &self.connections[index].flight;
        let count = flight.unanswered().len() as u64;
        if flight.is_recorded {
            match loss {
                Loss::Write => self.recorder.interval.errors.write += count,
                Loss::Read => self.recorder.interval.errors.read += count,
                Loss::Timeout => {
                    for &expected in flight.unanswered() {
                        self.recorder.timeout(flight, expected, self.now_ns);
                    }
                }
            }
        }
        let is_current = flight.is_current;
        // wrk2 goes on with the plan when an answer comes, and only then.
        if let Pace::Private(paces) = &mut self.run.pace
            && is_current
            && !self.config.wrk2_exact
        {
            paces[index].complete(count);
        }
        if self.source_follows && is_current {
            for request in flight.answered..flight.expected.len() {
                self.source.settled(flight.cookie, request, Fate::Lost, self.now_ns);
            }
            self.run.paused_until_ns = self.run.paused_until_ns.min(self.now_ns);
        }
        self.close(index);
        Ok(())
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It could not be written.
    Write,
    /// The answer broke off, or was no HTTP.
    Read,
    /// The deadline passed.
    Timeout,
}
