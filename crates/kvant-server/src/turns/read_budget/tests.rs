use super::*;
use kvant_env::testing::MockClock;
use std::sync::Mutex;
use std::task::Wake;

/// Notes when it is woken.
struct Task {
    number: usize,
    woken: Woken,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
    }
}

/// The tasks that were woken, in order.
type Woken = Arc<Mutex<Vec<usize>>>;

/// A budget, `count` connections, and the tasks that were woken.
fn connections(count: usize) -> (Arc<ReadBudget>, Vec<Arc<Arrival>>, Woken) {
    let budget = ReadBudget::new(Turn::new(Arc::new(MockClock::new(0))));
    let woken = Woken::default();
    let task = |number| Waker::from(Arc::new(Task { number, woken: Arc::clone(&woken) }));
    let arrivals = (0..count).map(|number| Arrival::new(task(number), &budget)).collect();
    (budget, arrivals, woken)
}

fn wake_all(arrivals: &[Arc<Arrival>]) {
    arrivals.iter().for_each(|arrival| Waker::from(Arc::clone(arrival)).wake());
}

#[test]
fn a_turn_wakes_the_tasks_of_its_budget_and_later_ones_the_rest_in_order() {
    const COUNT: usize = 2 * TURN_COUNT_MAX + 3;
    let (budget, arrivals, woken) = connections(COUNT);
    wake_all(&arrivals);
    for turn in 1..=3 {
        let served_count = COUNT.min(turn * TURN_COUNT_MAX);
        assert_eq!(*woken.lock().unwrap(), (0..served_count).collect::<Vec<_>>());
        let waiting = arrivals.iter().position(|arrival| arrival.waits());
        assert_eq!(waiting, (served_count < COUNT).then_some(served_count));
        budget.grant();
    }
    assert_eq!(woken.lock().unwrap().len(), COUNT, "each task is woken once");
}

#[test]
fn a_connection_that_waits_is_not_overtaken_and_waits_once() {
    let (budget, arrivals, woken) = connections(TURN_COUNT_MAX + 2);
    let (first, last) = arrivals.split_at(TURN_COUNT_MAX + 1);
    wake_all(first);
    // The next turn has room, but not before the one that waits.
    assert!(first[TURN_COUNT_MAX].waits());
    wake_all(last);
    wake_all(last);
    assert!(last[0].waits());
    budget.grant();
    let woken = woken.lock().unwrap();
    assert_eq!(woken[TURN_COUNT_MAX..], [TURN_COUNT_MAX, TURN_COUNT_MAX + 1]);
}

#[test]
fn priority_passes_a_budget_that_is_used_up() {
    let (_budget, arrivals, woken) = connections(TURN_COUNT_MAX + 2);
    arrivals[TURN_COUNT_MAX + 1].set_priority(true);
    wake_all(&arrivals);
    assert!(arrivals[TURN_COUNT_MAX].waits());
    assert_eq!(woken.lock().unwrap().last(), Some(&(TURN_COUNT_MAX + 1)));
}
