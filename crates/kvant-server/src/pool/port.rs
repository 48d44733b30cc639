//! A selector's side of the pool.
//!
//! The first job of a turn of the event loop wakes the sender, which the runtime's first-in
//! first-out run queue puts behind every connection that was ready in this turn; when it runs, it
//! hands all their jobs over under one lock. What comes back is taken from the inbox together too,
//! and wakes the futures that wait for it.
//!
//! Invariants:
//! 1. A job has a slot from being sent until its outcome has been taken, or has arrived with nobody
//!    waiting for it any more: no two jobs in flight share one.
//! 2. Nothing of anybody else's runs (wakers, destructors) while a cell is borrowed.
//!
//! Threads: all of it belongs to one selector; other threads only reach its inbox.

use super::Pool;
use super::inbox::Arrival;
use super::queue::{Job, Ticket};
use super::work::{Done, Work};
use super::worker::Outbox;
use kvant_base::tag::{self, Stage};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How often a selector that waits for outcomes looks for jobs that have waited for too long, in
/// parts of the longest wait.
const LOOKS_PER_WAIT: u32 = 4;
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(10);
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(250);

/// Where a selector sends work and gets it back.
pub(crate) struct Port {
    pool: Arc<Pool>,
    selector: usize,
    jobs: RefCell<Vec<Job>>,
    sender: Cell<Option<Waker>>,
    slots: RefCell<Slots>,
    watcher: Cell<Option<Waker>>,
}

impl Port {
    /// The port of the selector with this index.
    pub(crate) fn new(pool: Arc<Pool>, selector: usize) -> Rc<Port> {
        Rc::new(Port {
            pool,
            selector,
            jobs: RefCell::default(),
            sender: Cell::default(),
            slots: RefCell::default(),
            watcher: Cell::default(),
        })
    }

    /// Starts the port's tasks. To be called once, inside the selector's runtime.
    pub(crate) fn spawn(self: &Rc<Self>) {
        tokio::task::spawn_local(hand_over(Rc::clone(self)));
        tokio::task::spawn_local(receive(Rc::clone(self)));
        tokio::task::spawn_local(watch(Rc::clone(self)));
    }

    /// Sends work to the pool, with everything else that is sent in this turn of the event loop.
    pub(crate) fn send(self: &Rc<Self>, work: Work) -> Later {
        let slot = self.slots.borrow_mut().add();
        let ticket = Ticket { selector: self.selector, slot };
        let job = Job::new(work, ticket, self.pool.clock().monotonic_ns());
        self.jobs.borrow_mut().push(job);
        if let Some(sender) = self.sender.take() {
            sender.wake();
        }
        if let Some(watcher) = self.watcher.take() {
            watcher.wake();
        }
        Later { port: Rc::clone(self), slot: Some(slot) }
    }

    /// Jobs whose outcome has not arrived, or has not been taken.
    pub(super) fn in_flight_count(&self) -> usize {
        self.slots.borrow().in_flight_count()
    }

    /// Gives a job its outcome.
    fn finish(&self, arrival: Arrival) {
        let left = self.slots.borrow_mut().finish(arrival);
        if let Left::Waker(waker) = left {
            waker.wake();
        }
    }
}

