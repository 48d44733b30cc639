//! What a run says while it goes on: what is being done, what was learned, how long it will take.

use kvant_load::report::progress::clock;
use std::io::Write;
use std::time::Duration;

/// Shows progress. If it cannot be written, the run continues without it.
pub struct Progress {
    out: Option<Box<dyn Write + Send>>,
    is_terminal: bool,
    /// Characters of the last line that is to be overwritten.
    live_width: usize,
    /// Where the run is, in front of each line: `[3/24, 4:10 left]`.
    place: String,
}

impl Progress {
    /// Writes to `out`. A terminal also shows what happens now, in a line that is overwritten.
    pub fn new(out: Box<dyn Write + Send>, is_terminal: bool) -> Progress {
        Progress { out: Some(out), is_terminal, live_width: 0, place: String::new() }
    }

    /// Shows nothing.
    pub fn none() -> Progress {
        Progress { out: None, is_terminal: false, live_width: 0, place: String::new() }
    }

    /// Says where the run is.
    pub(super) fn set_place(&mut self, number: usize, count: usize, left: Duration) {
        self.place = format!("[{number}/{count}, {} left] ", clock(left));
    }

    /// A line that stays.
    pub(super) fn line(&mut self, text: &str) {
        let text = format!("{}{text}", self.place);
        let padding = " ".repeat(self.live_width.saturating_sub(text.chars().count()));
        let start = if self.live_width > 0 { "\r" } else { "" };
        self.live_width = 0;
        self.write(&format!("{start}{text}{padding}\n"));
    }

    /// What happens now.
    pub(super) fn now(&mut self, text: &str) {
        if !self.is_terminal {
            return;
        }
        let text = format!("{}{text}", self.place);
        let width = text.chars().count();
        let padding = " ".repeat(self.live_width.saturating_sub(width));
        self.live_width = width;
        self.write(&format!("\r{text}{padding}"));
    }

    fn write(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.out = None;
        }
    }
}
