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
}

impl IntervalLog {
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn create(path: PathBuf) -> Result<IntervalLog> {
        let file = host::create_file(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok(IntervalLog { path, writer: HlogWriter::new(file) })
    }

    /// Writes an interval. `starts` are the begins of the measured times of its phase and of the
    /// first phase, by the monotonic clock.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn write(
        &mut self,
        interval: &Interval,
        op_names: &[String],
        starts: (Option<u64>, Option<u64>),
        clock: &dyn Clock,
    ) -> Result<()> {
        // The log is placed by the wall clock; the monotonic one says how long ago the end was.
        let end_ns = starts.0.map(|start_ns| start_ns + interval.end_ns);
        let ago_ns = end_ns.map_or(0, |end_ns| clock.monotonic_ns().saturating_sub(end_ns));
        let end_wall_ms = clock.wall_ms().saturating_sub(ago_ns / 1_000_000);
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
