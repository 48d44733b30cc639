use super::*;

/// Receives `bytes` of `byte` as a request.
fn receive(buffer: &mut ReadBuffer, byte: u8, bytes: usize) {
    buffer.room(REQUEST_BYTES_MAX)[..bytes].fill(byte);
}

#[test]
fn a_value_stays_as_it_was_while_others_are_received() {
    let mut buffer = ReadBuffer::default();
    let mut values = Vec::new();
    for byte in 0..200 {
        receive(&mut buffer, byte, 1_000);
        values.push(buffer.take_end(1_000, 900));
    }
    for (byte, value) in (0..200).zip(values) {
        assert_eq!(value, vec![byte; 900]);
    }
}

#[test]
fn values_of_half_a_request_share_a_buffer_and_shorter_ones_keep_none_alive() {
    let mut buffer = ReadBuffer::default();
    receive(&mut buffer, 1, 1_000);
    let start = buffer.received(1).as_ptr();
    let short = buffer.take_end(1_000, 499);
    assert_eq!(short, vec![1; 499]);
    assert_eq!(buffer.received(1).as_ptr(), start, "nothing was cut off");
    receive(&mut buffer, 2, 1_000);
    let long = buffer.take_end(1_000, 500);
    assert_eq!(long.as_ptr(), start.wrapping_add(500), "the value was not copied");
    receive(&mut buffer, 3, 1_000);
    assert_eq!(buffer.received(1).as_ptr(), start.wrapping_add(1_000), "the next one is behind it");
}

#[test]
fn long_reads_leave_the_buffer_of_requests_as_it_is() {
    let mut buffer = ReadBuffer::default();
    receive(&mut buffer, 1, 1_000);
    let value = buffer.take_end(1_000, 900);
    let behind = buffer.room(REQUEST_BYTES_MAX).as_ptr();
    buffer.room(READ_BYTES_MAX).fill(9);
    assert_eq!(buffer.received(READ_BYTES_MAX), [9; READ_BYTES_MAX]);
    assert_eq!(buffer.room(REQUEST_BYTES_MAX).as_ptr(), behind);
    assert_eq!(value, vec![1; 900]);
}
