//! The open connections of a selector, and the sweep that finds those that have kept it waiting for too long.
//!
//! All connections are looked at once in a while ([`Limits::period`]), so that no request pays for a timer and 10,000 idle
//! connections are nothing but 10,000 entries in a list. The connection's own task does what is due: it is woken, and asks its
//! [`crate::activity::Activity`].

use crate::activity::Limits;
use crate::io::SocketState;
use crate::selector::Selector;
use std::rc::Rc;
use std::task::Waker;

/// Connections that are looked at before other tasks have their turn: some tens of microseconds.
const TURN_COUNT: usize = 512;

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
        let entry = Some(Entry {
            task: task.clone(),
            socket: Rc::clone(socket),
        });
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
        self.entries
            .iter()
            .flatten()
            .for_each(|entry| entry.task.wake_by_ref());
    }

    /// Looks at the connections from number `first` on, at most [`TURN_COUNT`]; with which number to go on.
    fn sweep(&self, first: usize, limits: &Limits) -> Option<usize> {
        let next = (first + TURN_COUNT).min(self.entries.len());
        for entry in self.entries[first..next].iter().flatten() {
            // While the kernel refuses its bytes, the time of a slow reader runs.
            if !entry.socket.is_blocked() && entry.socket.activity.sweep(limits) {
                entry.task.wake_by_ref();
            }
        }
        (next < self.entries.len()).then_some(next)
    }
}

/// Sweeps for ever.
pub(crate) async fn run(selector: Rc<Selector>) {
    let limits = Limits::new(&selector.shared.config);
    loop {
        // Not by a fixed schedule: after a pause of the machine no limit is over before the client had its time.
        tokio::time::sleep(limits.period).await;
        let mut next = Some(0);
        while let Some(first) = next {
            // Entries come and go in between; the list never gets shorter.
            next = selector.connections.borrow().sweep(first, &limits);
            tokio::task::yield_now().await;
        }
    }
}
