use super::Timers;

#[test]
fn only_the_last_deadline_of_a_connection_fires() {
    let mut timers = Timers::new(3);
    timers.set(0, 30);
    timers.set(1, 20);
    timers.set(2, 10);
    timers.set(0, 5);
    timers.cancel(2);
    assert_eq!(timers.next_ns(), Some(5));
    assert_eq!(timers.pop_due(4), None);
    assert_eq!(timers.pop_due(5), Some(0));
    assert_eq!(timers.pop_due(100), Some(1));
    assert_eq!(timers.pop_due(100), None, "neither the cancelled nor the replaced deadline fires");
}
