//! The open connections of a selector.
//!
//! [`mod@super::sweep`] checks the list, so that no request pays for a timer.

use super::phase::Limits;
use super::socket::SocketState;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;
use tokio::sync::Notify;

/// Connections that are checked before other tasks have their turn,
pub(super) const TURN_COUNT: usize = 256;
/// and of these, connections that are woken: ending one takes far longer than checking one.
pub(super) const TURN_WAKE_COUNT: usize = 8;

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

    pub(crate) fn wake_all(&self) {
        self.list.borrow().entries.iter().flatten().for_each(|entry| entry.task.wake_by_ref());
    }

    pub(crate) async fn wait_until_none(&self) {
        while self.count() > 0 {
            self.none_left.notified().await;
        }
    }

    /// Checks the connections of the numbers `first`, `first + step` and so on, as many as one turn
    /// may; returns the number to go on with.
    pub(super) fn sweep(&self, first: usize, step: usize, limits: &Limits) -> Option<usize> {
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
