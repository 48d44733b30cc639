use super::*;
use std::collections::HashMap;

fn memory_of(files: &[(&str, &str)]) -> Option<u64> {
    let files: HashMap<&Path, &str> =
        files.iter().map(|&(path, text)| (Path::new(path), text)).collect();
    memory_bytes_from(&|path| files.get(path).map(ToString::to_string))
}

const MEMINFO: (&str, &str) =
    ("/proc/meminfo", "MemTotal:        1000 kB\nMemFree:          10 kB\n");

#[test]
fn the_machine_limits_memory_without_control_groups() {
    assert_eq!(memory_of(&[MEMINFO]), Some(1_024_000));
}

#[test]
fn unknown_memory_is_none() {
    assert_eq!(memory_of(&[]), None);
    assert_eq!(memory_of(&[("/proc/meminfo", "nonsense")]), None);
}

#[test]
fn version_2_limits_of_a_group_and_its_ancestors_apply() {
    let group = ("/proc/self/cgroup", "0::/outer/inner\n");
    let open = ("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    assert_eq!(memory_of(&[MEMINFO, group, open]), Some(1_024_000));
    let outer = ("/sys/fs/cgroup/outer/memory.max", "4096\n");
    assert_eq!(memory_of(&[MEMINFO, group, open, outer]), Some(4096));
    let inner = ("/sys/fs/cgroup/outer/inner/memory.max", "2048\n");
    assert_eq!(memory_of(&[MEMINFO, group, inner, outer]), Some(2048));
}

#[test]
fn version_1_limits_apply() {
    let group = ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n0::/\n");
    let unlimited = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(memory_of(&[MEMINFO, group, unlimited]), Some(1_024_000));
    let root = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n");
    assert_eq!(memory_of(&[MEMINFO, group, root]), Some(8192));
}

#[test]
fn this_machine_has_memory_and_a_cpu() {
    assert!(memory_bytes().expect("known on Linux") > 1 << 20);
    assert!(cpu_count() >= 1);
}

#[test]
fn cpus_of_the_machine_count_although_this_process_may_not_use_them() {
    let machine_count = || procfs::ProcFs::system().cpu_times().unwrap().cpu_count;
    let of_all = machine_count();
    let pinned = std::thread::spawn(move || {
        let mut only = rustix::thread::CpuSet::new();
        let own = rustix::thread::sched_getaffinity(None).unwrap();
        only.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| own.is_set(*cpu)).unwrap());
        rustix::thread::sched_setaffinity(None, &only).unwrap();
        (cpu_count(), machine_count())
    });
    assert_eq!(pinned.join().unwrap(), (1, of_all));
}
