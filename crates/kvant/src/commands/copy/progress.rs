//! What is done, on standard error, every two seconds.

use super::records::Record;
use crate::exit::note;
use kvant_env::Clock;
use std::sync::Arc;

const INTERVAL_NS: u64 = 2_000_000_000;
/// Records between two looks at the clock.
const LOOK_EVERY: u64 = 256;

pub(super) struct Progress {
    clock: Arc<dyn Clock>,
    verb: &'static str,
    count: u64,
    bytes: u64,
    shown: (u64, u64, u64),
}

impl Progress {
    /// Of records that are `verb`, such as `copied`.
    pub(super) fn new(clock: &Arc<dyn Clock>, verb: &'static str) -> Progress {
        let shown = (clock.monotonic_ns(), 0, 0);
        Progress { clock: Arc::clone(clock), verb, count: 0, bytes: 0, shown }
    }

    pub(super) fn add(&mut self, record: Record<'_>) {
        self.count += 1;
        self.bytes += (record.key.len() + record.value.len()) as u64;
        if !self.count.is_multiple_of(LOOK_EVERY) {
            return;
        }
        let (now_ns, (shown_ns, count, bytes)) = (self.clock.monotonic_ns(), self.shown);
        let elapsed_ns = now_ns - shown_ns;
        if elapsed_ns < INTERVAL_NS {
            return;
        }
        let a_second = |amount: u64| {
            let amount = u128::from(amount) * 1_000_000_000 / u128::from(elapsed_ns);
            u64::try_from(amount).unwrap_or(u64::MAX)
        };
        note(&format!(
            "{} records, {} {}; {} records/s, {}/s",
            self.count,
            mebibytes(self.bytes),
            self.verb,
            a_second(self.count - count),
            mebibytes(a_second(self.bytes - bytes)),
        ));
        self.shown = (now_ns, self.count, self.bytes);
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
