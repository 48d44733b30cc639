use super::*;
use kvant_env::host::procfs::ProcFs;

const WAIT_MAX: Duration = Duration::from_secs(30);

/// A shell with two children that would run for long.
fn family(last: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("sleep 1000 & sleep 1000 & {last}")]);
    Process::start(command, &own_cpus().unwrap(), &Stop::default()).unwrap()
}

fn members(group: u32) -> Vec<u32> {
    ProcFs::system().group_members(group)
}

fn wait_for_members(group: u32, count: usize) {
    let until = Instant::now() + WAIT_MAX;
    while members(group).len() != count {
        assert!(Instant::now() < until, "{:?}", members(group));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_dropped_process_leaves_nobody_of_its_group() {
    let process = family("wait");
    let group = process.id();
    wait_for_members(group, 3);
    assert_eq!(process.end(), None);
    drop(process);
    assert_eq!(members(group), [0; 0]);
}

#[test]
fn a_panic_leaves_nobody_either() {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let process = family("wait");
        send.send(process.id()).unwrap();
        wait_for_members(process.id(), 3);
        panic!("as planned");
    });
    let group = receive.recv().unwrap();
    thread.join().unwrap_err();
    assert_eq!(members(group), [0; 0]);
}

#[test]
fn the_end_of_the_leader_is_noticed_and_ends_the_group() {
    let process = family("sleep 0.1; exit 3");
    let status = process.wait(WAIT_MAX).expect("it ends");
    assert_eq!(status.code(), Some(3));
    assert_eq!(process.end().as_deref(), Some("ended with exit code 3"));
    assert_eq!(members(process.id()), [0; 0]);
}

#[test]
fn a_process_that_ignores_sigterm_is_killed() {
    let process = family("trap '' TERM; while :; do sleep 1; done");
    let group = process.id();
    wait_for_members(group, 4);
    assert_eq!(process.wait(Duration::from_millis(10)), None);
    assert!(process.stop(Duration::from_millis(100)).unwrap(), "it was not killed");
    assert_eq!(members(group), [0; 0]);
}

#[test]
fn a_process_runs_on_its_cpus() {
    let first = (0..1024).find(|cpu| own_cpus().unwrap().is_set(*cpu)).unwrap();
    let cpus = cpu_set(&[first as u32], &own_cpus().unwrap());
    let mut command = Command::new("sleep");
    command.arg("1000");
    let process = Process::start(command, &cpus, &Stop::default()).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    assert!(status.contains(&format!("Cpus_allowed_list:\t{first}\n")), "{status}");
    assert_eq!(own_cpus().unwrap(), cpu_set(&[], &own_cpus().unwrap()));
}

#[test]
fn sigterm_reaches_the_children_of_a_shell_and_waits_for_them() {
    let dir = std::env::temp_dir().join(format!("kvant-lab-process-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let done = dir.join("done");
    // The outer shell ends at once, the inner one has something to do first.
    let inner = format!(
        "trap 'sleep 0.3; touch {}; exit' TERM; while :; do sleep 0.05; done",
        done.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &format!("(trap '' INT; {inner}) & wait")]);
    let process = Process::start(command, &own_cpus().unwrap(), &Stop::default()).unwrap();
    wait_for_members(process.id(), 3);
    assert!(!process.stop(WAIT_MAX).unwrap(), "it was killed");
    assert!(done.exists(), "it could not end itself");
    std::fs::remove_dir_all(dir).unwrap();
}
