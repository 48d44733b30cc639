use super::*;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A shell with a child, in a group that no guard knows, as after SIGKILL to the lab.
fn orphans() -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 1000 & wait"]).process_group(0);
    let child = command.spawn().unwrap();
    while ProcFs::system().group_members(child.id()).len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn leftovers(child: &Child, start_ticks: u64, dirs: Vec<PathBuf>) -> Leftovers {
    let groups = vec![Group { leader: child.id().cast_signed(), start_ticks }];
    Leftovers { boot_id: ProcFs::system().boot_id().unwrap(), groups, dirs }
}

fn members(child: &Child) -> usize {
    ProcFs::system().group_members(child.id()).len()
}

#[test]
fn leftovers_are_removed_and_others_with_their_ids_are_not() {
    let dir = std::env::temp_dir().join(format!("kvant-lab-left-{}", std::process::id()));
    let (store, other) = (dir.join("scratch"), dir.join("other"));
    std::fs::create_dir_all(&store).unwrap();
    std::fs::create_dir_all(&other).unwrap();
    let record = dir.join("cleanup.json");
    let mut child = orphans();
    let start_ticks = ProcFs::system().process_start_ticks(child.id()).unwrap();
    let remove = |leftovers: &Leftovers| {
        std::fs::write(&record, serde_json::to_vec(leftovers).unwrap()).unwrap();
        remove_leftovers(&record).unwrap()
    };

    let later = leftovers(&child, start_ticks + 1, Vec::new());
    assert_eq!((remove(&later), members(&child)), (0, 2));
    let boot_id = "another".to_owned();
    let other_boot = Leftovers { boot_id, ..leftovers(&child, start_ticks, Vec::new()) };
    assert_eq!((remove(&other_boot), members(&child)), (0, 2));

    // The kernel kills the leader with the lab, but not its children.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(members(&child), 1);
    let ours = leftovers(&child, start_ticks, vec![store.clone(), other.clone()]);
    assert_eq!((remove(&ours), members(&child)), (1, 0));
    assert_eq!((store.exists(), other.exists(), record.exists()), (false, true, false));
    assert_eq!(remove_leftovers(&record).unwrap(), 0);
    std::fs::remove_dir_all(dir).unwrap();
}
