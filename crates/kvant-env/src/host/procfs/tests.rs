use super::*;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

/// A test's own directory, removed on drop.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("kvant-procfs-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn write(&self, file: &str, text: &str) {
        super::super::write_file(&self.0.join(file), text.as_bytes()).unwrap();
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn times_are_read_from_the_files() {
    let dir = Dir::new("files");
    dir.write(
        "stat",
        "cpu  100 20 30 400 5 6 7 8 50 0\ncpu0 50 10 15 200 2 3 3 4 25 0\ncpu1 50 10 15 200 3 3 4 4 25 0\nintr 1\n",
    );
    dir.write(
        "pressure/cpu",
        "some avg10=2.28 avg60=3.66 avg300=4.16 total=28180390\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    );
    dir.write(
        "self/stat",
        "4711 (a b) c) R 1 4711 4711 0 -1 4194304 99 0 0 0 12 34 0 0 20 0 1 0 555",
    );
    let proc = ProcFs::at(&dir.0);
    assert_eq!(
        proc.cpu_times(),
        Some(CpuTimes {
            cpu_count: 2,
            tasks_ns: 150 * tick_ns(),
            stolen_ns: 8 * tick_ns(),
            all_ns: 576 * tick_ns(),
        })
    );
    let of_cpus = |cpus: &[u32]| proc.on_cpus(cpus.to_vec()).cpu_times();
    let one = CpuTimes {
        cpu_count: 1,
        tasks_ns: 75 * tick_ns(),
        stolen_ns: 4 * tick_ns(),
        all_ns: 289 * tick_ns(),
    };
    assert_eq!(of_cpus(&[1]), Some(one));
    assert_eq!(of_cpus(&[0, 1]).map(|both| both.stolen_ns), Some(8 * tick_ns()));
    assert_eq!(of_cpus(&[1, 2]), proc.cpu_times(), "a CPU without a row");
    assert_eq!(proc.cpu_pressure_ns(), Some(28_180_390_000));
    assert_eq!(proc.process_cpu_ns("self"), Some(46 * tick_ns()));
    assert_eq!(proc.own_pid(), Some(4711));
}

#[test]
fn counters_of_a_process_include_awaited_children() {
    let dir = Dir::new("process");
    let stat = |pid: u32, group: u32| {
        format!("{pid} (a) b) S 1 {group} 1 0 -1 0 9 0 0 0 10 20 3 4 20 0 2 0 555 4096 7 1")
    };
    dir.write("50/stat", &stat(50, 50));
    dir.write("50/io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n");
    dir.write("51/stat", &stat(51, 50));
    dir.write("60/stat", &stat(60, 60));
    dir.write("61/stat", &stat(61, 50).replace(" S ", " Z "));
    let status = "Name: a\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
    dir.write("50/task/50/status", status);
    dir.write("50/task/52/status", status);
    let proc = ProcFs::at(&dir.0);
    assert_eq!(proc.group_members(50), [50, 51]);
    let page_bytes = rustix::param::page_size() as u64;
    let expected = ProcessUse {
        cpu_ns: 37 * tick_ns(),
        rss_bytes: 7 * page_bytes,
        read_bytes: Some(4096),
        written_bytes: Some(8192),
    };
    assert_eq!(proc.process_use(50), Some(expected));
    let without_io = ProcessUse { read_bytes: None, written_bytes: None, ..expected };
    assert_eq!(proc.process_use(51), Some(without_io));
    assert_eq!(proc.process_use(99), None);
    let switches = Switches { voluntary: 12, involuntary: 3 };
    let mut threads = proc.thread_switches(50);
    threads.sort_unstable_by_key(|(thread, _)| *thread);
    assert_eq!(threads, [(50, switches), (52, switches)]);
}

#[test]
fn missing_data_is_none() {
    let dir = Dir::new("none");
    let proc = ProcFs::at(&dir.0);
    assert_eq!((proc.cpu_times(), proc.cpu_pressure_ns()), (None, None));
    assert_eq!((proc.process_cpu_ns("self"), proc.own_pid()), (None, None));
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    assert_eq!(proc.tcp_listeners(address), [0; 0]);
    assert_eq!(proc.unix_listeners(Path::new("/run/a.sock")), [0; 0]);
    // As in some containers.
    dir.write("stat", "cpu\n");
    dir.write("pressure/cpu", "");
    dir.write("self/stat", "4711 (a");
    assert_eq!((proc.cpu_times(), proc.cpu_pressure_ns()), (None, None));
    assert_eq!(proc.process_cpu_ns("self"), None);
}

#[test]
fn listeners_are_found_by_the_inodes_of_their_sockets() {
    let dir = Dir::new("listeners");
    let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 111 1 0 100 0\n\
        1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 222 1 0 100 0\n\
        2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 333 1 0 100 0\n";
    let tcp6 = "  sl  local_address\n\
        0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 444 1\n";
    let unix = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0: 00000002 00000000 00010000 0001 01 555 /run/a b.sock\n\
        0: 00000003 00000000 00000000 0001 03 666 /run/a b.sock\n";
    if cfg!(target_endian = "little") {
        dir.write("net/tcp", tcp);
        dir.write("net/tcp6", tcp6);
    }
    dir.write("net/unix", unix);
    for (pid, inode) in
        [(10, 111), (11, 222), (12, 333), (13, 444), (14, 555), (15, 666), (16, 111)]
    {
        let fds = dir.0.join(format!("{pid}/fd"));
        fs::create_dir_all(&fds).unwrap();
        symlink("/dev/null", fds.join("0")).unwrap();
        symlink(format!("socket:[{inode}]"), fds.join("3")).unwrap();
    }
    let proc = ProcFs::at(&dir.0);
    if cfg!(target_endian = "little") {
        let at = |address: &str| proc.tcp_listeners(address.parse().unwrap());
        assert_eq!(at("127.0.0.1:8080"), [10, 16], "two processes share a socket");
        assert_eq!(at("127.0.0.1:80"), [12], "a listener on all addresses");
        assert_eq!(at("[::1]:8080"), [13]);
        assert_eq!(at("127.0.0.2:8080"), [0; 0]);
    }
    assert_eq!(proc.unix_listeners(Path::new("/run/a b.sock")), [14]);
}

#[test]
fn addresses_of_this_machine_are_recognized() {
    let dir = Dir::new("addresses");
    dir.write(
        "net/fib_trie",
        "Main:\n  +-- 192.0.2.0/24 2 0 2\n     |-- 192.0.2.0\n        /24 link UNICAST\n     |-- 192.0.2.7\n        \
         /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n",
    );
    dir.write("net/if_inet6", "20010db8000000000000000000000007 02 40 00 80     eth0\n");
    let proc = ProcFs::at(&dir.0);
    let is_own = |ip: &str| proc.is_own_address(ip.parse().unwrap());
    assert!(is_own("192.0.2.7") && is_own("2001:db8::7"));
    assert!(is_own("127.0.0.2") && is_own("::1"), "loopback");
    for other in ["192.0.2.0", "192.0.2.255", "192.0.2.8", "2001:db8::8"] {
        assert!(!is_own(other), "{other}");
    }
}

#[test]
fn the_system_knows_this_process() {
    let proc = ProcFs::system();
    let times = proc.cpu_times().unwrap();
    assert!(times.cpu_count > 0 && times.tasks_ns < times.all_ns, "{times:?}");
    assert_eq!(proc.own_pid(), Some(std::process::id()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(proc.tcp_listeners(listener.local_addr().unwrap()), [std::process::id()]);
    let dir = Dir::new("socket");
    let path = dir.0.join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(proc.unix_listeners(&path), [std::process::id()]);
    drop(listener);
}

#[test]
fn segments_that_were_sent_again_are_found_by_their_name() {
    let snmp = "Ip: Forwarding DefaultTTL\nIp: 2 64\nTcp: RtoMax MaxConn RetransSegs InErrs\n\
        Tcp: 120000 -1 70642 3\nUdp: InDatagrams\nUdp: 1764\n";
    assert_eq!(resent_segments(snmp), Some(70_642));
    assert_eq!(resent_segments("Tcp: RtoMax RetransSegs\nTcp: 120000"), None);
    assert_eq!(resent_segments("Ip: Forwarding\nIp: 2\n"), None);
}
