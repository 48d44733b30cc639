use super::*;
use crate::collect::lane::own_thread_id;
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn a_thread_is_listed_by_name_while_it_lives() {
    let (send_id, receive_id) = channel();
    let (send_end, receive_end) = channel::<()>();
    let thread = thread::Builder::new().name("listed".to_owned());
    let thread = thread.spawn(move || {
        send_id.send(own_thread_id()).expect("the test waits");
        receive_end.recv().expect_err("the test only closes the channel");
    });
    let id = receive_id.recv().expect("its id");
    assert!(list().expect("Linux").contains(&own_thread_id()));
    assert_eq!(name_of(id).as_deref(), Some("listed"));
    assert!(!has_ended(id));
    let scheduler = SchedulerStats::open(id);
    assert_ne!(scheduler.read(), ReadyTime::Ended);

    drop(send_end);
    thread.expect("a thread").join().expect("it ends");
    // The kernel may still be cleaning up.
    while !has_ended(id) {
        thread::yield_now();
    }
    assert_eq!(name_of(id), None);
    assert!(matches!(scheduler.read(), ReadyTime::Ended | ReadyTime::Unknown));
}

#[test]
fn the_second_number_of_schedstat_is_the_waiting_time() {
    assert_eq!(parse(b"743774181 261285537 785\n"), Some(261_285_537));
    assert_eq!(parse(b"743774181"), None);
    assert_eq!(parse(b"a b c"), None);
}
