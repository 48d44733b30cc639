//! The text of `leveldb.stats`.

use super::{LevelStats, levels};

#[test]
fn rows_are_levels_and_levels_without_a_row_are_empty() {
    let text = "                               Compactions\n\
                Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
                --------------------------------------------------\n  \
                0        3       11         1        0        13\n  \
                2      145      290        12      503       498\n";
    let second = LevelStats {
        level: 2,
        table_count: 145,
        mebibytes: 290,
        compaction_s: 12,
        read_mebibytes: 503,
        written_mebibytes: 498,
    };
    let rows = levels(text);
    assert_eq!(rows.iter().map(|row| row.level).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((rows[0].table_count, rows[1].table_count, rows[2]), (3, 0, second));
    assert!(levels("").iter().all(|row| row.table_count == 0));
}
