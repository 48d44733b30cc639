use super::{
    BYTES_MAX, COUNT_MAX, LONG_BYTES, SHORT_STEP_BYTES, STORED_BYTES_MAX, STORED_BYTES_MIN, Spares,
};
use kvant_env::posix::{Buffer, Page};

/// Not what a new buffer has.
const KEPT: u8 = 1;

fn buffer(bytes: usize) -> Vec<u8> {
    vec![KEPT; bytes]
}

fn heap(bytes: usize) -> Buffer {
    buffer(bytes).into()
}

/// The length of the kept buffer that is taken for a block of `len` bytes, if there is one.
fn take_kept(spares: &Spares, len: usize) -> Option<usize> {
    let taken = spares.take(len);
    assert!(taken.capacity() >= len);
    (taken.first() == Some(&KEPT)).then_some(taken.capacity())
}

#[test]
fn a_long_buffer_is_taken_once_for_a_block_that_nearly_fills_it() {
    let spares = Spares::default();
    spares.keep(heap(100_000));
    spares.keep(heap(200_000));
    for len in [LONG_BYTES, 79_000, 100_001, 200_001] {
        assert_eq!(take_kept(&spares, len), None, "{len}");
    }
    assert_eq!(take_kept(&spares, 100_000), Some(100_000));
    assert_eq!(take_kept(&spares, 100_000), None);
    assert_eq!(take_kept(&spares, 170_000), Some(200_000));
}

#[test]
fn the_memory_of_a_long_block_fits_one_that_is_some_bytes_longer() {
    let spares = Spares::default();
    let mut block = spares.take(102_441);
    block.fill(KEPT);
    spares.keep(block);
    assert!(take_kept(&spares, 102_443).is_some());
}

#[test]
fn short_blocks_as_they_are_stored_take_no_room_from_long_ones() {
    let spares = Spares::default();
    spares.keep(heap(100_000));
    for _ in 0..2 * COUNT_MAX {
        let stored = spares.take_for_stored(LONG_BYTES - 1);
        spares.keep_from_stored(stored);
    }
    assert_eq!(take_kept(&spares, 100_000), Some(100_000));
}

#[test]
fn a_thread_keeps_one_short_block_for_one_of_nearly_its_length() {
    let spares = Spares::default();
    let kept_bytes = 4_100;
    for (len, fits) in [(3_900, true), (4_100, true), (3_800, false), (4_101, false)] {
        spares.keep(heap(10));
        spares.keep(heap(kept_bytes));
        assert_eq!(spares.take(len).capacity() == kept_bytes, fits, "{len}");
        for _ in 0..2 {
            let another = spares.take(10);
            assert_eq!((another.len(), another.capacity()), (0, SHORT_STEP_BYTES), "one is kept");
        }
    }
}

#[test]
fn a_block_that_nearly_fills_a_page_gets_one() {
    let spares = Spares::default();
    spares.keep(Buffer::new());
    for (len, is_page) in [(3_855, false), (3_856, true), (Page::BYTES, true), (4_097, false)] {
        let mut block = spares.take(len);
        let is_in_page = block.capacity() == Page::BYTES && block.as_ptr().addr() % 4_096 == 0;
        assert_eq!(is_in_page, is_page, "{len}");
        block.set_len(len);
        assert!(block.capacity() >= len);
    }
}

#[test]
fn buffers_for_stored_blocks_have_few_lengths_and_few_bytes_are_kept() {
    let spares = Spares::default();
    for (len, capacity) in [(1, STORED_BYTES_MIN), (4_097, 8_192), (8_192, 8_192)] {
        assert_eq!(spares.take_for_stored(len).capacity(), capacity, "{len}");
    }
    for _ in 0..2 * STORED_BYTES_MAX / 8_192 {
        spares.keep_from_stored(buffer(8_192));
    }
    let mut kept_bytes = 0;
    loop {
        let taken = spares.take_for_stored(100);
        if taken.is_empty() {
            break;
        }
        kept_bytes += taken.capacity();
    }
    assert_eq!(kept_bytes, STORED_BYTES_MAX);
    spares.keep_from_stored(buffer(4_096));
    assert_eq!(spares.take_for_stored(5_000).capacity(), 8_192, "the kept one is too short");
    assert!(spares.take_for_stored(100).is_empty(), "and is gone");
}

#[test]
fn few_long_buffers_are_kept_and_the_newest() {
    let spares = Spares::default();
    spares.keep(heap(LONG_BYTES - 1));
    spares.keep(heap(BYTES_MAX + 1));
    assert_eq!(take_kept(&spares, LONG_BYTES), None, "too short, too long");
    for count in 0..2 * COUNT_MAX {
        spares.keep(heap(LONG_BYTES + count));
    }
    for count in 0..COUNT_MAX {
        let kept = take_kept(&spares, LONG_BYTES);
        assert!(kept.is_some_and(|bytes| bytes >= LONG_BYTES + COUNT_MAX), "{count}");
    }
    assert_eq!(take_kept(&spares, LONG_BYTES), None);
    for _ in 0..COUNT_MAX {
        spares.keep(heap(BYTES_MAX / 2));
    }
    let taken = (0..COUNT_MAX).filter(|_| take_kept(&spares, BYTES_MAX / 2).is_some());
    assert_eq!(taken.count(), 2);
}
