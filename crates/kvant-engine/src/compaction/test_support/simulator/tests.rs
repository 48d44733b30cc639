use super::*;
use crate::compaction::plan::Reason;
use crate::compaction::{Room, pick_small};
use crate::version::test_support::test_rng;

const ENTRY_BYTES: u64 = 1000;
const MEMTABLE_ENTRIES: usize = 1000;

fn simulator() -> Simulator {
    Simulator::new(options(), ENTRY_BYTES)
}

fn options() -> CompactionOptions {
    CompactionOptions {
        l0_compact_count: 4,
        base_bytes: 4 * MEMTABLE_ENTRIES as u64 * ENTRY_BYTES,
        level_ratio: 10,
        space_amplification_share: 0.2,
        space_amplification_bytes_min: 0,
        table_bytes: 1_000_000,
    }
}

#[test]
fn overwriting_keeps_space_and_write_amplification_low() {
    let mut rng = test_rng();
    // Keys (from half a memtable to 25 times the base level), overwrites, write amplification.
    for (key_count, overwrites, write_amplification_max) in
        [(500, 20, 2.0), (2000, 15, 4.0), (6000, 10, 7.0), (20_000, 5, 9.0), (100_000, 3, 12.0)]
    {
        for picks_max in [2, usize::MAX] {
            let mut tree = simulator();
            let flush_count = usize::div_ceil(key_count * overwrites, MEMTABLE_ENTRIES);
            let workload = Workload::Uniform { key_count: key_count as u64 };
            tree.fill(workload, &mut rng, flush_count, MEMTABLE_ENTRIES, picks_max);
            let lagging = tree.space_amplification();
            assert!(lagging <= 1.5, "{key_count} keys, {picks_max} picks a flush:\n{tree}");
            let late_count = tree.compact(usize::MAX).len();
            assert!(late_count < 100, "{late_count} picks after the last write:\n{tree}");
            assert!(tree.space_amplification() <= 1.2, "{key_count} keys:\n{tree}");
            assert!(
                tree.write_amplification() <= write_amplification_max,
                "{key_count} keys:\n{tree}"
            );
        }
    }
}

#[test]
fn a_small_tree_is_not_rewritten_for_a_small_gain_of_space() {
    let bytes_min = 2 * MEMTABLE_ENTRIES as u64 * ENTRY_BYTES;
    let written = |space_amplification_bytes_min| {
        let mut tree = Simulator::new(
            CompactionOptions { space_amplification_bytes_min, ..options() },
            ENTRY_BYTES,
        );
        let workload = Workload::Uniform { key_count: 2000 };
        tree.fill(workload, &mut test_rng(), 60, MEMTABLE_ENTRIES, usize::MAX);
        let summary = tree.summary();
        let above_bytes: u64 = (0..BOTTOM).map(|level| summary.bytes(level)).sum();
        let allowed_bytes = summary.bytes(BOTTOM) / 5 + space_amplification_bytes_min;
        assert!(above_bytes <= allowed_bytes, "{tree}");
        tree.write_amplification()
    };
    let (without, with) = (written(0), written(bytes_min));
    assert!(with <= 0.6 * without, "{without} without, {with} with");
}

#[test]
fn a_sequential_fill_writes_every_byte_once() {
    let mut tree = simulator();
    tree.fill(Workload::Sequential, &mut test_rng(), 300, MEMTABLE_ENTRIES, usize::MAX);
    assert_eq!((tree.write_amplification(), tree.space_amplification()), (1.0, 1.0), "\n{tree}");
    let summary = tree.summary();
    assert!(summary.bytes(BOTTOM) > 250 * 1_000_000, "\n{tree}");
    assert!(summary.levels[0].len() < 4, "\n{tree}");
}

#[test]
fn one_compaction_reads_a_small_share_of_a_large_tree() {
    let mut rng = test_rng();
    let mut tree = simulator();
    let workload = Workload::Uniform { key_count: 100_000 };
    tree.fill(workload, &mut rng, 200, MEMTABLE_ENTRIES, usize::MAX);
    for _ in 0..50 {
        tree.fill(workload, &mut rng, 1, MEMTABLE_ENTRIES, 0);
        for plan in tree.compact(usize::MAX) {
            let most = if plan.inputs[0].0 == 0 { 4 + 4 + 1 } else { 1 + 2 * 10 + 2 };
            assert!(plan.input_bytes <= most * 1_000_000, "{plan:?}\n{tree}");
        }
    }
}

#[test]
fn deleting_everything_empties_the_tree() {
    let mut tree = simulator();
    let key_count = 20_000;
    tree.fill(Workload::Uniform { key_count }, &mut test_rng(), 60, MEMTABLE_ENTRIES, usize::MAX);
    for keys in (0..key_count).collect::<Vec<_>>().chunks(5000) {
        tree.flush(keys.iter().map(|&key| (key, Write::Delete)).collect());
        tree.compact(2);
    }
    tree.compact(usize::MAX);
    assert!(tree.summary().levels.iter().all(Vec::is_empty), "\n{tree}");
}

#[test]
fn deletes_of_a_tenth_free_most_of_their_space() {
    let mut tree = simulator();
    let mut rng = test_rng();
    tree.fill(Workload::Uniform { key_count: 20_000 }, &mut rng, 60, MEMTABLE_ENTRIES, usize::MAX);
    tree.flush((0..2000).map(|_| (rng.below(20_000), Write::Delete)).collect());
    tree.compact(usize::MAX);
    assert!(tree.space_amplification() <= 1.2, "\n{tree}");
}

