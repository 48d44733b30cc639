//! Random windows and requests, for tests.

use super::{History, WINDOW_NS, Window};
use crate::http::Operation;
use crate::store::ReadTrace;
use crate::timing::{KeyStart, Recorded, SECOND_NS, Stamps, Trace};
use http::StatusCode;
use kvant_env::host::own::OwnFigures;
use kvant_env::rng::Rng;
use std::ops::Range;

fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> rng.below(64)
}

fn recorded(operation: Operation, rng: &mut Rng) -> Recorded {
    let mut bucket = 0;
    let buckets = (0..1 + rng.below(40)).map(|_| {
        bucket += 1 + rng.below(12) as u16;
        (bucket, 1 + (number(rng) >> 8))
    });
    Recorded {
        buckets: buckets.collect(),
        operation,
        failed_count: rng.below(3),
        max_ns: number(rng),
        block_read_ns: number(rng),
        phases_ns: std::array::from_fn(|_| number(rng)),
    }
}

pub(crate) fn window(start_ns: u64, rng: &mut Rng) -> Window {
    let figure = |rng: &mut Rng| (rng.below(4) > 0).then(|| number(rng) / 2);
    let operations = Operation::ALL.into_iter().filter(|_| rng.below(2) == 0);
    let operations: Vec<Operation> = operations.collect();
    Window {
        start_ns,
        length_ns: WINDOW_NS,
        machine: OwnFigures {
            cpu_ns: number(rng),
            run_queue_wait_ns: figure(rng),
            stolen_ns: figure(rng),
            all_cpu_ns: figure(rng),
            read_bytes: figure(rng),
            written_bytes: figure(rng),
            resent_segments: figure(rng),
        },
        operations: operations.into_iter().map(|operation| recorded(operation, rng)).collect(),
    }
}

pub(crate) fn trace(written_ns: u64, rng: &mut Rng) -> Trace {
    let mut stamps = [(); 6].map(|()| written_ns - rng.below(written_ns));
    stamps.sort_unstable();
    let [arrival_ns, parsed_ns, queued_ns, started_ns, done_ns, _] = stamps;
    let key = vec![rng.below(256) as u8; rng.below(100) as usize];
    Trace {
        operation: Operation::ALL[rng.below(7) as usize],
        status: StatusCode::from_u16(200 + rng.below(300) as u16).unwrap(),
        stamps: Stamps { arrival_ns, parsed_ns, queued_ns, started_ns, done_ns, written_ns },
        key: KeyStart::of(&key),
        read: ReadTrace {
            table_count: rng.below(9) as u32,
            block_count: rng.below(9) as u32,
            block_read_count: rng.below(9) as u32,
            block_read_bytes: number(rng),
            block_read_ns: number(rng),
        },
        stall: [None, Some("l0_tables"), Some("memtables")][rng.below(3) as usize],
        received_bytes: number(rng),
        sent_bytes: number(rng),
        ..Trace::default()
    }
}

/// The windows of a second that have these numbers, of ten; returns them.
pub(crate) fn add_windows(
    history: &History,
    second: u64,
    numbers: Range<u64>,
    rng: &mut Rng,
) -> Vec<Window> {
    let windows: Vec<Window> =
        numbers.map(|number| window(second * SECOND_NS + number * WINDOW_NS, rng)).collect();
    windows.iter().for_each(|window| history.add(window));
    windows
}

/// One second of ten windows; returns them.
pub(crate) fn add_second(
    history: &History,
    second: u64,
    rng: &mut Rng,
    slowest: &[Trace],
) -> Vec<Window> {
    let windows = add_windows(history, second, 0..10, rng);
    history.end_second(slowest);
    windows
}
