//! The interval log of an attempt.

use kvant_base::{Error, Result};
use kvant_env::{Clock, host};
use kvant_load::Interval;
use kvant_load::report::hlog::HlogWriter;
use std::io::Write;
use std::path::PathBuf;

/// Writes `load.hlog` while the load runs.
pub(super) struct IntervalLog {
    path: PathBuf,
    writer: HlogWriter<Box<dyn Write + Send>>,
    /// Wall time in milliseconds less monotonic time, of the first interval: the log has wall times
    /// that follow the monotonic clock.
    wall_ahead_ms: Option<i64>,
}

impl IntervalLog {
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn create(path: PathBuf) -> Result<IntervalLog> {
        let file = host::create_file(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok(IntervalLog { path, writer: HlogWriter::new(file), wall_ahead_ms: None })
    }

    /// Writes an interval. `start_ns` is the begin of the measured time of its phase, by the
    /// monotonic clock.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn write(
        &mut self,
        interval: &Interval,
        op_names: &[String],
        start_ns: Option<u64>,
        clock: &dyn Clock,
    ) -> Result<()> {
        let end_ns = start_ns.map_or_else(|| clock.monotonic_ns(), |start| start + interval.end_ns);
        let ahead_ms = *self.wall_ahead_ms.get_or_insert_with(|| {
            clock.wall_ms() as i64 - (clock.monotonic_ns() / 1_000_000) as i64
        });
        let end_wall_ms = (end_ns / 1_000_000).saturating_add_signed(ahead_ms);
        let written = self.writer.write(interval, op_names, end_wall_ms);
        written.map_err(|error| Error::io("write", &self.path, error))
    }

    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn finish(self) -> Result<()> {
        let flushed = self.writer.finish().and_then(|mut out| out.flush());
        flushed.map_err(|error| Error::io("write", &self.path, error))
    }
}
