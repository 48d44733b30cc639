//! The open connections of a selector, and the sweep that finds those that have kept it waiting for
//! too long.
//!
//! All connections are looked at once in a while ([`Limits::period`]), so that no request pays for
//! a timer and 10,000 idle connections are nothing but 10,000 entries in a list. The connection's
//! own task does what is due: it is woken, and asks its [`crate::activity::Activity`].
//!
//! Connections that came together are due together, and a thousand time-outs at once would hold up
//! everybody else for many milliseconds. So the period has slices, each of which looks at its share
//! of the connections, and few of them are woken in a turn.

use crate::activity::Limits;
use crate::io::SocketState;
use crate::selector::Selector;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// Slices of a period, none of them shorter than this.
const SLICE_COUNT_MAX: usize = 32;
const SLICE_MIN: Duration = Duration::from_millis(20);
/// Connections that are looked at before other tasks have their turn,
const TURN_COUNT: usize = 256;
/// and of these, connections that are woken: ending one takes far longer than looking at one.
const TURN_WAKE_COUNT: usize = 8;

/// The open connections of a selector.
#[derive(Default)]
pub(crate) struct Connections {
    /// By their numbers. A number is used again when its connection has gone.
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

struct Entry {
    task: Waker,
    socket: Rc<SocketState>,
}

impl Connections {
    /// Enters a connection and its task; its number.
    pub(crate) fn enter(&mut self, task: &Waker, socket: &Rc<SocketState>) -> usize {
        let entry = Some(Entry { task: task.clone(), socket: Rc::clone(socket) });
        match self.free.pop() {
            Some(number) => {
                self.entries[number] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    /// Takes a connection off the list.
    pub(crate) fn leave(&mut self, number: usize) {
        let left = self.entries[number].take();
        debug_assert!(left.is_some(), "a connection leaves once");
        self.free.push(number);
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Wakes the tasks of all connections.
    pub(crate) fn wake_all(&self) {
        self.entries.iter().flatten().for_each(|entry| entry.task.wake_by_ref());
    }

    /// Looks at the connections of the numbers `first`, `first + step` and so on, as many as one
    /// turn may; with which number to go on.
    fn sweep(&self, first: usize, step: usize, limits: &Limits) -> Option<usize> {
        let mut woken_count = 0;
        let mut numbers = (first..self.entries.len()).step_by(step);
        for number in numbers.by_ref().take(TURN_COUNT) {
            let Some(entry) = &self.entries[number] else {
                continue;
            };
            // While the kernel refuses its bytes, the time of a slow reader runs.
            if !entry.socket.is_blocked() && entry.socket.activity.sweep(limits) {
                entry.task.wake_by_ref();
                woken_count += 1;
            }
            if woken_count == TURN_WAKE_COUNT {
                break;
            }
        }
        numbers.next()
    }
}

/// How many slices a period has.
fn slice_count(period: Duration) -> usize {
    let count = period.as_nanos() / SLICE_MIN.as_nanos();
    usize::try_from(count).map_or(SLICE_COUNT_MAX, |count| count.clamp(1, SLICE_COUNT_MAX))
}

/// Sweeps for ever.
pub(crate) async fn run(selector: Rc<Selector>) {
    let limits = Limits::new(&selector.shared.config);
    let slices = slice_count(limits.period);
    let rest = limits.period / u32::try_from(slices).unwrap_or(1);
    loop {
        for slice in 0..slices {
            // Not by a fixed schedule: after a pause of the machine no limit is over before the
            // client had its time.
            tokio::time::sleep(rest).await;
            let mut next = Some(slice);
            while let Some(first) = next {
                // Entries come and go in between; the list never gets shorter.
                next = selector.connections.borrow().sweep(first, slices, &limits);
                tokio::task::yield_now().await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
