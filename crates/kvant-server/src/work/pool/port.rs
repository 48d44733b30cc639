//! A selector's side of the pool.
//!
//! The first job of a turn of the event loop wakes the sender, which the runtime's first-in
//! first-out queue runs after every connection that was ready in this turn; it hands all their jobs
//! over under one lock. Replies are taken from the inbox together, too, and wake the futures that
//! wait for them.
//!
//! Invariants:
//! 1. A job has a slot from being sent until its reply was taken, or arrived with nothing waiting
//!    for it any more: no two jobs of a kind in flight share one.
//! 2. No foreign code (wakers, destructors) runs while a cell is borrowed.
//!
//! Threads: all of it belongs to one selector; other threads only reach its inbox.

use super::inbox::Outbox;
use super::queue::Job;
use super::shared::Pool;
use super::work::{Done, InFlight, PoolWork, Ticket};
use kvant_base::tag::{self, Stage};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How often, within the longest wait, a selector with jobs in flight checks for those that have
/// waited too long.
const CHECKS_PER_WAIT: u32 = 4;
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(250);

/// Where a selector sends work and receives replies.
pub(crate) struct Port {
    pool: Arc<Pool>,
    selector: usize,
    jobs: RefCell<Vec<Job>>,
    sender: Cell<Option<Waker>>,
    pub(super) in_flight: InFlight,
    watcher: Cell<Option<Waker>>,
}

impl Port {
    pub(crate) fn new(pool: Arc<Pool>, selector: usize) -> Rc<Port> {
        Rc::new(Port {
            pool,
            selector,
            jobs: RefCell::default(),
            sender: Cell::default(),
            in_flight: InFlight::default(),
            watcher: Cell::default(),
        })
    }

    /// Starts the port's tasks. Called once, inside the selector's runtime.
    pub(crate) fn spawn_tasks(self: &Rc<Self>) {
        tokio::task::spawn_local(hand_over(Rc::clone(self)));
        tokio::task::spawn_local(receive(Rc::clone(self)));
        tokio::task::spawn_local(watch(Rc::clone(self)));
    }

    /// Sends work to the pool, with everything else that is sent in this turn of the event loop.
    pub(in crate::work) fn send<W: PoolWork>(self: &Rc<Self>, work: W) -> Later<W> {
        let slot = W::slots(&self.in_flight).borrow_mut().add();
        let ticket = Ticket { selector: self.selector, slot };
        let job = Job::new(work.into_work(), ticket, self.pool.clock.monotonic_ns());
        self.jobs.borrow_mut().push(job);
        for waker in [self.sender.take(), self.watcher.take()].into_iter().flatten() {
            waker.wake();
        }
        Later { port: Rc::clone(self), slot: Some(slot), done: PhantomData }
    }
}

/// Hands over what requests send. Never returns.
async fn hand_over(port: Rc<Port>) {
    let (mut jobs, mut removed) = (Vec::new(), Vec::new());
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
        let now_ns = port.pool.clock.monotonic_ns();
        port.pool.hand_over(&mut jobs, &mut removed, now_ns);
        port.pool.settle(&mut removed, now_ns, &mut outbox);
        outbox
            .to(port.selector)
            .drain(..)
            .for_each(|own| port.in_flight.receive(own.slot, own.reply));
        // Jobs of other selectors that had to make room.
        outbox.deliver(&port.pool.inboxes);
    }
}

/// Passes replies on to the futures that wait for them. Never returns.
async fn receive(port: Rc<Port>) {
    let inbox = &port.pool.inboxes[port.selector];
    let mut deliveries = Vec::new();
    loop {
        poll_fn(|cx| inbox.poll_take(&mut deliveries, cx)).await;
        deliveries.drain(..).for_each(|own| port.in_flight.receive(own.slot, own.reply));
    }
}

/// Ends the wait of jobs that have waited for too long while every worker was busy. Never returns.
async fn watch(port: Rc<Port>) {
    let wait_max = port.pool.config.queue_wait_max;
    let interval = (wait_max / CHECKS_PER_WAIT).clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX);
    loop {
        poll_fn(|cx| {
            if port.in_flight.count() == 0 {
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

/// Resolves when the work is done or refused. Dropping it does not take the work back: the reply is
/// discarded.
pub(in crate::work) struct Later<W: PoolWork> {
    port: Rc<Port>,
    /// `None` once it has resolved.
    slot: Option<usize>,
    done: PhantomData<fn() -> W>,
}

impl<W: PoolWork> Future for Later<W> {
    type Output = Done<W>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done<W>> {
        let slot = self.slot.expect("no future is polled after its end");
        let done = W::slots(&self.port.in_flight).borrow_mut().poll_take(slot, cx);
        if done.is_ready() {
            self.slot = None;
        }
        done
    }
}

impl<W: PoolWork> Drop for Later<W> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let unwanted = W::slots(&self.port.in_flight).borrow_mut().abandon(slot);
            drop(unwanted);
        }
    }
}
