use super::*;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;
use std::sync::atomic::AtomicUsize;
use std::thread;

/// A block that knows whether it is alive, and how many others are.
struct Counted {
    number: u64,
    copy: u64,
    alive: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Arc<Counted> {
        alive.fetch_add(1, Ordering::Relaxed);
        Arc::new(Counted { number, copy: !number, alive: Arc::clone(alive) })
    }

    fn check(&self) {
        assert_eq!(self.copy, !self.number, "a block was used after its end");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.check();
        self.copy = self.number;
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_pinned_block_outlives_the_shortcut_to_it() {
    let alive = Arc::default();
    let shortcut = Shortcut::default();
    assert!(shortcut.pin().is_none() && shortcut.take().is_none());
    shortcut.set(Counted::new(1, &alive));
    let (first, second) = (shortcut.pin().unwrap(), shortcut.pin().unwrap());
    drop(shortcut.pin());
    shortcut.set(Counted::new(2, &alive));
    assert_eq!((first.number, alive.load(Ordering::Relaxed)), (1, 1), "the second was not set");
    drop(shortcut.take());
    assert!(shortcut.pin().is_none());
    shortcut.set(Counted::new(3, &alive));
    assert_eq!((second.number, shortcut.pin().unwrap().number), (1, 3));
    drop(first);
    let kept = second.to_arc();
    drop(second);
    kept.check();
    assert_eq!((Arc::strong_count(&kept), alive.load(Ordering::Relaxed)), (1, 2));
    drop((kept, shortcut));
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn uses_are_counted_up_to_three_until_they_are_taken() {
    let shortcut = Shortcut::default();
    shortcut.set(Arc::new(5));
    drop(shortcut.pin());
    assert_eq!((shortcut.take_uses(), shortcut.take_uses()), (1, 0));
    (0..9).for_each(|_| drop(shortcut.pin()));
    assert_eq!(shortcut.take_uses(), 3);
    drop(shortcut.take());
    assert_eq!(shortcut.take_uses(), 0);
}

#[test]
fn a_block_that_is_set_again_while_it_is_pinned_has_no_pin_too_few() {
    let alive = Arc::default();
    let shortcut = Shortcut::default();
    shortcut.set(Counted::new(1, &alive));
    let before = shortcut.pin().unwrap();
    shortcut.set(shortcut.take().unwrap());
    let since = shortcut.pin().unwrap();
    drop(before);
    since.check();
    drop(since);
    assert_eq!(Arc::strong_count(&shortcut.take().unwrap()), 1);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn no_more_than_the_most_pins_are_given() {
    let shortcut = Shortcut::default();
    shortcut.set(Arc::new(7));
    let pins: Vec<_> = std::iter::from_fn(|| shortcut.pin()).collect();
    assert_eq!(pins.len() as u64, PINS_MAX);
    drop(pins);
    assert_eq!(Arc::strong_count(&shortcut.take().unwrap()), 1);
}

/// Threads pin, keep, set and take at random: no block is used after its end, and all of them end.
#[test]
fn threads_share_shortcuts() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let alive: Arc<AtomicUsize> = Arc::default();
    let shortcuts: [Shortcut<Counted>; 3] = Default::default();
    thread::scope(|scope| {
        for number in 0..6 {
            let (shortcuts, alive) = (&shortcuts, &alive);
            scope.spawn(move || {
                let mut rng = Rng::new(seed + number);
                let mut kept = Vec::new();
                for _ in 0..40_000 {
                    let shortcut = &shortcuts[rng.below(3) as usize];
                    match rng.below(8) {
                        0 => shortcut.set(Counted::new(rng.next_u64(), alive)),
                        1 => drop(shortcut.take()),
                        2 => kept.extend(shortcut.pin().map(|pinned| pinned.to_arc())),
                        3 => {
                            let both = (shortcut.pin(), shortcuts[0].pin());
                            both.0.iter().chain(&both.1).for_each(|pinned| pinned.check());
                        }
                        _ => shortcut.pin().iter().for_each(|pinned| pinned.check()),
                    }
                    if kept.len() > 5 {
                        kept.iter().for_each(|block: &Arc<Counted>| block.check());
                        kept.clear();
                    }
                }
            });
        }
    });
    drop(shortcuts);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
