//! Live progress, on standard error: the report on standard output stays clean.
//!
//! 1. On a terminal: one line, rewritten each second and erased at the end of the phase.
//! 2. Elsewhere: plain lines, one every [`PLAIN_EVERY`], at least one a phase.
//! 3. On a terminal a line is cut at [`TERMINAL_WIDTH`], so that rewriting it never leaves half of
//!    it behind.

use crate::config::{Phase, Rate};
use crate::record::{Errors, Interval};
use crate::units::{format_metric, format_time_ns};
use std::io::{self, Write};
use std::time::Duration;

/// Columns that every terminal has.
pub const TERMINAL_WIDTH: usize = 79;
/// From the end of one plain line's time to the next.
pub const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Back to the begin of the line, and erase what is there.
const ERASE: &str = "\r\x1b[K";

/// Writes progress to `W`: one line that is rewritten each second on a terminal, else a plain line
/// now and then.
pub struct Progress<W: Write> {
    out: W,
    is_terminal: bool,
    state: State,
    /// What each line begins with.
    note: String,
    /// What no plain line has told yet.
    untold: Interval,
    is_told: bool,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The phase, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Of this phase.
    pub rate: Rate,
    /// Measured time of this phase.
    pub duration: Duration,
    /// Requests of this phase, where their number is limited.
    pub request_count_max: Option<u64>,
    /// Planned requests so far.
    pub planned: u64,
    /// Requests written so far.
    pub sent: u64,
    /// Failures of all kinds so far.
    pub errors: u64,
}

impl<W: Write> Progress<W> {
    /// A writer of progress; call [`Progress::begin`] for each phase.
    pub fn new(out: W, is_terminal: bool) -> Progress<W> {
        Progress {
            out,
            is_terminal,
            state: State {
                index: 0,
                count: 1,
                rate: Rate::Closed,
                duration: Duration::ZERO,
                request_count_max: None,
                planned: 0,
                sent: 0,
                errors: 0,
            },
            note: String::new(),
            untold: Interval::default(),
            is_told: true,
        }
    }

    /// What the phases that follow are for: their lines begin with it.
    pub fn set_note(&mut self, note: String) {
        self.note = note;
    }

    /// A phase begins: number `index` (from 0) of `count`.
    ///
    /// # Errors
    /// What writing came to, as in all of these: progress is a courtesy, and a caller may go on
    /// without it.
    pub fn begin(&mut self, phase: &Phase, index: usize, count: usize) -> io::Result<()> {
        self.state = State {
            index,
            count,
            rate: phase.rate,
            duration: phase.duration,
            request_count_max: phase.request_count_max,
            planned: 0,
            sent: 0,
            errors: 0,
        };
        self.untold = Interval::default();
        self.is_told = false;
        if phase.warmup.is_zero() {
            return Ok(());
        }
        self.show(&format!("{}warm-up for {}", place(&self.state), clock(phase.warmup)))
    }

    /// A second of it is over: what [`crate::Load::run`] hands to `each_second`.
    ///
    /// # Errors
    /// As [`Progress::begin`].
    pub fn second(&mut self, interval: &Interval) -> io::Result<()> {
        self.state.planned += interval.planned;
        self.state.sent += interval.sent;
        self.state.errors += all(&interval.errors);
        if self.is_terminal {
            return self.show(&line(&self.state, interval));
        }
        if self.untold.end_ns == 0 {
            self.untold.start_ns = interval.start_ns;
        }
        self.untold.end_ns = interval.end_ns;
        self.untold.add(interval);
        let untold = Duration::from_nanos(self.untold.end_ns.saturating_sub(self.untold.start_ns));
        // A second may be a little short.
        if untold + Duration::from_millis(500) < PLAIN_EVERY {
            return Ok(());
        }
        self.tell()
    }

    /// The phase is over: leaves a clean line behind, before the report is printed.
    ///
    /// # Errors
    /// As [`Progress::begin`].
    pub fn end(&mut self) -> io::Result<()> {
        if self.is_terminal {
            self.out.write_all(ERASE.as_bytes())?;
            return self.out.flush();
        }
        if self.is_told || self.untold.end_ns == 0 {
            return Ok(());
        }
        self.tell()
    }

    /// Prints a plain line of what was not told yet.
    fn tell(&mut self) -> io::Result<()> {
        self.is_told = true;
        let untold = std::mem::take(&mut self.untold);
        self.show(&line(&self.state, &untold))
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        let text = format!("{}{text}", self.note);
        if self.is_terminal {
            let text: String = text.chars().take(TERMINAL_WIDTH).collect();
            write!(self.out, "{ERASE}{text}")?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        self.out.flush()
    }
}

/// A line of progress: how far the phase is, and what the interval came to. Failures and backlog
/// are those of the phase.
///
/// `[2/5] 0:12/1:00 19.99k of 20.00k/s p50 650.00us p99 6.39ms errors 0 backlog 3`
pub fn line(state: &State, interval: &Interval) -> String {
    let response = interval.response();
    let time_ns = interval.end_ns.saturating_sub(interval.start_ns).max(1);
    let rate = interval.completed as f64 * 1e9 / time_ns as f64;
    let planned = match state.rate {
        Rate::Closed => String::new(),
        Rate::Constant(_) | Rate::Ramp { .. } => {
            format!(" of {}", format_metric(interval.planned as f64 * 1e9 / time_ns as f64))
        }
    };
    let goal = match state.request_count_max {
        Some(count) => format!(" {} of {} sent", short(state.sent), short(count)),
        None => format!("/{}", clock(state.duration)),
    };
    format!(
        "{}{}{goal} {}{planned}/s p50 {} p99 {} errors {} backlog {}",
        place(state),
        clock(Duration::from_nanos(interval.end_ns)),
        format_metric(rate),
        format_time_ns(response.percentile_ns(50.0)),
        format_time_ns(response.percentile_ns(99.0)),
        short(state.errors),
        short(state.planned.saturating_sub(state.sent)),
    )
}

/// `[2/5] `, where there are several phases.
fn place(state: &State) -> String {
    if state.count < 2 {
        return String::new();
    }
    format!("[{}/{}] ", state.index + 1, state.count)
}

/// `0:12`, `10:00`, `2:00:00`, rounded to seconds.
pub fn clock(time: Duration) -> String {
    let seconds = (time + Duration::from_millis(500)).as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

fn short(count: u64) -> String {
    if count < 10_000 { count.to_string() } else { format_metric(count as f64) }
}

fn all(errors: &Errors) -> u64 {
    errors.connect + errors.read + errors.write + errors.timeout + errors.status
}

#[cfg(test)]
mod tests;
