use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

const LIMIT: Duration = Duration::from_secs(20);

fn overloaded() -> Error {
    Error::new(ErrorKind::Overloaded, "a node says so")
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn a_node_that_says_that_it_is_overloaded_is_asked_again_without_a_notice() {
    let (room, attempts) = (Notify::new(), AtomicU32::new(0));
    let begun = std::time::Instant::now();
    let waited = run(wait_for_it(&room, LIMIT, || {
        let number = attempts.fetch_add(1, Ordering::Relaxed);
        async move { if number < 2 { Err(overloaded()) } else { Ok("page") } }
    }));
    assert_eq!(waited.expect("the third attempt succeeds"), "page");
    let took = begun.elapsed();
    assert!(took >= 2 * PAUSE_MAX && took < LIMIT / 2, "{took:?}");
}

#[test]
fn a_notice_of_room_during_the_attempt_is_not_lost() {
    let (room, attempts) = (Notify::new(), AtomicU32::new(0));
    let begun = std::time::Instant::now();
    let waited = run(wait_for_it(&room, LIMIT, || {
        room.notify_waiters();
        // With a pause after each, the attempts would take the whole limit.
        let number = attempts.fetch_add(1, Ordering::Relaxed);
        async move { if number < 400 { Err(overloaded()) } else { Ok(()) } }
    }));
    waited.expect("the last attempt succeeds");
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
}

#[test]
fn other_errors_and_the_limit_end_it() {
    let room = Notify::new();
    let away = run(wait_for_it::<(), _>(&room, LIMIT, || async {
        Err(Error::new(ErrorKind::Away, "no node"))
    }));
    assert_eq!(away.expect_err("it is no reason to wait").kind(), ErrorKind::Away);
    let late =
        run(wait_for_it::<(), _>(&room, Duration::from_millis(10), || async { Err(overloaded()) }));
    assert_eq!(late.expect_err("the limit").kind(), ErrorKind::NoAnswer);
}
