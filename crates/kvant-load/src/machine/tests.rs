use super::*;
use kvant_env::host::write_file;
use std::path::PathBuf;

const S: u64 = 1_000_000_000;

/// A directory like `/proc`, removed at the end of the test.
struct Proc(PathBuf);

impl Proc {
    fn new(name: &str) -> Proc {
        Proc(std::env::temp_dir().join(format!("kvant-machine-{}-{name}", std::process::id())))
    }

    fn write(&self, file: &str, text: &str) {
        write_file(&self.0.join(file), text.as_bytes()).unwrap();
    }

    /// Sets the ticks of two CPUs in tasks, idle and stolen, those of this process and of process
    /// 77, and the pressure.
    fn set(&self, tasks: u64, idle: u64, stolen: u64, own: u64, server: u64, pressure_us: u64) {
        self.write(
            "stat",
            &format!("cpu  {tasks} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1\ncpu1 1\n"),
        );
        let process = |pid: u32, ticks: u64| {
            format!("{pid} (load) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5")
        };
        self.write("self/stat", &process(42, own));
        self.write("77/stat", &process(77, server));
        self.write("pressure/cpu", &format!("some avg10=0 avg60=0 avg300=0 total={pressure_us}\n"));
    }

    fn machine(&self, server: Server) -> Machine {
        Machine { proc: ProcFs::at(&self.0), server }
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn target(url: &str) -> Target {
    Target::parse(url).unwrap().resolve().unwrap()
}

/// Two seconds of two CPUs: 400 ticks of 10 ms.
#[test]
fn others_share_is_that_of_neither_generator_nor_server() {
    let proc = Proc::new("parts");
    let machine = proc.machine(Server::Processes(vec!["77".to_owned()]));
    let mut watch = MachineWatch::new(Some(&machine));
    proc.set(1_000, 5_000, 100, 50, 500, 7_000_000);
    watch.begin(10 * S);
    proc.set(1_200, 5_152, 148, 90, 580, 7_500_000);
    let lap = watch.lap(12 * S).unwrap();
    assert_eq!(
        lap,
        MachineUse {
            time_ns: 2 * S,
            cpu_count: 2,
            generator_part: 0.1,
            server_part: Some(0.2),
            others_part: lap.others_part,
            others_include_server: false,
            stolen_part: 0.12,
            pressure_part: Some(0.25),
        }
    );
    assert!((lap.others_part - 0.2).abs() < 1e-9, "{lap:?}");
    // The next lap begins at the end of this one, the total at the begin of the first.
    proc.set(1_600, 5_152, 148, 90, 580, 7_500_000);
    assert_eq!(watch.lap(14 * S).unwrap().others_part, 1.0);
    let total = watch.total().unwrap();
    assert_eq!(total.time_ns, 4 * S);
    assert!((total.others_part - 0.6).abs() < 1e-9, "{total:?}");
}

/// Another process keeps one of eight CPUs busy, on which the hypervisor also steals. The generator
/// and the server are bound to this CPU and its neighbour.
#[test]
fn a_neighbour_on_one_of_many_cpus_is_seen() {
    let proc = Proc::new("many");
    let set = |tasks: u64, idle: u64, stolen: u64, own: u64| {
        proc.set(0, 0, 0, own, 0, 0);
        let quiet = |cpu: u32| format!("cpu{cpu} 0 0 0 {} 0 0 0 0 0 0\n", tasks + idle + stolen);
        let busy = format!("cpu3 {tasks} 0 0 {idle} 0 0 0 {stolen} 0 0\n");
        let rows: String =
            (0..8).map(|cpu| if cpu == 3 { busy.clone() } else { quiet(cpu) }).collect();
        let sum =
            format!("cpu  {tasks} 0 0 {} 0 0 0 {stolen} 0 0\n", 8 * idle + 7 * (tasks + stolen));
        proc.write("stat", &format!("{sum}{rows}"));
    };
    let on = |cpus: Vec<u32>| {
        let server = Server::Processes(vec!["77".to_owned()]);
        let machine = Machine { proc: ProcFs::at(&proc.0).on_cpus(cpus), server };
        let mut watch = MachineWatch::new(Some(&machine));
        set(0, 0, 0, 0);
        watch.begin(10 * S);
        set(90, 0, 10, 10);
        watch.lap(11 * S).unwrap()
    };
    let all = on(Vec::new());
    assert!((all.others_part - 0.1).abs() < 1e-9 && all.stolen_part < 0.02, "{all:?}");
    let bound = on(vec![2, 3]);
    assert!((bound.others_part - 0.4).abs() < 1e-9, "{bound:?}");
    assert!((bound.stolen_part - 0.05).abs() < 1e-9, "{bound:?}");
}

#[test]
fn without_counters_there_is_no_result() {
    let proc = Proc::new("none");
    proc.write("stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    let machine = proc.machine(Server::Elsewhere);
    let mut watch = MachineWatch::new(Some(&machine));
    watch.begin(S);
    assert_eq!((watch.lap(2 * S), watch.total()), (None, None), "no process");
    // Some containers have a file without figures.
    proc.write("self/stat", "1 (load) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5");
    watch.begin(S);
    assert_eq!((watch.lap(2 * S), watch.total()), (None, None), "no ticks");
    proc.set(1, 200, 0, 1, 0, 0);
    std::fs::remove_dir_all(proc.0.join("pressure")).unwrap();
    watch.begin(S);
    proc.set(101, 400, 0, 1, 0, 0);
    std::fs::remove_dir_all(proc.0.join("pressure")).unwrap();
    let lap = watch.lap(2 * S).unwrap();
    assert_eq!((lap.server_part, lap.pressure_part, lap.others_part), (None, None, 0.5));
    // A few ticks are too short a time.
    assert_eq!(watch.lap(2 * S + 1_000), None);
}

#[test]
fn the_server_on_this_machine_is_found() {
    let proc = Proc::new("server");
    proc.set(1, 1, 0, 1, 1, 0);
    let fs = ProcFs::at(&proc.0);
    let local = target("http://127.0.0.1:8080/");
    assert_eq!(find_server(&fs, std::slice::from_ref(&local)), Server::Hidden);
    let far =
        Target { addresses: vec![Address::Tcp(([192, 0, 2, 1], 8080).into())], ..local.clone() };
    assert_eq!(find_server(&fs, &[far]), Server::Elsewhere);
    proc.write(
        "net/tcp",
        &format!(
            "  sl\n 0: {:08X}:1F90 00000000:0000 0A 0:0 0:0 0 0 0 111 1\n",
            u32::from_ne_bytes([127, 0, 0, 1])
        ),
    );
    assert_eq!(find_server(&fs, std::slice::from_ref(&local)), Server::Hidden, "of another user");
    let owned = |pid: u32| {
        let fds = proc.0.join(format!("{pid}/fd"));
        std::fs::create_dir_all(&fds).unwrap();
        std::os::unix::fs::symlink("socket:[111]", fds.join("3")).unwrap();
        find_server(&fs, std::slice::from_ref(&local))
    };
    assert_eq!(owned(42), Server::Elsewhere, "this process is in the generator's share");
    assert_eq!(owned(77), Server::Processes(vec!["77".to_owned()]));
    let with_node = Machine::new(fs.clone(), std::slice::from_ref(&local), &[78]);
    assert_eq!(with_node.server, Server::Processes(vec!["77".to_owned(), "78".to_owned()]));
}
