use super::*;
use crate::compaction::TreeShape;
use crate::compaction::summary::entry_count_of;
use crate::compaction::test_support::simulator::{Simulator, Write};
use crate::format::{FileNum, SeqNum};
use crate::version::test_support::{table, test_rng};
use crate::version::{ExpirySummary, FileMeta};
use kvant_env::rng::Rng;
use std::collections::HashSet;

fn options() -> CompactionOptions {
    CompactionOptions {
        l0_compact_count: 4,
        base_bytes: 4000,
        level_ratio: 10,
        space_amplification_share: 0.2,
        space_amplification_bytes_min: 0,
        table_bytes: 1000,
    }
}

/// A tree given as (level, table), and the state of the database.
struct Case {
    levels: [Vec<FileMeta>; limits::LEVELS],
    busy: HashSet<FileNum>,
    oldest_snapshot: Option<SeqNum>,
    now_ms: u64,
}

impl Case {
    /// Tables of level 0 are given newest first, of other levels by key.
    fn new(tables: &[(usize, FileMeta)]) -> Case {
        let mut levels: [Vec<FileMeta>; limits::LEVELS] = Default::default();
        for (level, meta) in tables {
            levels[*level].push(meta.clone());
        }
        Case { levels, busy: HashSet::new(), oldest_snapshot: None, now_ms: 0 }
    }

    fn busy(mut self, nums: &[u64]) -> Case {
        self.busy = nums.iter().map(|&num| FileNum(num)).collect();
        self
    }

