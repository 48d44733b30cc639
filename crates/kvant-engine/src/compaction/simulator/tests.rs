use super::*;
use crate::version::test_support::test_rng;

const ENTRY_BYTES: u64 = 1000;
const MEMTABLE_ENTRIES: usize = 1000;

fn options() -> CompactionOptions {
    CompactionOptions {
        l0_compact_count: 4,
        base_bytes: 4 * MEMTABLE_ENTRIES as u64 * ENTRY_BYTES,
        level_ratio: 10,
        space_amplification_share: 0.2,
        table_bytes: 1_000_000,
    }
}

#[test]
fn explore() {
    for (key_count, flushes) in [
        (500u64, 100),
        (2000, 100),
        (5000, 200),
        (20_000, 400),
        (50_000, 600),
        (100_000, 800),
        (200_000, 1000),
    ] {
        for picks in [1, 2, usize::MAX] {
            let mut rng = Rng::new(1);
            let mut sim = Simulator::new(options(), ENTRY_BYTES);
            sim.fill(
                Workload::Uniform { key_count },
                &mut rng,
                flushes,
                MEMTABLE_ENTRIES,
                picks,
            );
            let before = sim.space_amplification();
            let n = sim.compact(usize::MAX).len();
            eprintln!("{key_count} keys picks {picks}: before {before:.3}, {n} more\n{sim}");
        }
    }
    let mut sim = Simulator::new(options(), ENTRY_BYTES);
    sim.fill(
        Workload::Sequential,
        &mut Rng::new(1),
        300,
        MEMTABLE_ENTRIES,
        usize::MAX,
    );
    eprintln!("seq {sim}");
}
