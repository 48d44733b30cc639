use super::*;
use crate::store::Lookup;
use crate::timing::StorageWork;
use crate::work::pool::work::{Done, PoolReply};
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
    let delivery = |slot| Delivery {
        slot,
        reply: AnyReply::Get(Done {
            reply: PoolReply::Finished(Ok(Lookup::Known(None))),
            work: StorageWork::default(),
        }),
    };
    inbox.deliver(&mut slots.into_iter().map(delivery).collect());
}

#[test]
fn a_selector_is_woken_once_for_all_replies_before_it_takes_them() {
    let inbox = Inbox::new();
    let wakes = Arc::<WakeCount>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    let mut deliveries = Vec::new();
    assert!(inbox.poll_take(&mut deliveries, &mut cx).is_pending());
    for round in 1..=2 {
        deliver(&inbox, [1, 2]);
        deliver(&inbox, [3]);
        deliver(&inbox, [4, 5]);
        assert_eq!(wakes.0.load(Ordering::Relaxed), round);
        assert!(inbox.poll_take(&mut deliveries, &mut cx).is_ready());
        let slots: Vec<usize> = deliveries.drain(..).map(|delivery| delivery.slot).collect();
        assert_eq!(slots, [1, 2, 3, 4, 5]);
        assert!(inbox.poll_take(&mut deliveries, &mut cx).is_pending());
    }
}