    fn with_summary<R>(&self, f: impl FnOnce(&VersionSummary<'_>) -> R) -> R {
        let summary = VersionSummary {
            levels: std::array::from_fn(|level| {
                let tables = self.levels[level].iter();
                tables
                    .map(|meta| TableSummary {
                        meta,
                        being_compacted: self.busy.contains(&meta.num),
                    })
                    .collect()
            }),
            oldest_snapshot: self.oldest_snapshot,
            now_ms: self.now_ms,
        };
        f(&summary)
    }

    fn pick(&self) -> Option<CompactionPlan> {
        self.with_summary(|summary| pick(summary, &options()))
    }

    /// The plan as text: `reason kind level[tables] level[tables] -> output`.
    fn picked(&self) -> String {
        self.pick().map_or("none".to_string(), |plan| text_of(&plan))
    }
}

fn text_of(plan: &CompactionPlan) -> String {
    let inputs = plan.inputs.iter().map(|(level, nums)| {
        let nums: Vec<_> = nums.iter().map(|num| num.0).collect();
        format!("{level}{nums:?}")
    });
    let inputs = inputs.collect::<Vec<_>>().join(" ");
    let bottom = if plan.bottommost { ", bottommost" } else { "" };
    format!("{} {:?} {inputs} -> {}{bottom}", plan.reason.name(), plan.kind, plan.output_level)
}

fn of_bytes(num: u64, first: &str, last: &str, file_bytes: u64) -> FileMeta {
    FileMeta { file_bytes, ..table(num, first, last) }
}

fn of_tombstones(num: u64, first: &str, last: &str, tombstone_count: u64) -> FileMeta {
    FileMeta { tombstone_count, ..table(num, first, last) }
}

fn of_expiring(num: u64, first: &str, last: &str, expiring_count: u64, max_ms: u64) -> FileMeta {
    let expiry = ExpirySummary { expiring_count, min_ms: max_ms - 100, max_ms };
    FileMeta { expiry: Some(expiry), ..table(num, first, last) }
}

#[test]
fn level_0_is_due_by_its_count_and_takes_what_it_overlaps() {
    let l0 = |num| (0, table(num, "c", "m"));
    let bottom = [
        (6, of_bytes(1, "a", "d", 2000)),
        (6, of_bytes(2, "e", "z", 10_000)),
        (6, of_bytes(3, "zz", "zz", 900_000)),
    ];
    let tree = |l0_nums: &[u64]| {
        [&l0_nums.iter().map(|&num| l0(num)).collect::<Vec<_>>()[..], &bottom].concat()
    };
    assert_eq!(Case::new(&tree(&[13, 12, 11])).picked(), "none");
    assert_eq!(
        Case::new(&tree(&[14, 13, 12, 11])).picked(),
        "l0_count Merge 0[14, 13, 12, 11] -> 3",
        "the base level is empty, but the tables overlap each other"
    );
    assert_eq!(Case::new(&tree(&[14, 13, 12, 11])).busy(&[12]).picked(), "none", "one at a time");
}

#[test]
fn level_0_tables_without_overlap_move_together() {
    let bottom = (6, of_bytes(1, "n", "z", 4000));
    let tree = |last: &str| {
        let l0 =
            [table(14, "k", last), table(13, "g", "h"), table(12, "e", "f"), table(11, "a", "b")];
        let mut tables: Vec<_> = l0.into_iter().map(|meta| (0, meta)).collect();
        tables.push(bottom.clone());
        Case::new(&tables)
    };
    assert_eq!(tree("m").picked(), "l0_count Move 0[11, 12, 13, 14] -> 6, bottommost");
    assert_eq!(tree("n").picked(), "l0_count Move 0[11, 12, 13] -> 6, bottommost");
    assert_eq!(tree("n").busy(&[1]).picked(), "l0_count Move 0[11, 12, 13] -> 6, bottommost");
}

#[test]
fn level_0_tables_above_the_same_table_are_merged_together() {
    let tables = [
        (0, table(14, "k", "m")),
        (0, table(13, "g", "h")),
        (0, table(12, "e", "f")),
        (0, table(11, "a", "b")),
        (6, of_bytes(1, "a", "i", 2000)),
        (6, of_bytes(2, "l", "z", 2000)),
    ];
    assert_eq!(Case::new(&tables).picked(), "l0_count Merge 0[11, 12, 13] 6[1] -> 6, bottommost");
}

#[test]
fn a_level_over_its_target_compacts_its_cheapest_table_and_neighbours_without_overlap() {
    let level_5 = |overlap: &str| {
        vec![
            (5, of_bytes(10, "a", "c", 3000)),
            (5, of_bytes(11, "d", overlap, 3000)),
            (5, of_bytes(12, "p", "q", 500)),
            (6, of_bytes(1, "a", "b", 20_000)),
            (6, of_bytes(2, "c", "k", 10_000)),
            (6, of_bytes(3, "l", "z", 10_000)),
        ]
    };
    assert_eq!(Case::new(&level_5("k")).picked(), "level_size Merge 5[11] 6[2] -> 6, bottommost");
    let mut with_small = level_5("j");
    with_small.insert(2, (5, of_bytes(13, "k", "k", 10)));
    assert_eq!(Case::new(&with_small).picked(), "level_size Merge 5[11, 13] 6[2] -> 6, bottommost");
    assert_eq!(
        Case::new(&with_small).busy(&[13]).picked(),
        "level_size Merge 5[11] 6[2] -> 6, bottommost"
    );
    assert_eq!(
        Case::new(&level_5("k")).busy(&[2]).picked(),
        "level_size Merge 5[12] 6[3] -> 6, bottommost",
        "20 for each byte that moves; table 10 meets a busy one too"
    );
}

#[test]
fn a_small_tree_is_compacted_until_its_space_amplification_is_low() {
    let l0 = |num, bytes| (0, of_bytes(num, "a", "z", bytes));
    assert_eq!(Case::new(&[l0(1, 1000)]).picked(), "none");
    assert_eq!(Case::new(&[l0(2, 200), l0(1, 1000)]).picked(), "none");
    assert_eq!(
        Case::new(&[l0(2, 201), l0(1, 1000)]).picked(),
        "space_amplification Merge 0[2, 1] -> 6, bottommost"
    );
    let bottom = (6, of_bytes(1, "a", "z", 1000));
    assert_eq!(Case::new(&[l0(2, 200), bottom.clone()]).picked(), "none");
    assert_eq!(
        Case::new(&[l0(2, 201), bottom]).picked(),
        "space_amplification Merge 0[2] 6[1] -> 6, bottommost"
    );
}

#[test]
fn tables_of_tombstones_move_down_and_are_dropped() {
    let bottom = |tombstone_count| (6, of_tombstones(1, "a", "z", tombstone_count));
    assert_eq!(Case::new(&[bottom(5)]).picked(), "none");
    assert_eq!(Case::new(&[bottom(6)]).picked(), "tombstones Merge 6[1] -> 6, bottommost");
    assert_eq!(Case::new(&[bottom(10)]).picked(), "tombstones Drop 6[1] -> 6, bottommost");
    let with_snapshot =
        |seq| Case { oldest_snapshot: Some(SeqNum(seq)), ..Case::new(&[bottom(10)]) };
    assert_eq!(with_snapshot(108).picked(), "none", "109 is the newest tombstone");
    assert_eq!(with_snapshot(109).picked(), "tombstones Drop 6[1] -> 6, bottommost");

    let above = FileMeta { file_bytes: 100, ..of_tombstones(2, "c", "d", 6) };
    assert_eq!(
        Case::new(&[(5, above.clone()), bottom(0)]).picked(),
        "level_size Merge 5[2] 6[1] -> 6, bottommost"
    );
    let l0 = (0, above);
    assert_eq!(
        Case::new(&[l0.clone(), bottom(0)]).picked(),
        "tombstones Merge 0[2] 6[1] -> 6, bottommost"
    );
    let crowd = |entry_count| (6, FileMeta { entry_count, ..table(1, "a", "z") });
    assert_eq!(
        Case::new(&[l0.clone(), crowd(14)]).picked(),
        "tombstones Merge 0[2] 6[1] -> 6, bottommost",
        "12 entries are written, 2 for each one that is freed"
    );
    assert_eq!(Case::new(&[l0, crowd(15)]).picked(), "none");
}

#[test]
fn expired_tables_are_dropped_unless_older_versions_would_reappear() {
    let at = |now_ms, tables: &[(usize, FileMeta)]| Case { now_ms, ..Case::new(tables) }.picked();
    let bottom = (6, of_expiring(1, "c", "d", 10, 500));
    assert_eq!(
        at(499, &[(0, table(3, "x", "y")), bottom.clone()]),
        "space_amplification Move 0[3] -> 6, bottommost"
    );
    assert_eq!(
        at(500, &[(0, table(3, "x", "y")), bottom.clone()]),
        "expiry Drop 6[1] -> 6, bottommost"
    );

    let newer = (0, FileMeta { file_bytes: 100, ..of_expiring(2, "a", "c", 10, 500) });
    let beneath = (6, table(1, "c", "d"));
    assert_eq!(at(500, &[newer.clone(), beneath]), "expiry Merge 0[2] 6[1] -> 6, bottommost");
    let older = (0, of_bytes(1, "c", "d", 1000));
    assert_eq!(at(500, &[newer.clone(), older]), "expiry Merge 0[2, 1] -> 6, bottommost");
    // After a repair: the table with the newest write also has writes older than the expired ones.
    let mut around = of_bytes(3, "c", "d", 1000);
    around.seq_min = SeqNum(1);
    assert_eq!(
        at(500, &[(0, around), newer]),
        "space_amplification Merge 0[2, 3] -> 6, bottommost"
    );
    assert_eq!(
        at(500, &[(6, of_expiring(1, "c", "d", 5, 500))]),
        "expiry Merge 6[1] -> 6, bottommost"
    );
    assert_eq!(at(500, &[(6, of_expiring(1, "c", "d", 4, 500))]), "none");
}

#[test]
fn grandparents_and_bottommost_cover_the_whole_range_of_the_inputs() {
    let tree = [
        (4, of_bytes(10, "e", "f", 4000)),
        (5, of_bytes(5, "f", "h", 2000)),
        (6, of_bytes(1, "a", "b", 200_000)),
        (6, of_bytes(2, "g", "i", 200_000)),
        (6, of_bytes(3, "j", "k", 10)),
    ];
    let plan = Case::new(&tree).pick().unwrap();
    assert_eq!(text_of(&plan), "level_size Merge 4[10] 5[5] -> 5");
    assert_eq!(plan.grandparents, [FileNum(2)]);
    assert_eq!(plan.input_bytes, 6000);
}

/// A tree of random tables, older ones deeper, with every kind of entry.
fn random_tree(rng: &mut Rng) -> Simulator {
    let mut tree = Simulator::new(options(), 100);
    let key_count = 20 + rng.below(300);
    for level in (0..limits::LEVELS).rev() {
        if rng.one_in(3) {
            continue;
        }
        for _ in 0..rng.below(8) {
            let (from, width) = (rng.below(key_count), 1 + rng.below(key_count / 4));
            let flavour = rng.below(4);
            let writes: Vec<_> = (0..1 + rng.below(20))
                .map(|_| {
                    let write = match flavour.max(rng.below(4)) {
                        0 | 1 => Write::Put,
                        2 => Write::Delete,
                        _ => Write::PutExpiring(rng.below(if flavour == 3 { 50 } else { 100 })),
                    };
                    (from + rng.below(width), write)
                })
                .collect();
            tree.place(level, &writes);
        }
    }
    // Entries expire after they were written.
    tree.now_ms = 50;
    if rng.one_in(2) {
        tree.oldest_snapshot = Some(SeqNum(rng.below(tree.last_seq().0 + 1)));
    }
    tree
}

/// Decreases with every compaction, so picking terminates: first the number of levels that entries
/// can still move down, then the number of entries that can expire.
fn potential(tree: &Simulator) -> (u64, u64) {
    let summary = tree.summary();
    let height = |level: usize| (limits::LEVELS - level) as u64;
    let levels = summary.levels.iter().enumerate();
    let entries = levels.map(|(level, tables)| height(level) * entry_count_of(tables)).sum();
    (entries, summary.levels.iter().flatten().map(|table| table.meta.expiring_count()).sum())
}

fn is_allowed(plan: &CompactionPlan) {
    let in_place = plan.inputs.iter().all(|(level, _)| *level == plan.output_level);
    let cleaning = matches!(plan.reason, Reason::Tombstones | Reason::Expiry | Reason::Manual);
    assert!(!in_place || cleaning, "rewritten in place: {plan:?}");
}

#[test]
fn picking_terminates_and_does_not_change_visible_records() {
    let mut rng = test_rng();
    for round in 0..400 {
        let mut tree = random_tree(&mut rng);
        let snapshot = tree.oldest_snapshot.unwrap_or(SeqNum::MAX);
        let (records, snapshot_records) = (tree.visible(SeqNum::MAX), tree.visible(snapshot));
        let manual = round % 4 == 0;
        let mut picks = 0;
        loop {
            let choose = if manual { pick_manual } else { pick };
            let Some(plan) = choose(&tree.summary(), &options()) else {
                break;
            };
            is_allowed(&plan);
            let before = potential(&tree);
            tree.run(&plan);
            assert!(potential(&tree) < before, "round {round}: nothing was gained by {plan:?}");
            assert_eq!(tree.visible(SeqNum::MAX), records, "round {round}: after {plan:?}");
            assert_eq!(
                tree.visible(snapshot),
                snapshot_records,
                "round {round}: at the snapshot, {plan:?}"
            );
            picks += 1;
            assert!(picks < 500, "round {round}: too many picks");
        }

        let summary = tree.summary();
        let last_level = summary.last_level();
        let above: u64 = (0..last_level).map(|level| summary.value_bytes(level)).sum();
        assert!(above as f64 <= 0.2 * summary.bytes(last_level) as f64, "round {round}:\n{tree}");
        assert!(TreeShape::new(&summary, &options()).scores.iter().all(|&score| score < 1.0));
        if manual {
            assert!(
                summary.levels[..last_level].iter().all(Vec::is_empty),
                "round {round}:\n{tree}"
            );
            let dirty = |table: &TableSummary<'_>| {
                table.meta.tombstone_count > 0 && summary.oldest_snapshot.is_none()
                    || table.meta.expiry.is_some_and(|expiry| expiry.min_ms <= 50)
            };
            assert!(!summary.levels.iter().flatten().any(dirty), "round {round}:\n{tree}");
        }
    }
}

