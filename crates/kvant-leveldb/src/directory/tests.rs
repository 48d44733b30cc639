use super::*;
use kvant_env::testing::{CrashStyle, DeterministicSpawner, FaultyFs, MockClock};
use std::sync::Arc;

#[test]
fn a_new_directory_survives_a_power_loss_with_its_new_parents() {
    let dir = Path::new("/a/b/data");
    // The last directory that an earlier attempt, which a crash ended, has created.
    for left in dir.ancestors() {
        let disk = FaultyFs::new(1);
        disk.create_dir_all(left.parent().unwrap_or(left)).unwrap();
        disk.sync_all();
        disk.create_dir_all(left).unwrap();
        let clock = Arc::new(MockClock::new(0));
        let spawner = Arc::new(DeterministicSpawner::new(1, Arc::clone(&clock)));
        let env = Env { fs: Arc::new(disk.clone()), clock, spawner };
        assert!(!prepare(&env, dir, false).unwrap());
        assert!(disk.crash_image(1, CrashStyle::DropUnsynced).exists(dir).unwrap(), "{left:?}");
    }
}
