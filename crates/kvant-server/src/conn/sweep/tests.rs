use super::*;
use crate::config::ServerConfig;
use crate::conn::open_connections::{OpenConnections, TURN_COUNT, TURN_WAKE_COUNT};
use crate::conn::socket::SocketState;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::task::Waker;

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The wakes of each turn of one slice.
fn sweep_slice(
    connections: &OpenConnections,
    wakes: &Wakes,
    slice: usize,
    slices: usize,
    limits: &Limits,
) -> Vec<usize> {
    let mut turns = Vec::new();
    let mut next = Some(slice);
    while let Some(first) = next {
        next = connections.sweep(first, slices, limits);
        turns.push(wakes.0.swap(0, Ordering::Relaxed));
    }
    turns
}

#[test]
fn connections_that_came_together_are_ended_a_few_at_a_time() {
    const COUNT: usize = 1_000;
    let config = ServerConfig::default();
    let limits = Limits::new(&config);
    let slices = slice_count(limits.period);
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    let task = Waker::from(Arc::clone(&wakes));
    let connections = OpenConnections::default();
    for _ in 0..COUNT {
        let socket = Rc::<SocketState>::default();
        socket.progress.begin_head();
        connections.add(&task, &socket);
    }
    let mut periods_before = 0;
    let woken = loop {
        let turns: Vec<_> = (0..slices)
            .map(|slice| sweep_slice(&connections, &wakes, slice, slices, &limits))
            .collect();
        if turns.iter().flatten().any(|&count| count > 0) {
            break turns;
        }
        periods_before += 1;
    };

    // All in one period, since each is checked once in each: in the first after the whole of
    // the limit.
    let whole = config.head_wait_max.as_nanos().div_ceil(limits.period.as_nanos());
    assert_eq!(periods_before as u128, whole);
    assert_eq!(woken.iter().flatten().sum::<usize>(), COUNT);
    assert!(woken.iter().flatten().all(|&count| count <= TURN_WAKE_COUNT));
    let by_slice = woken.iter().map(|turns| turns.iter().sum::<usize>());
    assert!(by_slice.max() <= Some(COUNT.div_ceil(slices)));
}

#[test]
fn all_connections_are_checked_in_turns() {
    let config = ServerConfig::default();
    let limits = Limits::new(&config);
    let wakes = Wakes(AtomicUsize::new(0));
    let task = Waker::noop();
    let connections = OpenConnections::default();
    (0..10_000).for_each(|_| {
        connections.add(task, &Rc::default());
    });
    for slices in [1, 32] {
        let turns = (0..slices)
            .map(|slice| sweep_slice(&connections, &wakes, slice, slices, &limits).len());
        let least = 10_000_usize.div_ceil(slices).div_ceil(TURN_COUNT);
        assert!(turns.into_iter().all(|count| count == least));
    }
}

#[test]
fn a_short_period_has_few_slices() {
    let count = |ms| slice_count(Duration::from_millis(ms));
    assert_eq!([10, 20, 500, 1_000, 100_000].map(count), [1, 1, 25, 32, 32]);
}