#[test]
fn concurrent_compactions_do_not_conflict() {
    let mut rng = test_rng();
    let mut most_at_once = 0;
    for round in 0..300 {
        let mut tree = random_tree(&mut rng);
        let snapshot = tree.oldest_snapshot.unwrap_or(SeqNum::MAX);
        let (mut records, snapshot_records) = (tree.visible(SeqNum::MAX), tree.visible(snapshot));
        let mut running: Vec<CompactionPlan> = Vec::new();
        let mut flushes_left = 3;
        loop {
            let next = if running.len() < 4 { pick(&tree.summary(), &options()) } else { None };
            if let Some(plan) = next {
                for (_, nums) in &plan.inputs {
                    for num in nums {
                        assert!(
                            tree.being_compacted.insert(*num),
                            "round {round}: taken twice: {plan:?}"
                        );
                    }
                }
                running.push(plan);
                most_at_once = most_at_once.max(running.len());
                if !rng.one_in(3) {
                    continue;
                }
            }
            if flushes_left > 0 && rng.one_in(4) {
                flushes_left -= 1;
                tree.flush((0..10).map(|_| (rng.below(300), Write::Put)).collect());
                records = tree.visible(SeqNum::MAX);
            }
            if running.is_empty() {
                break;
            }
            let done = running.swap_remove(rng.below(running.len() as u64) as usize);
            // The simulator asserts that the outputs overlap nothing on their level.
            tree.run(&done);
            for num in done.inputs.iter().flat_map(|(_, nums)| nums) {
                tree.being_compacted.remove(num);
            }
            assert_eq!(tree.visible(SeqNum::MAX), records, "round {round}: after {done:?}");
            if tree.oldest_snapshot.is_some() {
                assert_eq!(
                    tree.visible(snapshot),
                    snapshot_records,
                    "round {round}: after {done:?}"
                );
            }
        }
    }
    assert!(most_at_once > 1, "no compactions ran concurrently");
}