/// Hands over what is sent, for ever.
async fn hand_over(port: Rc<Port>) {
    let (mut jobs, mut gone) = (Vec::new(), Vec::new());
    let mut outbox = Outbox::default();
    loop {
        poll_fn(|cx| {
            let mut sent = port.jobs.borrow_mut();
            if sent.is_empty() {
                port.sender.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            mem::swap(&mut *sent, &mut jobs);
            Poll::Ready(())
        })
        .await;
        let _tag = tag::stage(Stage::Dispatch);
        let now_ns = port.pool.clock().monotonic_ns();
        port.pool.hand_over(&mut jobs, &mut gone, now_ns);
        port.pool.settle(&mut gone, now_ns, &mut outbox);
        outbox.of(port.selector).drain(..).for_each(|arrival| port.finish(arrival));
        // Jobs of other selectors that had to make room.
        outbox.deliver(&port.pool);
    }
}

/// Gives the jobs whose outcomes arrive their outcomes, for ever.
async fn receive(port: Rc<Port>) {
    let inbox = port.pool.inbox(port.selector);
    let mut arrivals = Vec::new();
    loop {
        poll_fn(|cx| inbox.poll_take(&mut arrivals, cx)).await;
        arrivals.drain(..).for_each(|arrival| port.finish(arrival));
    }
}

/// Sees to it that jobs do not wait for longer than they may even when no worker comes to look, for
/// ever.
async fn watch(port: Rc<Port>) {
    let wait_max = Duration::from_nanos(port.pool.config.queue_wait_max_ns);
    let interval = (wait_max / LOOKS_PER_WAIT).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX);
    loop {
        poll_fn(|cx| {
            if port.in_flight_count() == 0 {
                port.watcher.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        tokio::time::sleep(interval).await;
        port.pool.give_up();
    }
}

/// Resolves when the work is done or refused. Dropping it does not take the work back: it is done,
/// and nobody hears of it.
pub(crate) struct Later {
    port: Rc<Port>,
    /// `None` once it has resolved.
    slot: Option<usize>,
}

impl Future for Later {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        let slot = self.slot.expect("no future is polled after its end");
        let done = self.port.slots.borrow_mut().poll_take(slot, cx);
        if done.is_ready() {
            self.slot = None;
        }
        done
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let left = self.port.slots.borrow_mut().abandon(slot);
            drop(left);
        }
    }
}

/// The jobs of a selector that are in flight.
#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

enum Slot {
    Free,
    /// In flight.
    Waiting(Option<Waker>),
    /// In flight, but nobody waits.
    Abandoned,
    Finished(Done),
}

/// What is left of a slot's content, to be woken or dropped by the caller.
enum Left {
    Nothing,
    Waker(Waker),
    /// Dropped outside the borrow of the slots: it may hold what tells others of its end.
    Done(#[expect(dead_code, reason = "kept to be dropped by the caller")] Done),
}

impl Slots {
    fn in_flight_count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn add(&mut self) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() - 1
        });
        self.slots[slot] = Slot::Waiting(None);
        slot
    }

    fn release(&mut self, slot: usize) -> Slot {
        self.free.push(slot);
        mem::replace(&mut self.slots[slot], Slot::Free)
    }

    fn poll_take(&mut self, slot: usize, cx: &mut Context<'_>) -> Poll<Done> {
        match &mut self.slots[slot] {
            Slot::Waiting(Some(waker)) => waker.clone_from(cx.waker()),
            Slot::Waiting(waker) => *waker = Some(cx.waker().clone()),
            _ => match self.release(slot) {
                Slot::Finished(done) => return Poll::Ready(done),
                _ => unreachable!("what is waited for is neither free nor abandoned"),
            },
        }
        Poll::Pending
    }

    fn finish(&mut self, arrival: Arrival) -> Left {
        let Arrival { slot, done } = arrival;
        match &mut self.slots[slot] {
            Slot::Waiting(waker) => {
                let waker = waker.take();
                self.slots[slot] = Slot::Finished(done);
                waker.map_or(Left::Nothing, Left::Waker)
            }
            Slot::Abandoned => {
                self.release(slot);
                Left::Done(done)
            }
            Slot::Free | Slot::Finished(_) => unreachable!("a job has one outcome"),
        }
    }

    fn abandon(&mut self, slot: usize) -> Left {
        match &mut self.slots[slot] {
            Slot::Finished(_) => match self.release(slot) {
                Slot::Finished(done) => Left::Done(done),
                _ => Left::Nothing,
            },
            waiting => {
                *waiting = Slot::Abandoned;
                Left::Nothing
            }
        }
    }
}
