use super::*;
use crate::compaction::summary::TableSummary;
use crate::version::FileMeta;
use crate::version::test_support::table;

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

/// The shape of a tree with one table per deeper level, of these bytes, and `l0_count` tables of
/// 1,000 bytes in level 0.
fn shape_of(l0_count: u64, level_bytes: &[(usize, u64)]) -> TreeShape {
    with_summary(l0_count, level_bytes, |summary| TreeShape::new(summary, &options()))
}

fn with_summary<R>(
    l0_count: u64,
    level_bytes: &[(usize, u64)],
    with: impl FnOnce(&VersionSummary<'_>) -> R,
) -> R {
    let l0: Vec<FileMeta> = (0..l0_count).map(|index| table(100 - index, "a", "z")).collect();
    let deeper: Vec<(usize, FileMeta)> = level_bytes
        .iter()
        .map(|&(level, file_bytes)| {
            (level, FileMeta { file_bytes, ..table(level as u64, "a", "z") })
        })
        .collect();
    let mut summary = VersionSummary::default();
    let idle = |meta| TableSummary { meta, being_compacted: false };
    summary.levels[0] = l0.iter().map(idle).collect();
    for (level, meta) in &deeper {
        summary.levels[*level].push(idle(meta));
    }
    with(&summary)
}

#[test]
fn what_is_read_before_it_is_the_turn_of_level_0_is_counted_in_whole_tables() {
    with_summary(16, &[(5, 10_000), (6, 40_000)], |summary| {
        let shape = TreeShape::new(summary, &options());
        assert_eq!(shape.target_bytes[5], 4_000);
        let below = |factor| shape.estimate_below(summary, factor, 1_000.0, 0.0);
        // Each byte that leaves level 5 is merged with four of level 6.
        assert_eq!((below(2.5), below(2.0)), (0.0, 2_000.0 * 5.0));
        assert_eq!(below(1.9), 3_000.0 * 5.0, "2,400 bytes are three tables");
    });
}

#[test]
fn targets_grow_upward_from_the_last_level() {
    let empty = shape_of(0, &[]);
    assert_eq!((empty.l0_output_level, empty.target_bytes), (6, [0, 0, 0, 0, 0, 0, 4000]));
    assert_eq!(shape_of(0, &[(6, 4000)]).l0_output_level, 6);
    let small = shape_of(0, &[(6, 40_000)]);
    assert_eq!((small.l0_output_level, small.target_bytes), (5, [0, 0, 0, 0, 0, 4000, 40_000]));
    let large = shape_of(0, &[(5, 100_000), (6, 900_000_000)]);
    assert_eq!(large.target_bytes, [0, 9_000, 90_000, 900_000, 9_000_000, 90_000_000, 900_000_000]);
    assert_eq!(large.l0_output_level, 1);
    assert_eq!(
        shape_of(0, &[(6, u64::MAX / 2)]).l0_output_level,
        1,
        "there is no level above the first"
    );
}

#[test]
fn level_0_is_never_compacted_below_a_level_in_use() {
    let shrunk = shape_of(0, &[(3, 10), (6, 1000)]);
    assert_eq!(shrunk.l0_output_level, 3);
    assert!(shrunk.scores[3] > 1.0, "a level that should be empty is due");
    assert_eq!(shrunk.scores[4], 0.0);
}

#[test]
fn scores_and_debt_grow_with_the_excess() {
    let calm = shape_of(3, &[(5, 3000), (6, 40_000)]);
    assert_eq!((calm.scores[0], calm.scores[5], calm.scores[6]), (0.75, 0.75, 0.0));
    assert_eq!(calm.debt_bytes, 0);

    let due = shape_of(8, &[(5, 8000), (6, 40_000)]);
    assert_eq!((due.scores[0], due.scores[5]), (2.0, 2.0));
    // Level 0 and level 5 are 16,000 bytes. Then 12,000 bytes exceed the target of 4,000, and each
    // of them overlaps 2.5 bytes of level 6.
    assert_eq!(due.debt_bytes, 16_000 + 12_000 + 30_000);
}
