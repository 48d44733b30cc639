use super::*;
use crate::format::ValueKind;
use crate::tools::verify;
use kvant_env::testing::{DeterministicSpawner, FaultyFs, MockClock};

/// A table that no correct writer makes: the manifest that named it could not be read.
#[test]
fn a_repair_sets_a_table_with_an_empty_key_aside() {
    let (dir, clock) = (Path::new("/db"), Arc::new(MockClock::new(0)));
    let spawner = Arc::new(DeterministicSpawner::new(1, Arc::clone(&clock)));
    let env = Env { fs: Arc::new(FaultyFs::new(1)), clock, spawner };
    env.fs.create_dir_all(dir).expect("created");
    let options = TableOptions {
        block_bytes: 4096,
        compression: Options::for_memory(TOOL_MEMORY_BYTES).compression[0],
        filter_bits_per_key: 10.0,
    };
    for (num, first_key) in [(3, &b""[..]), (4, b"a")] {
        let mut table =
            TableBuilder::create(&*env.fs, dir, FileNum(num), options).expect("created");
        for key in [first_key, b"b"] {
            let key = InternalKeyRef::new(key, SeqNum(1), ValueKind::Put);
            table.add(key, b"value", None).expect("added");
        }
        table.finish().expect("finished");
    }
    let report = repair(&env, dir).expect("repaired");
    assert_eq!((report.whole_table_count, report.damaged_table_count), (1, 1));
    assert_eq!(report.moved_files, [dir.join("lost/000003.sst")]);
    let mut problems = report.problems.iter();
    assert!(problems.any(|it| it.message().contains("empty key")), "{:?}", report.problems);
    let verified = verify(&env, dir, &mut |_| ()).expect("verified");
    assert_eq!((verified.table_count, verified.problems.len()), (1, 0));
}
