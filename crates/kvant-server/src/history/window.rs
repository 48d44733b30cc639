//! A window: the requests whose responses were sent during it, and what the machine gave.
//!
//! It is kept as varints: its start and length; the CPU time; the machine's figures, each plus one,
//! 0 where unknown; the number of operations; of each its number, failures, maximum, time of
//! block reads, phases, and the buckets, their numbers as differences, with the requests.

use crate::http::Operation;
use crate::timing::Recorded;
use kvant_base::varint::{put_u64, take_u64};
use kvant_env::host::own::OwnFigures;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    pub(crate) length_ns: u64,
    pub(crate) machine: OwnFigures,
    /// Of those that occurred.
    pub(crate) operations: Vec<Recorded>,
}

impl Window {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.start_ns);
        put_u64(out, self.length_ns);
        let machine = &self.machine;
        put_u64(out, machine.cpu_ns);
        for figure in [
            machine.run_queue_wait_ns,
            machine.stolen_ns,
            machine.all_cpu_ns,
            machine.read_bytes,
            machine.written_bytes,
            machine.resent_segments,
        ] {
            put_u64(out, figure.map_or(0, |figure| figure.saturating_add(1)));
        }
        put_u64(out, self.operations.len() as u64);
        for recorded in &self.operations {
            put_u64(out, recorded.operation as u64);
            put_u64(out, recorded.failed_count);
            put_u64(out, recorded.max_ns);
            put_u64(out, recorded.block_read_ns);
            recorded.phases_ns.iter().for_each(|phase_ns| put_u64(out, *phase_ns));
            put_u64(out, recorded.buckets.len() as u64);
            let mut last = 0;
            for &(bucket, count) in &recorded.buckets {
                put_u64(out, u64::from(bucket - last));
                put_u64(out, count);
                last = bucket;
            }
        }
    }

    /// Decodes and takes the next window of `input`; `None` at its end.
    pub(super) fn decode(input: &mut &[u8]) -> Option<Window> {
        let (start_ns, length_ns) = (take_u64(input)?, take_u64(input)?);
        let cpu_ns = take_u64(input)?;
        let mut figure = || Some(take_u64(input)?.checked_sub(1));
        let machine = OwnFigures {
            cpu_ns,
            run_queue_wait_ns: figure()?,
            stolen_ns: figure()?,
            all_cpu_ns: figure()?,
            read_bytes: figure()?,
            written_bytes: figure()?,
            resent_segments: figure()?,
        };
        let count = take_u64(input)?;
        let operations = (0..count).map(|_| decode_recorded(input)).collect::<Option<_>>()?;
        Some(Window { start_ns, length_ns, machine, operations })
    }
}

fn decode_recorded(input: &mut &[u8]) -> Option<Recorded> {
    let operation = *Operation::ALL.get(take_u64(input)? as usize)?;
    let (failed_count, max_ns) = (take_u64(input)?, take_u64(input)?);
    let block_read_ns = take_u64(input)?;
    let mut phases_ns = [0; _];
    for phase_ns in &mut phases_ns {
        *phase_ns = take_u64(input)?;
    }
    let mut bucket = 0;
    let buckets = (0..take_u64(input)?)
        .map(|_| {
            bucket += u16::try_from(take_u64(input)?).ok()?;
            Some((bucket, take_u64(input)?))
        })
        .collect::<Option<_>>()?;
    Some(Recorded { operation, failed_count, max_ns, block_read_ns, phases_ns, buckets })
}
