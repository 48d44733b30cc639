use super::*;
use crate::report::testing::calm;
use kvant_env::host::write_file;
use std::path::PathBuf;

const S: u64 = 1_000_000_000;

/// A directory like `/proc`, of this test's own, removed at its end.
struct Proc(PathBuf);

impl Proc {
    fn new(name: &str) -> Proc {
        Proc(std::env::temp_dir().join(format!("kvant-machine-{}-{name}", std::process::id())))
    }

    fn write(&self, file: &str, text: &str) {
        write_file(&self.0.join(file), text.as_bytes()).unwrap();
    }

    /// Ticks of two CPUs in tasks, idle and stolen; of this process; of process 77; and
    /// microseconds of pressure.
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
fn what_others_took_is_what_neither_generator_nor_server_did() {
    let proc = Proc::new("parts");
    let machine = proc.machine(Server::Processes(vec!["77".to_owned()]));
    let mut watch = Watch::new(&machine);
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
    // The next lap begins where this one ended; the whole where the first did.
    proc.set(1_600, 5_152, 148, 90, 580, 7_500_000);
    assert_eq!(watch.lap(14 * S).unwrap().others_part, 1.0);
    let whole = watch.whole().unwrap();
    assert_eq!(whole.time_ns, 4 * S);
    assert!((whole.others_part - 0.6).abs() < 1e-9, "{whole:?}");
}

#[test]
fn without_an_account_nothing_is_said() {
    let proc = Proc::new("none");
    proc.write("stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    let machine = proc.machine(Server::Elsewhere);
    let mut watch = Watch::new(&machine);
    watch.begin(S);
    assert_eq!((watch.lap(2 * S), watch.whole()), (None, None), "no process");
    // Some containers have a table without figures.
    proc.write("self/stat", "1 (load) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5");
    watch.begin(S);
    assert_eq!((watch.lap(2 * S), watch.whole()), (None, None), "no ticks");
    proc.set(1, 200, 0, 1, 0, 0);
    std::fs::remove_dir_all(proc.0.join("pressure")).unwrap();
    watch.begin(S);
    proc.set(101, 400, 0, 1, 0, 0);
    std::fs::remove_dir_all(proc.0.join("pressure")).unwrap();
    let lap = watch.lap(2 * S).unwrap();
    assert_eq!((lap.server_part, lap.pressure_part, lap.others_part), (None, None, 0.5));
    // Less than a few ticks is no time.
    assert_eq!(watch.lap(2 * S + 1_000), None);
}

#[test]
fn a_server_of_this_machine_is_looked_for() {
    let proc = Proc::new("server");
    proc.set(1, 1, 0, 1, 1, 0);
    let fs = ProcFs::at(&proc.0);
    let local = target("http://127.0.0.1:8080/");
    assert_eq!(server(&fs, std::slice::from_ref(&local)), Server::Hidden);
    let far =
        Target { addresses: vec![Address::Tcp(([192, 0, 2, 1], 8080).into())], ..local.clone() };
    assert_eq!(server(&fs, &[far]), Server::Elsewhere);
    proc.write(
        "net/tcp",
        &format!(
            "  sl\n 0: {:08X}:1F90 00000000:0000 0A 0:0 0:0 0 0 0 111 1\n",
            u32::from_ne_bytes([127, 0, 0, 1])
        ),
    );
    assert_eq!(server(&fs, std::slice::from_ref(&local)), Server::Hidden, "of another user");
    let owned = |pid: u32| {
        let fds = proc.0.join(format!("{pid}/fd"));
        std::fs::create_dir_all(&fds).unwrap();
        std::os::unix::fs::symlink("socket:[111]", fds.join("3")).unwrap();
        server(&fs, std::slice::from_ref(&local))
    };
    assert_eq!(owned(42), Server::Elsewhere, "this process: it is in the generator's share");
    assert_eq!(owned(77), Server::Processes(vec!["77".to_owned()]));
}

fn used(stolen_part: f64, others_part: f64, pressure_part: Option<f64>) -> MachineUse {
    MachineUse {
        time_ns: S,
        cpu_count: 2,
        generator_part: 0.1,
        others_part,
        stolen_part,
        pressure_part,
        ..MachineUse::default()
    }
}

fn with(machine: MachineUse) -> Outcome {
    Outcome { machine: Some(machine), ..calm(1_000) }
}

#[test]
fn a_machine_is_disturbed_by_theft_and_by_others_that_make_tasks_wait() {
    assert_eq!(disturbance(&calm(1_000)), None, "not sampled");
    assert_eq!(disturbance(&with(used(0.01, 0.02, Some(0.5)))), None);
    assert_eq!(
        disturbance(&with(used(0.12, 0.3, Some(0.4)))).unwrap(),
        "the hypervisor took 12 % of the CPU time, other processes 30 %"
    );
    assert_eq!(
        disturbance(&with(used(0.03, 0.0, None))).unwrap(),
        "the hypervisor took 3 % of the CPU time"
    );
    assert_eq!(
        disturbance(&with(used(0.0, 0.3, Some(0.2)))).unwrap(),
        "other processes took 30 % of the CPU time"
    );
    assert!(disturbance(&with(used(0.0, 0.3, None))).is_some());
    // CPUs that no other process wanted.
    assert_eq!(disturbance(&with(used(0.0, 0.3, Some(0.02)))), None);
    // The server may be what took it.
    let hidden = MachineUse { others_include_server: true, ..used(0.0, 0.3, Some(0.2)) };
    assert_eq!(disturbance(&with(hidden)), None);
}

#[test]
fn few_disturbed_seconds_disturb_a_step_but_not_a_phase() {
    let outcome = |disturbed: usize, stolen: f64| {
        let mut outcome = with(used(0.0, 0.0, Some(0.0)));
        outcome.seconds = (0..20)
            .map(|n| crate::outcome::Second {
                start_ns: n * S,
                end_ns: (n + 1) * S,
                planned: 0,
                completed: 0,
                backlog: 0,
                errors: 0,
                p50_ns: 0,
                p99_ns: 0,
                max_ns: 0,
                machine: Some(used(
                    if (n as usize) < disturbed { stolen } else { 0.01 },
                    0.0,
                    None,
                )),
            })
            .collect();
        outcome
    };
    assert_eq!(disturbance_of_any_second(&outcome(0, 0.0)), None);
    assert_eq!(disturbance_of_any_second(&outcome(20, 0.04)), None, "ticks are few");
    assert_eq!(disturbance(&outcome(1, 0.2)), None);
    let any = disturbance_of_any_second(&outcome(1, 0.2)).unwrap();
    assert!(any.contains("1 of 20 seconds") && any.contains("20 %"), "{any}");
    assert!(disturbance(&outcome(3, 0.2)).is_some());
}
