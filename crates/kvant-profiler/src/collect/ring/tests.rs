use super::*;
use crate::recording::Kind;
use kvant_base::wait::WaitKind;

fn ring_of(words: usize) -> Ring {
    let ring = Ring::new();
    let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    ring.prepare(memory.leak());
    ring
}

fn header(weight: u64) -> Header {
    Header {
        code: Kind::Wait(WaitKind::Io).code(),
        has_interrupted_frame: true,
        kernel_frame_count: 3,
        tag: 0x0605,
        time_mono_ns: 11,
        weight,
        duration_ns: 13,
        name: "a lock",
        address: 17,
    }
}

fn write(ring: &Ring, weight: u64, frame_count: u64) {
    let mut entry = ring.begin();
    let mut frames = 0..frame_count;
    while frames.next().is_some_and(|frame| entry.push_frame(100 + frame)) {}
    entry.commit(&header(weight));
}

fn drained(ring: &Ring) -> Vec<(Header, Vec<u64>)> {
    let mut records = Vec::new();
    ring.drain(&mut Vec::new(), |header, frames| records.push((*header, frames.to_vec())));
    records
}

#[test]
fn records_are_read_as_written_across_the_end_of_the_ring() {
    let ring = ring_of(64);
    // 9 words each: the eighth record wraps around.
    for weight in 0..50 {
        write(&ring, weight, 2);
        assert!(!ring.is_empty());
        assert_eq!(drained(&ring), [(header(weight), vec![100, 101])]);
        assert!(ring.is_empty());
    }
    assert_eq!(ring.take_dropped_count(), 0);
}

#[test]
fn a_record_without_room_is_counted_and_leaves_the_others_intact() {
    let ring = ring_of(32);
    write(&ring, 1, 3);
    write(&ring, 2, 3);
    write(&ring, 3, 6);
    write(&ring, 4, 100);
    // The last 12 words.
    write(&ring, 5, 5);
    write(&ring, 6, 0);
    let weights: Vec<_> = drained(&ring).iter().map(|(header, _)| header.weight).collect();
    assert_eq!(weights, [1, 2, 5]);
    assert_eq!(ring.take_dropped_count(), 3);
    assert_eq!(ring.take_dropped_count(), 0);
}

#[test]
fn the_innermost_frames_of_a_deep_stack_are_kept() {
    let ring = ring_of(1024);
    write(&ring, 1, 1000);
    let [(_, frames)] = &drained(&ring)[..] else {
        panic!("one record");
    };
    assert_eq!(*frames, (100..100 + FRAMES_MAX as u64).collect::<Vec<_>>());
}

#[test]
fn unread_records_can_be_discarded() {
    let ring = ring_of(64);
    write(&ring, 1, 1);
    write(&ring, 2, 100);
    ring.clear();
    assert_eq!((drained(&ring).len(), ring.take_dropped_count()), (0, 0));
    write(&ring, 3, 1);
    assert_eq!(drained(&ring).len(), 1);
}

#[test]
fn a_ring_without_memory_drops_records() {
    let ring = Ring::new();
    write(&ring, 1, 1);
    assert_eq!((drained(&ring).len(), ring.take_dropped_count()), (0, 1));
}

#[test]
fn a_concurrent_reader_sees_whole_records_in_order() {
    let ring: &'static Ring = Box::leak(Box::new(ring_of(256)));
    let written_count = 20_000;
    let writer = std::thread::spawn(move || {
        for weight in 0..written_count {
            write(ring, weight, weight % 7);
        }
    });
    let (mut read_count, mut last) = (0, None);
    loop {
        let is_last_read = writer.is_finished();
        for (header, frames) in drained(ring) {
            assert!(last < Some(header.weight));
            assert_eq!(frames, (100..100 + header.weight % 7).collect::<Vec<_>>());
            last = Some(header.weight);
            read_count += 1;
        }
        if is_last_read {
            break;
        }
    }
    assert_eq!(read_count + ring.take_dropped_count(), written_count);
}
