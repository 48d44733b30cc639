use super::*;
use crate::collect::lane;
use std::thread;

#[test]
fn a_timer_runs_for_a_thread_that_lives_and_not_for_one_that_has_ended() {
    // Whose signals, were there any, would end the process otherwise.
    handler::install().expect("permitted");
    lane::keep_ready(4).expect("memory");
    let own = lane::of_this_thread().expect("there are free ones");
    drop(Timer::start(own, 3_600_000_000_000).expect("a thread that lives"));

    let ended = thread::spawn(|| lane::of_this_thread().expect("there are free ones"));
    let ended = ended.join().expect("it ends");
    while !crate::collect::threads::is_gone(ended.owner()) {
        thread::yield_now();
    }
    assert!(Timer::start(ended, 1_000_000).is_err());
}
