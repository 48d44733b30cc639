//! The open connections of a selector, and the sweep that finds those that have kept it waiting for
//! too long.
//!
//! All connections are checked once a period ([`Limits::period`]), so that no request pays for a
//! timer and 10,000 idle connections are 10,000 entries in a list. The connection's own task does
//! what is due: it is woken, and asks its [`Progress`](super::phase::Progress).
//!
//! Connections that came together become due together, and a thousand time-outs at once would hold
//! up the others for many milliseconds. So a period has slices, each of which checks its share of
//! the connections, and a turn wakes few of them.

use super::ConnContext;
use super::phase::Limits;
use super::socket::SocketState;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;

/// Slices of a period, none of them shorter than this.
const SLICE_COUNT_MAX: usize = 32;
const SLICE_MIN: Duration = Duration::from_millis(20);
/// Connections that are checked before other tasks have their turn,
const TURN_COUNT: usize = 256;
/// and of these, connections that are woken: ending one takes far longer than checking one.
const TURN_WAKE_COUNT: usize = 8;

/// The open connections of a selector.
#[derive(Default)]
pub(crate) struct OpenConnections {
    list: RefCell<List>,
    none_left: Notify,
}

#[derive(Default)]
struct List {
    /// By number. The number of a closed connection is used again.
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
}

struct Entry {
    task: Waker,
    socket: Rc<SocketState>,
}

impl OpenConnections {
    /// Adds a connection and its task, and returns its number.
    pub(super) fn add(&self, task: &Waker, socket: &Rc<SocketState>) -> usize {
        let list = &mut *self.list.borrow_mut();
        let entry = Some(Entry { task: task.clone(), socket: Rc::clone(socket) });
        match list.free.pop() {
            Some(number) => {
                list.entries[number] = entry;
                number
            }
            None => {
                list.entries.push(entry);
                list.entries.len() - 1
            }
        }
    }

    pub(super) fn remove(&self, number: usize) {
        let mut list = self.list.borrow_mut();
        let removed = list.entries[number].take();
        debug_assert!(removed.is_some(), "a connection is removed once");
        list.free.push(number);
        if list.count() == 0 {
            self.none_left.notify_one();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.list.borrow().count()
    }

    /// Wakes the tasks of all connections.
    pub(crate) fn wake_all(&self) {
        self.list.borrow().entries.iter().flatten().for_each(|entry| entry.task.wake_by_ref());
    }

    /// Resolves when no connection is open.
    pub(crate) async fn wait_until_none(&self) {
        while self.count() > 0 {
            self.none_left.notified().await;
        }
    }

    /// Checks the connections of the numbers `first`, `first + step` and so on, as many as one turn
    /// may; returns the number to go on with.
    fn sweep(&self, first: usize, step: usize, limits: &Limits) -> Option<usize> {
        let list = self.list.borrow();
        let mut woken_count = 0;
        let mut numbers = (first..list.entries.len()).step_by(step);
        for number in numbers.by_ref().take(TURN_COUNT) {
            let Some(entry) = &list.entries[number] else {
                continue;
            };
            // While the kernel refuses its bytes, the limit for slow readers applies.
            if !entry.socket.is_blocked() && entry.socket.progress.sweep(limits) {
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

impl List {
    fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

/// How many slices a period has.
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
