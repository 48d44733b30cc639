//! HdrHistogram interval logs (format 1.3): one line a second and tag, from which any percentile
//! over any stretch of time follows. `HistogramLogProcessor` and the libraries of other languages
//! read them.
//!
//! Tags: `KIND/response` and `KIND/service` for each kind of requests, `send-lag` and `connect` for
//! the generator. Names of kinds are percent-encoded where the format has no room for them (blanks,
//! commas, line ends, whatever is not ASCII), so that they come back as they were.
//!
//! Invariants:
//! 1. Values are nanoseconds; `Interval_Max` is in milliseconds, as readers expect of a log of
//!    nanoseconds.
//! 2. `StartTime` and `BaseTime` are both in the header, so that no reader guesses what a timestamp
//!    counts from.
//! 3. From the first second in which a tag has a value on, it has a line each second: a second in
//!    which nothing was answered is a line without values, not a gap.
//! 4. The lines of a tag add up to exactly the histogram of the whole run.

mod read;
#[cfg(test)]
mod tests;

pub use read::{Log, LogInterval, read};

use super::encoded::Encoder;
use crate::histogram::Histogram;
use crate::record::{Interval, OpRecord};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::io::{self, Write};

/// Tag of the generator's own lateness.
pub const SEND_LAG: &str = "send-lag";
/// Tag of the time that opening connections took.
pub const CONNECT: &str = "connect";

/// What a tag cannot hold: readers end it at a blank, a comma or the end of the line.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'%');
/// `Interval_Max` is the largest value divided by this.
const NS_PER_MS: f64 = 1e6;

/// The tag of the response times of a kind of requests, as [`Log`] has it.
pub fn response_tag(op_name: &str) -> String {
    format!("{op_name}/response")
}

/// The tag of the service times of a kind of requests, as [`Log`] has it.
pub fn service_tag(op_name: &str) -> String {
    format!("{op_name}/service")
}

/// Writes a log as a run goes on.
pub struct HlogWriter<W: Write> {
    out: W,
    encoder: Encoder,
    line: String,
    /// Tags that have had a line.
    known: Vec<String>,
    clock: Option<PhaseClock>,
}

/// What places the intervals of a phase in the log.
struct PhaseClock {
    /// Wall time at which the log's first phase began, in milliseconds since 1970.
    base_wall_ms: u64,
    /// When the measured time of this phase began, in milliseconds since the base.
    phase_ms: u64,
    /// End of the last interval, in nanoseconds since the measured time of its phase began.
    last_end_ns: u64,
}

impl<W: Write> HlogWriter<W> {
    /// A writer that has written nothing: the header needs the time of the first interval.
    pub fn new(out: W) -> HlogWriter<W> {
        HlogWriter {
            out,
            encoder: Encoder::new(),
            line: String::new(),
            known: Vec::new(),
            clock: None,
        }
    }

    /// Writes the lines of one interval, as it ends. `op_names` are those of the intervals' kinds,
    /// by [`crate::OpId::index`]; `now_wall_ms` is the wall time of this call, in milliseconds
    /// since 1970: it places the first interval of each phase, the others follow by the monotonic
    /// clock. An interval that begins before the last one ended begins a new phase, whose lines
    /// follow those of the phase before.
    ///
    /// # Errors
    /// What writing met.
    pub fn write(
        &mut self,
        interval: &Interval,
        op_names: &[String],
        now_wall_ms: u64,
    ) -> io::Result<()> {
        let begin_ms = self.begin_ms(interval, now_wall_ms)?;
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let nothing = OpRecord::default();
        // A kind that has nothing in this interval may be missing in it.
        for index in 0..interval.ops.len().max(op_names.len()) {
            let name = op_names.get(index).cloned().unwrap_or_else(|| format!("kind {index}"));
            let op = interval.ops.get(index).unwrap_or(&nothing);
            self.write_line(&response_tag(&name), begin_ms, length_ns, &op.response)?;
            self.write_line(&service_tag(&name), begin_ms, length_ns, &op.service)?;
        }
        self.write_line(SEND_LAG, begin_ms, length_ns, &interval.send_lag)?;
        self.write_line(CONNECT, begin_ms, length_ns, &interval.connect)?;
        // Who follows a log sees each second as it ends.
        self.out.flush()
    }

    /// The sink, with all that was written.
    ///
    /// # Errors
    /// What flushing met.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// The interval's begin in milliseconds since the log's base; writes the header before the
    /// first.
    fn begin_ms(&mut self, interval: &Interval, now_wall_ms: u64) -> io::Result<f64> {
        let phase_wall_ms = now_wall_ms.saturating_sub(interval.end_ns / 1_000_000);
        let clock = match &mut self.clock {
            Some(clock) => {
                if interval.start_ns < clock.last_end_ns {
                    let last_end_ms = clock.phase_ms + clock.last_end_ns.div_ceil(1_000_000);
                    // The wall clock may have been set back; lines never go back.
                    clock.phase_ms =
                        phase_wall_ms.saturating_sub(clock.base_wall_ms).max(last_end_ms);
                }
                clock
            }
            None => {
                write_header(&mut self.out, phase_wall_ms)?;
                self.clock.insert(PhaseClock {
                    base_wall_ms: phase_wall_ms,
                    phase_ms: 0,
                    last_end_ns: 0,
                })
            }
        };
        clock.last_end_ns = interval.end_ns;
        Ok(clock.phase_ms as f64 + interval.start_ns as f64 / NS_PER_MS)
    }

    fn write_line(
        &mut self,
        tag: &str,
        begin_ms: f64,
        length_ns: u64,
        histogram: &Histogram,
    ) -> io::Result<()> {
        if !self.known.iter().any(|known| known == tag) {
            if histogram.is_empty() {
                return Ok(());
            }
            self.known.push(tag.to_owned());
        }
        self.line.clear();
        self.encoder.append(histogram, &mut self.line);
        writeln!(
            self.out,
            "Tag={},{:.3},{:.3},{:.3},{}",
            utf8_percent_encode(tag, UNSAFE),
            begin_ms / 1e3,
            length_ns as f64 / 1e9,
            histogram.as_hdr().max() as f64 / NS_PER_MS,
            self.line,
        )
    }
}

fn write_header(out: &mut impl Write, base_wall_ms: u64) -> io::Result<()> {
    let base_s = base_wall_ms as f64 / 1e3;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    writeln!(out, "#[Logged with kvant load {}]", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "#[Values are nanoseconds; Interval_Max is in milliseconds]")?;
    writeln!(
        out,
        "#[Tags: KIND/response counts from the plan, KIND/service from the write; send-lag and connect]"
    )?;
    writeln!(out, "#[StartTime: {base_s:.3} (seconds since epoch), begin of the measured time]")?;
    writeln!(out, "#[BaseTime: {base_s:.3} (seconds since epoch)]")?;
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )
}
