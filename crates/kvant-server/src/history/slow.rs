//! The slowest requests of a second, encoded: each takes about 70 bytes instead of 250. What they
//! did at other machines is left out.

use crate::http::Operation;
use crate::store::{ReadTrace, RemoteCourse};
use crate::timing::{KeyStart, Stamps, Trace};
use http::StatusCode;
use kvant_base::varint::{put_u64, take_bytes, take_u64};

#[derive(Clone, Debug, Default)]
pub(super) struct SlowTraces {
    encoded: Vec<u8>,
    /// Reasons of stalls, which traces name by their place here, from 1.
    stalls: Vec<&'static str>,
}

impl SlowTraces {
    pub(super) fn of(traces: &[Trace]) -> SlowTraces {
        let mut slow = SlowTraces::default();
        traces.iter().for_each(|trace| slow.add(trace));
        slow.encoded.shrink_to_fit();
        slow.stalls.shrink_to_fit();
        slow
    }

    fn add(&mut self, trace: &Trace) {
        let stall = trace.stall.map_or(0, |stall| self.number_of(stall));
        let out = &mut self.encoded;
        let stamps = &trace.stamps;
        put_u64(out, stamps.arrival_ns);
        let mut last_ns = stamps.arrival_ns;
        for stamp_ns in [
            stamps.parsed_ns,
            stamps.queued_ns,
            stamps.started_ns,
            stamps.done_ns,
            stamps.written_ns,
        ] {
            // A stage that begins before the last one takes no time, as in `Stamps::phase_ns`.
            put_u64(out, stamp_ns.saturating_sub(last_ns));
            last_ns = last_ns.max(stamp_ns);
        }
        for number in [
            trace.operation as u64,
            u64::from(trace.status.as_u16()),
            stall as u64,
            u64::from(trace.read.table_count),
            u64::from(trace.read.block_count),
            u64::from(trace.read.block_read_count),
            trace.read.block_read_bytes,
            trace.read.block_read_ns,
            trace.received_bytes,
            trace.sent_bytes,
            u64::from(trace.key.key_bytes),
            trace.key.bytes().len() as u64,
        ] {
            put_u64(out, number);
        }
        out.extend_from_slice(trace.key.bytes());
    }

    fn number_of(&mut self, stall: &'static str) -> usize {
        let known = self.stalls.iter().position(|known| *known == stall);
        1 + known.unwrap_or_else(|| {
            self.stalls.push(stall);
            self.stalls.len() - 1
        })
    }

    pub(super) fn traces(&self) -> impl Iterator<Item = Trace> {
        let mut rest = &self.encoded[..];
        std::iter::from_fn(move || self.decode(&mut rest))
    }

    /// `None` at the end.
    fn decode(&self, input: &mut &[u8]) -> Option<Trace> {
        let arrival_ns = take_u64(input)?;
        let mut last_ns = arrival_ns;
        let mut next_ns = || {
            last_ns += take_u64(input)?;
            Some(last_ns)
        };
        let stamps = Stamps {
            arrival_ns,
            parsed_ns: next_ns()?,
            queued_ns: next_ns()?,
            started_ns: next_ns()?,
            done_ns: next_ns()?,
            written_ns: next_ns()?,
        };
        let operation = *Operation::ALL.get(take_u64(input)? as usize)?;
        let status = StatusCode::from_u16(u16::try_from(take_u64(input)?).ok()?).ok()?;
        let stall = (take_u64(input)? as usize)
            .checked_sub(1)
            .and_then(|place| self.stalls.get(place).copied());
        let mut count = || u32::try_from(take_u64(input)?).ok();
        let read = ReadTrace {
            table_count: count()?,
            block_count: count()?,
            block_read_count: count()?,
            block_read_bytes: take_u64(input)?,
            block_read_ns: take_u64(input)?,
        };
        let (received_bytes, sent_bytes) = (take_u64(input)?, take_u64(input)?);
        let key_bytes = u16::try_from(take_u64(input)?).ok()?;
        let start_bytes = take_u64(input)? as usize;
        let key = KeyStart::again(key_bytes, take_bytes(input, start_bytes)?);
        let remote = RemoteCourse::default();
        Some(Trace {
            operation,
            status,
            stamps,
            key,
            read,
            stall,
            remote,
            received_bytes,
            sent_bytes,
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.encoded.capacity() + self.stalls.capacity() * size_of::<&'static str>()
    }
}
