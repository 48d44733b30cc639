use super::super::work::Outcome;
use super::*;
use crate::timing::StorageWork;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

#[derive(Default)]
struct WakeCount(AtomicU64);

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn deliver(inbox: &Inbox, slots: impl IntoIterator<Item = usize>) {
    let arrival = |slot| Arrival {
        slot,
        done: Done {
            outcome: Outcome::Got(Ok(kvant_engine::Lookup::Known(None))),
            work: StorageWork::default(),
        },
    };
    inbox.deliver(&mut slots.into_iter().map(arrival).collect());
}

#[test]
fn a_selector_is_woken_once_for_all_that_comes_before_it_looks() {
    let inbox = Inbox::new();
    let wakes = Arc::<WakeCount>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    let mut arrivals = Vec::new();
    assert!(inbox.poll_take(&mut arrivals, &mut cx).is_pending());
    for round in 1..=2 {
        deliver(&inbox, [1, 2]);
        deliver(&inbox, [3]);
        deliver(&inbox, [4, 5]);
        assert_eq!(wakes.0.load(Ordering::Relaxed), round);
        assert!(inbox.poll_take(&mut arrivals, &mut cx).is_ready());
        let slots: Vec<usize> = arrivals.drain(..).map(|arrival| arrival.slot).collect();
        assert_eq!(slots, [1, 2, 3, 4, 5]);
        assert!(inbox.poll_take(&mut arrivals, &mut cx).is_pending());
    }
}
