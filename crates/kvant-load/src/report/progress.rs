//! Live progress, for standard error.
//!
//! 1. On a terminal: one line, rewritten each second and erased at the end of the phase.
//! 2. Elsewhere: one plain line every `PLAIN_EVERY`, and at least one per phase.
//! 3. Errors are those of the sink; a caller may continue without progress.
//! 4. On a terminal a line is cut at `TERMINAL_WIDTH`: a wrapped line could not be erased.

use crate::config::{Phase, Rate};
use crate::record::Interval;
use crate::units::{format_metric, format_time_ns};
use std::io::{self, Write};
use std::time::Duration;

/// Columns that every terminal has.
const TERMINAL_WIDTH: usize = 79;
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Moves the cursor to the begin of the line and erases the line.
const ERASE: &str = "\r\x1b[K";

/// Writes progress to `W`.
pub struct Progress<W: Write> {
    out: W,
    is_terminal: bool,
    state: PhaseState,
    note: String,
    /// The time since the last plain line.
    unreported: Interval,
    /// Whether the phase has a plain line for all its time.
    is_reported: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct PhaseState {
    phase: Phase,
    /// Number of the phase, from 0.
    index: usize,
    count: usize,
    planned: u64,
    sent: u64,
    /// Failures of all kinds.
    errors: u64,
}

impl<W: Write> Progress<W> {
    /// A writer of progress. Call [`Progress::begin`] for each phase.
    pub fn new(out: W, is_terminal: bool) -> Progress<W> {
        Progress {
            out,
            is_terminal,
            state: PhaseState::default(),
            note: String::new(),
            unreported: Interval::default(),
            is_reported: true,
        }
    }

    /// Sets the prefix of the following lines.
    pub fn set_note(&mut self, note: String) {
        self.note = note;
    }

    /// Begins phase number `index` (from 0) of `count`.
    pub fn begin(&mut self, phase: &Phase, index: usize, count: usize) -> io::Result<()> {
        self.state = PhaseState { phase: *phase, index, count, ..PhaseState::default() };
        self.unreported = Interval::default();
        self.is_reported = false;
        if phase.warmup.is_zero() {
            return Ok(());
        }
        self.show(&format!("{}warm-up for {}", place(&self.state), clock(phase.warmup)))
    }

    /// Adds a second of the phase, as passed to `each_second` by [`crate::Load::run`].
    pub fn second(&mut self, interval: &Interval) -> io::Result<()> {
        self.state.planned += interval.planned;
        self.state.sent += interval.sent;
        self.state.errors += interval.errors.total();
        if self.is_terminal {
            return self.show(&line(&self.state, interval));
        }
        if self.unreported.end_ns == 0 {
            self.unreported.start_ns = interval.start_ns;
        }
        self.unreported.end_ns = interval.end_ns;
        self.unreported.add(interval);
        let length = Duration::from_nanos(self.unreported.end_ns - self.unreported.start_ns);
        // A second may be a little short.
        if length + Duration::from_millis(500) < PLAIN_EVERY {
            return Ok(());
        }
        self.report()
    }

    /// Ends the phase; erases the line on a terminal.
    pub fn end(&mut self) -> io::Result<()> {
        if self.is_terminal {
            self.out.write_all(ERASE.as_bytes())?;
            return self.out.flush();
        }
        if self.is_reported || self.unreported.end_ns == 0 {
            return Ok(());
        }
        self.report()
    }

    /// Prints a plain line of the time since the last one.
    fn report(&mut self) -> io::Result<()> {
        self.is_reported = true;
        let unreported = std::mem::take(&mut self.unreported);
        self.show(&line(&self.state, &unreported))
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

/// A line of progress: position in the phase and figures of the interval. Failures and backlog are
/// those of the phase.
///
/// `[2/5] 0:12/1:00 19.99k of 20.00k/s p50 650.00us p99 6.39ms errors 0 backlog 3`
fn line(state: &PhaseState, interval: &Interval) -> String {
    let response = interval.response();
    let time_ns = interval.end_ns.saturating_sub(interval.start_ns).max(1);
    let rate = interval.completed as f64 * 1e9 / time_ns as f64;
    let planned = match state.phase.rate {
        Rate::Closed => String::new(),
        Rate::Constant(_) | Rate::Ramp { .. } => {
            format!(" of {}", format_metric(interval.planned as f64 * 1e9 / time_ns as f64))
        }
    };
    let goal = match state.phase.request_count_max {
        Some(count) => format!(" {} of {} sent", short(state.sent), short(count)),
        None => format!("/{}", clock(state.phase.duration)),
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

/// `[2/5] `, if there are several phases.
fn place(state: &PhaseState) -> String {
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

#[cfg(test)]
mod tests;