#[test]
fn tables_of_equal_expiry_are_dropped_without_being_read() {
    let mut tree = simulator();
    for flush in 0..40_u64 {
        let keys = flush * 1000..(flush + 1) * 1000;
        tree.flush(keys.map(|key| (key, Write::PutExpiring(1000 + flush))).collect());
        tree.compact(usize::MAX);
    }
    let written_bytes = tree.written_bytes;
    tree.now_ms = 1019;
    let plans = tree.compact(usize::MAX);
    assert_eq!(plans.iter().filter(|plan| plan.kind == PlanKind::Drop).count(), 1);
    assert_eq!(plans[0].inputs.iter().map(|(_, nums)| nums.len()).sum::<usize>(), 20, "{plans:?}");
    assert_eq!(tree.written_bytes, written_bytes, "the other tables at most move");
    tree.now_ms = 1039;
    tree.compact(usize::MAX);
    assert!(tree.summary().levels.iter().all(Vec::is_empty), "\n{tree}");
}

#[test]
fn a_table_is_rewritten_when_most_of_it_has_expired() {
    let mut tree = simulator();
    tree.flush((0..1000).map(|key| (key, Write::PutExpiring(1000 + key))).collect());
    tree.compact(usize::MAX);
    tree.now_ms = 1400;
    assert!(tree.compact(usize::MAX).is_empty(), "\n{tree}");
    tree.now_ms = 1600;
    let reasons: Vec<_> = tree.compact(usize::MAX).iter().map(|plan| plan.reason).collect();
    assert_eq!(reasons, [Reason::Expiry, Reason::Expiry], "moved from level 0, then rewritten");
    assert_eq!(tree.visible(SeqNum::MAX).len(), 399);
    assert_eq!(tree.summary().bytes(BOTTOM), 399 * ENTRY_BYTES);
}

#[test]
fn the_printed_shape_has_one_line_per_level() {
    let mut tree = simulator();
    tree.fill(Workload::Sequential, &mut test_rng(), 12, MEMTABLE_ENTRIES, usize::MAX);
    let text = tree.to_string();
    assert_eq!(text.lines().count(), 1 + limits::LEVELS + 1, "{text}");
    assert!(
        text.ends_with("write amplification 1.00, space amplification 1.000, debt 0"),
        "{text}"
    );
}

#[test]
fn small_steps_empty_a_full_level_0() {
    let mut tree = simulator();
    let workload = Workload::Uniform { key_count: 20_000 };
    let mut rng = test_rng();
    tree.fill(workload, &mut rng, 20, MEMTABLE_ENTRIES, usize::MAX);
    tree.fill(workload, &mut rng, 16, MEMTABLE_ENTRIES, 0);
    let visible = tree.visible(SeqNum::MAX);
    let room_bytes = 2_500_000;
    let wanted = pick(&tree.summary(), &options()).expect("level 0 is full");
    assert!(wanted.room_bytes > room_bytes, "{wanted:?}");
    let mut plan_count = 0;
    let room = Room { bytes: room_bytes, is_hopeful: false };
    while let Some(plan) = pick_small(&tree.summary(), &options(), room) {
        assert!(plan.room_bytes <= room_bytes, "{plan:?}");
        tree.run(&plan);
        assert_eq!(tree.visible(SeqNum::MAX), visible, "{plan:?}");
        plan_count += 1;
        assert!(plan_count < 1000, "picking does not end:\n{tree}");
    }
    assert!(tree.summary().levels[0].is_empty(), "\n{tree}");
}

#[test]
fn a_hopeful_room_assumes_that_tombstones_free_space() {
    let mut tree = simulator();
    let all: Vec<_> = (0..1000).map(|key| (key, Write::Put)).collect();
    assert!(tree.place(BOTTOM, &all));
    tree.flush((0..600).map(|key| (key, Write::Delete)).collect());
    let plan_with = |tree: &Simulator, bytes, is_hopeful| {
        let room = Room { bytes, is_hopeful };
        pick_small(&tree.summary(), &options(), room)
    };
    assert_eq!(plan_with(&tree, 999_000, false), None);
    // A table of a megabyte, a sixteenth for smaller files, and an edit.
    assert!(plan_with(&tree, 1_063_000, false).is_some());
    let plan = |tree: &Simulator, bytes| plan_with(tree, bytes, true);
    assert_eq!(plan(&tree, 399_000), None);
    assert!(plan(&tree, 425_200).is_some());
    tree.flush((500..1000).map(|key| (key, Write::Delete)).collect());
    let all_go = plan(&tree, 0).expect("nothing is left to write");
    tree.run(&all_go);
    tree.compact(usize::MAX);
    assert!(tree.summary().levels.iter().all(Vec::is_empty), "\n{tree}");
}

#[test]
fn tables_of_tombstones_are_compacted_first() {
    let mut tree = simulator();
    let puts = |keys: std::ops::Range<u64>| keys.map(|key| (key, Write::Put)).collect::<Vec<_>>();
    assert!(tree.place(BOTTOM, &puts(0..1000)));
    assert!(tree.place(BOTTOM, &puts(2000..3000)));
    tree.flush(puts(0..1000));
    tree.flush((2000..3000).map(|key| (key, Write::Delete)).collect());
    let room = Room { bytes: 10_000_000, is_hopeful: false };
    let plan = pick_small(&tree.summary(), &options(), room).expect("room for all");
    tree.run(&plan);
    assert!(tree.visible(SeqNum::MAX).keys().all(|key| *key < 1000));
    assert_eq!(tree.summary().levels[0].len(), 1, "the puts wait\n{tree}");
}
