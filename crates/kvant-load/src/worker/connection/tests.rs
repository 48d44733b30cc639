use super::{BACK_OFF_MAX_NS, Connection, Unwritten, parse_token};

#[test]
fn failures_in_a_row_double_the_back_off_and_a_response_resets_it() {
    let mut connection = Connection::new(0, false);
    assert_eq!(connection.back_off_ns(), 0);
    let mut waits = Vec::new();
    for _ in 0..100 {
        connection.count_failure();
        waits.push(connection.back_off_ns() / 1_000_000);
    }
    assert_eq!(waits[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000]);
    assert_eq!(connection.back_off_ns(), BACK_OFF_MAX_NS);
    connection.has_response = true;
    connection.count_failure();
    assert_eq!(connection.back_off_ns(), 0, "a socket with a response is not a failure");
    connection.count_failure();
    assert_eq!(connection.back_off_ns(), 1_000_000, "each socket needs its own response");
}

#[test]
fn each_socket_has_its_own_token() {
    let mut connection = Connection::new(0, false);
    let token = connection.token(7);
    assert_eq!(parse_token(token), (7, 0));
    connection.drop_socket();
    assert_eq!(parse_token(connection.token(7)), (7, 1));
    connection.generation = u32::MAX;
    assert_eq!(parse_token(connection.token(7)), (7, u32::MAX));
    connection.drop_socket();
    assert_eq!(parse_token(connection.token(7)), (7, 0));
}

#[test]
fn unwritten_bytes_stay_in_order() {
    let mut unwritten = Unwritten::default();
    unwritten.add(b"");
    assert!(unwritten.is_empty());
    unwritten.add(b"hello");
    unwritten.remove_written(2);
    assert_eq!(unwritten.bytes(), b"llo");
    unwritten.remove_written(3);
    assert!(unwritten.is_empty());
    unwritten.add(b"x");
    assert_eq!(unwritten.bytes(), b"x");
}
