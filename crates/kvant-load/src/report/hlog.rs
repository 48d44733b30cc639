//! HdrHistogram interval logs (format 1.3): one line per second and tag, which give any percentile
//! over any range of time. `HistogramLogProcessor` and the HdrHistogram libraries read them.
//!
//! Tags: `KIND/response` and `KIND/service` for each kind of requests, `send-lag` and `connect` for
//! the generator. In the name of a kind, characters that the format does not allow (blanks, commas,
//! control characters, non-ASCII) are percent-encoded.
//!
//! Invariants:
//! 1. Values are nanoseconds; `Interval_Max` is in milliseconds, as readers expect.
//! 2. The header has both `StartTime` and `BaseTime`, so that readers need not guess the base of
//!    timestamps.
//! 3. A tag has a line for each second since its first value: a second without responses is a line
//!    without values, not a gap.
//! 4. The lines of a tag add up to exactly the histogram of the whole run.

#[cfg(test)]
mod tests;

use crate::histogram::Histogram;
use crate::histogram::encoded::Encoder;
use crate::record::{Interval, OpRecord};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::io::{self, Write};

const SEND_LAG: &str = "send-lag";
const CONNECT: &str = "connect";

/// Characters not allowed in a tag: readers end it at a blank, a comma or the end of the line.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'%');
const NS_PER_MS: f64 = 1e6;

/// Writes a log during a run.
pub struct HlogWriter<W: Write> {
    out: W,
    encoder: Encoder,
    line: String,
    /// Tags that have a line already.
    known: Vec<String>,
    clock: Option<PhaseClock>,
}

/// Places the intervals of a phase in the log.
struct PhaseClock {
    /// Wall time at which the log's first phase began, in milliseconds since 1970.
    base_wall_ms: u64,
    /// When the measured time of this phase began, in milliseconds since the base.
    phase_ms: u64,
    /// End of the last interval, in nanoseconds since the measured time of its phase began.
    last_end_ns: u64,
}

impl<W: Write> HlogWriter<W> {
    /// A writer. It writes the header with the first interval, whose time it needs.
    pub fn new(out: W) -> HlogWriter<W> {
        HlogWriter {
            out,
            encoder: Encoder::new(),
            line: String::new(),
            known: Vec::new(),
            clock: None,
        }
    }

    /// Writes and flushes the lines of one interval at its end. `op_names` are the kinds of
    /// requests by [`crate::OpId::index`]. `now_wall_ms`, in milliseconds since 1970, places the
    /// first interval of each phase; the others follow by the monotonic clock. An interval that
    /// begins before the end of the last one begins a new phase, whose lines follow those of the
    /// previous phase.
    pub fn write(
        &mut self,
        interval: &Interval,
        op_names: &[String],
        now_wall_ms: u64,
    ) -> io::Result<()> {
        let begin_ms = self.begin_ms(interval, now_wall_ms)?;
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let empty = OpRecord::default();
        for (index, name) in op_names.iter().enumerate() {
            // A kind without requests in this interval may have no record in it.
            let op = interval.ops.get(index).unwrap_or(&empty);
            self.write_line(&format!("{name}/response"), begin_ms, length_ns, &op.response)?;
            self.write_line(&format!("{name}/service"), begin_ms, length_ns, &op.service)?;
        }
        self.write_line(SEND_LAG, begin_ms, length_ns, &interval.send_lag)?;
        self.write_line(CONNECT, begin_ms, length_ns, &interval.connect)?;
        // Readers that follow the log see each second at its end.
        self.out.flush()
    }

    /// Flushes and returns the sink.
    ///
    /// # Errors
    /// Any error of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// The interval's begin in milliseconds since the log's base. Writes the header first, if
    /// needed.
    fn begin_ms(&mut self, interval: &Interval, now_wall_ms: u64) -> io::Result<f64> {
        let phase_wall_ms = now_wall_ms.saturating_sub(interval.end_ns / 1_000_000);
        let clock = match &mut self.clock {
            Some(clock) => {
                if interval.start_ns < clock.last_end_ns {
                    let last_end_ms = clock.phase_ms + clock.last_end_ns.div_ceil(1_000_000);
                    // The wall clock may have been set back; timestamps never decrease.
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
