//! Finds the connections that have kept the server waiting for too long.
//!
//! All connections are checked once a period ([`Limits::period`]). The connection's own task does
//! what is due: it is woken, and checks its [`Progress`](super::phase::Progress).
//!
//! Connections that came together become due together, and a thousand time-outs at once would hold
//! up the others for many milliseconds. So a period has slices, each of which checks its share of
//! the connections, and a turn wakes few of them.

use super::context::ConnContext;
use super::phase::Limits;
use std::rc::Rc;
use std::time::Duration;

/// Slices of a period, none of them shorter than this.
const SLICE_COUNT_MAX: usize = 32;
const SLICE_MIN: Duration = Duration::from_millis(20);

fn slice_count(period: Duration) -> usize {
    let count = period.as_nanos() / SLICE_MIN.as_nanos();
    usize::try_from(count).map_or(SLICE_COUNT_MAX, |count| count.clamp(1, SLICE_COUNT_MAX))
}

/// Sweeps. Never returns.
pub(crate) async fn run(cx: Rc<ConnContext>) {
    let limits = Limits::new(&cx.config);
    let slices = slice_count(limits.period);
    let rest = limits.period / u32::try_from(slices).unwrap_or(1);
    loop {
        for slice in 0..slices {
            // A fixed schedule would, after a pause of the machine, end limits before the client
            // had its time.
            tokio::time::sleep(rest).await;
            let mut next = Some(slice);
            while let Some(first) = next {
                // Entries come and go in between; the list never gets shorter.
                next = cx.open.sweep(first, slices, &limits);
                tokio::task::yield_now().await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
