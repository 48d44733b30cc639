use super::*;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// For tests that take all free pages, or look at pages that are free: one at a time.
fn with_all_pages() -> MutexGuard<'static, ()> {
    static ALL_PAGES: Mutex<()> = Mutex::new(());
    ALL_PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page full of this byte.
fn filled(byte: u8) -> Buffer {
    let mut buffer = Buffer::from(Page::new().expect("a page"));
    buffer.set_len(Page::BYTES);
    buffer.fill(byte);
    buffer
}

#[test]
fn pages_are_apart_on_all_threads() {
    let take = || {
        for _ in 0..50 {
            let mut buffers: Vec<Buffer> = (0..=255).map(filled).collect();
            buffers.rotate_left(128);
            drop(buffers.split_off(200));
            for (fill, buffer) in (128..=255).zip(&buffers[..128]) {
                assert!(buffer.iter().all(|&byte| byte == fill), "{fill}");
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(take))));
}

fn is_resident(page: *const u8) -> bool {
    let mut residency = 0;
    // SAFETY: a page of a chunk, which is never unmapped.
    let outcome = unsafe { libc::mincore(page.cast_mut().cast(), Page::BYTES, &mut residency) };
    assert_eq!(outcome, 0);
    residency & 1 == 1
}

/// Regression: each prepared chunk was a mapping, with a gap before the next, and Linux allows
/// 65,530 of them.
#[test]
fn chunks_lie_side_by_side_in_few_mappings() {
    const COUNT: usize = 4 * RANGE_BYTES / CHUNK_BYTES;
    let _alone = with_all_pages();
    let mut taken: Vec<Buffer> = Vec::new();
    let mapping_count = || fs::read_to_string("/proc/self/maps").expect("readable").lines().count();
    let before = mapping_count();
    let begun = HEAP.lock().chunk_count;
    while HEAP.lock().chunk_count < begun + COUNT {
        prepare_pages();
        taken.push(Buffer::from(Page::new().expect("a page")));
    }
    // Other tests map memory meanwhile.
    let added = mapping_count().saturating_sub(before);
    assert!(added < COUNT / 2, "{added} mappings more for {COUNT} chunks");
}

/// A page, of a prepared chunk if a new one is begun.
fn filled_and_prepared() -> Buffer {
    prepare_pages();
    filled(7)
}

#[test]
fn a_prepared_chunk_is_provided_before_its_pages_are_used() {
    static WAKE_COUNT: AtomicUsize = AtomicUsize::new(0);
    let _alone = with_all_pages();
    on_pages_wanted(|| {
        WAKE_COUNT.fetch_add(1, Ordering::Relaxed);
    });
    let mut taken = Vec::new();
    let chunk_count = || HEAP.lock().chunk_count;
    // Other tests may take the first pages of a chunk that is begun here.
    let is_provided = (0..100).any(|_| {
        let begun_count = chunk_count();
        while chunk_count() == begun_count {
            taken.push(Buffer::from(Page::new().expect("a page")));
        }
        prepare_pages();
        let prepared = HEAP.lock().prepared;
        prepared.is_some_and(|start| {
            parts(start, CHUNK_BYTES, PAGE_BYTES).all(|page| is_resident(page.as_ptr()))
        })
    });
    assert!(is_provided);
    assert!(WAKE_COUNT.load(Ordering::Relaxed) > 0);
}

#[test]
fn free_pages_return_to_the_system_although_others_are_between_them() {
    const COUNT: usize = 8 << 10;
    let _alone = with_all_pages();
    let (mut kept, mut freed) = (Vec::new(), Vec::new());
    let buffers: Vec<Buffer> = (0..COUNT).map(|_| filled_and_prepared()).collect();
    for (number, buffer) in buffers.into_iter().enumerate() {
        if number % 2 == 0 { kept.push(buffer) } else { freed.push(buffer.as_ptr()) }
    }
    release_free_pages();
    // Other tests take some of them meanwhile.
    let left_count = freed.iter().filter(|&&page| is_resident(page)).count();
    assert!(left_count < freed.len() / 2, "{left_count}");
    assert!(kept.iter().all(|buffer| buffer.iter().all(|&byte| byte == 7)));
}

#[test]
fn a_buffer_keeps_its_memory_while_a_length_fits() {
    let page = || Buffer::from(Page::new().expect("a page"));
    let heap = || Buffer::from(Vec::with_capacity(Page::BYTES));
    for (mut buffer, is_heap) in [(page(), false), (heap(), true)] {
        assert!(buffer.is_empty());
        buffer.set_len(10);
        buffer.fill(7);
        let start = buffer.as_ptr();
        buffer.set_len(Page::BYTES);
        assert_eq!((buffer.as_ptr(), buffer.len(), buffer[9]), (start, Page::BYTES, 7));
        assert_eq!(buffer.capacity(), Page::BYTES);
        buffer.set_len(Page::BYTES + 1);
        assert!(buffer.iter().all(|&byte| byte == 0));
        assert!(buffer.capacity() > Page::BYTES);
        let mut buffer = if is_heap { heap() } else { page() };
        buffer.set_len(10);
        assert_eq!(buffer.into_vec().capacity() > 0, is_heap);
    }
}
