//! A program whose CPU time is known: two threads spend it in two functions, about 70 to 30, each of which measures itself.

mod support;

use kvant_base::lock;
use kvant_base::wait::{self, WaitKind};
use kvant_env::Env;
use kvant_profiler::collect::{CpuOptions, Engine, Options, Profiler};
use kvant_profiler::recording::{Kind, Recording};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use support::{Names, random, thread_cpu_ns, turn};

const MS: u64 = 1_000_000;
/// Per thread.
const BURNT_NS: u64 = 1_500 * MS;

/// A thread that has begun is known to the profiler.
const FOUND_WITHIN: Duration = Duration::from_millis(600);

/// What each function measured of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Burnt {
    long_ns: u64,
    short_ns: u64,
}

#[inline(never)]
fn burn_long(ns: u64) -> u64 {
    let spent_ns = burn(ns);
    black_box(spent_ns)
}

#[inline(never)]
fn burn_short(ns: u64) -> u64 {
    let spent_ns = burn(ns);
    // Other code than that of `burn_long`, or the linker may fold the two into one.
    black_box(spent_ns + 1) - 1
}

/// Spends CPU time, and says how much it was.
#[inline(always)]
fn burn(ns: u64) -> u64 {
    let start_ns = thread_cpu_ns();
    let mut number = start_ns | 1;
    loop {
        for _ in 0..20_000 {
            number = black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7);
        }
        let spent_ns = thread_cpu_ns() - start_ns;
        if spent_ns >= ns {
            return spent_ns;
        }
    }
}

/// In turns of tens of milliseconds: many samples each, so that few decide by chance. Of random length, so that they do not keep step
/// with the sampling.
#[inline(never)]
fn burn_both(mut seed: u64) -> Burnt {
    let mut burnt = Burnt::default();
    while burnt.long_ns + burnt.short_ns < BURNT_NS {
        burnt.long_ns += burn_long((40 + random(&mut seed, 60)) * MS);
        burnt.short_ns += burn_short((20 + random(&mut seed, 20)) * MS);
    }
    burnt
}

fn only_cpu(engine: Engine, rate_hz: u32) -> Options {
    Options {
        cpu: Some(CpuOptions { rate_hz, engine }),
        alloc_mean_bytes: None,
        wait_mean_ns: None,
        ..Options::default()
    }
}

fn profile(engine: Engine, rate_hz: u32, seed: u64) -> (Recording, Burnt) {
    let options = only_cpu(engine, rate_hz);
    let profiler = Profiler::start(options, &Env::posix(), None).expect("the system permits it");
    let burners: Vec<_> = (0..2)
        .map(|index| {
            let burner = thread::Builder::new().name(format!("burner-{index}"));
            let burn = move || {
                // A thread is sampled from the first look at the list of threads on: five times a second.
                thread::sleep(FOUND_WITHIN);
                burn_both(seed + index)
            };
            burner.spawn(burn).expect("a thread")
        })
        .collect();
    let mut burnt = Burnt::default();
    for burner in burners {
        let one = burner.join().expect("burns");
        burnt.long_ns += one.long_ns;
        burnt.short_ns += one.short_ns;
    }
    (profiler.stop(), burnt)
}

/// What samples of the burners say.
#[derive(Debug, Default)]
struct Seen {
    sample_count: u64,
    total_ns: u64,
    long_ns: u64,
    short_ns: u64,
    /// Of stacks that begin where the standard library begins a thread.
    deep_ns: u64,
}

impl Seen {
    fn add(&mut self, recording: &Recording) {
        assert_eq!(recording.facts.dropped_count, 0);
        let is_burner = |thread: u32| recording.threads[thread as usize].name.starts_with("burner-");
        let mut names = Names::of_this_binary();
        for sample in &recording.samples {
            if sample.kind != Kind::Cpu || !is_burner(sample.thread) {
                continue;
            }
            let stack = names.of(recording, sample);
            let weight_if = |function: &str| {
                let is_there = stack.iter().any(|name| name.contains(function));
                if is_there { sample.weight } else { 0 }
            };
            self.sample_count += 1;
            self.total_ns += sample.weight;
            self.long_ns += weight_if("burn_long");
            self.short_ns += weight_if("burn_short");
            self.deep_ns += weight_if("thread_start");
        }
    }
}

/// Profiles the burners and checks what is seen of them, again if the machine stood still while they were to be found.
fn check(engine: Engine, rate_hz: u32, check_recording: impl Fn(&Recording)) {
    let share = |part: u64, whole: u64| part as f64 / whole as f64 * 100.0;
    for seed in [7, 17, 27] {
        let (recording, burnt) = profile(engine, rate_hz, seed);
        check_recording(&recording);
        let mut seen = Seen::default();
        seen.add(&recording);
        let burnt_ns = burnt.long_ns + burnt.short_ns;
        let text = format!("seed {seed}: {seen:?}, measured {burnt:?}");
        let account = share(seen.total_ns, burnt_ns);
        assert!(
            account > 80.0 && account <= 103.0,
            "{account} % of the CPU time; {text}"
        );
        let depth = share(seen.deep_ns, seen.total_ns);
        assert!(depth >= 95.0, "{depth} % reach the thread's entry; {text}");
        let long_error = share(seen.long_ns, seen.total_ns) - share(burnt.long_ns, burnt_ns);
        let short_error = share(seen.short_ns, seen.total_ns) - share(burnt.short_ns, burnt_ns);
        assert!(long_error.abs() <= 3.0 && short_error.abs() <= 3.0, "{text}");
        // On a machine that stood still, threads may have been found later.
        if account >= 90.0 {
            return;
        }
    }
    panic!("less than 90 % of the CPU time was seen in each of three attempts");
}

#[test]
fn timers_see_the_true_shares() {
    let _turn = turn();
    check(Engine::Timer, 2000, |recording| {
        let cpu = recording.facts.cpu.as_ref().expect("CPU time was sampled");
        assert_eq!((cpu.engine.as_str(), cpu.has_kernel_frames), ("timer", false));
    });
}

#[test]
fn perf_events_see_the_true_shares() {
    let _turn = turn();
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let is_lenient = level.is_ok_and(|level| level.trim().parse().is_ok_and(|level: i32| level <= 1));
    if !is_lenient && !rustix::process::geteuid().is_root() {
        // Not permitted here.
        return;
    }
    // A container may refuse what the system permits.
    if Profiler::start(only_cpu(Engine::Perf, 1000), &Env::posix(), None).is_err() {
        return;
    }
    check(Engine::Perf, 1000, |recording| {
        let cpu = recording.facts.cpu.as_ref().expect("CPU time was sampled");
        // The burners read clocks, which takes them into the kernel now and then.
        assert_eq!((cpu.engine.as_str(), cpu.has_kernel_frames), ("perf", true));
    });
}

/// Runs `work` on a thread of its own, while timers sample it; the shares of the thread's CPU time in functions whose names contain each
/// of `functions`, in per cent.
fn shares<const N: usize>(functions: [&str; N], work: impl FnOnce() + Send + 'static) -> [f64; N] {
    let profiler = Profiler::start(only_cpu(Engine::Timer, 2000), &Env::posix(), None).expect("permitted");
    let worker = thread::Builder::new().name("worker".to_owned());
    let worker = worker.spawn(|| {
        thread::sleep(FOUND_WITHIN);
        work();
    });
    worker.expect("a thread").join().expect("works");
    let recording = profiler.stop();
    assert_eq!(recording.facts.dropped_count, 0);
    let mut names = Names::of_this_binary();
    let (mut total_ns, mut by_function_ns) = (0, [0; N]);
    for sample in &recording.samples {
        if sample.kind != Kind::Cpu || recording.threads[sample.thread as usize].name != "worker" {
            continue;
        }
        total_ns += sample.weight;
        let stack = names.of(&recording, sample);
        for (sum_ns, function) in by_function_ns.iter_mut().zip(functions) {
            if stack.iter().any(|name| name.contains(function)) {
                *sum_ns += sample.weight;
            }
        }
    }
    by_function_ns.map(|ns| ns as f64 / total_ns as f64 * 100.0)
}

fn monotonic_ns() -> u64 {
    kvant_profiler::collect::clock::monotonic_ns()
}

#[inline(never)]
fn early_in_the_millisecond() {
    while monotonic_ns() % MS < 7 * MS / 10 {
        black_box(burn(0));
    }
}

#[inline(never)]
fn late_in_the_millisecond() {
    while monotonic_ns() % MS >= 7 * MS / 10 {
        black_box(burn(1));
    }
}

/// A timer that the kernel looks at in its tick, every 1, 4 or 10 ms, would see only one of the two functions.
#[test]
fn work_in_step_with_the_clock_is_seen_at_all_its_moments() {
    let _turn = turn();
    let functions = ["early_in_the_millisecond", "late_in_the_millisecond"];
    let [early, late] = shares(functions, || {
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() - start_ns < 2_000 * MS {
            early_in_the_millisecond();
            late_in_the_millisecond();
        }
    });
    // A function may begin a little late, and the last of its turns end late.
    assert!(
        (early - 70.0).abs() <= 5.0 && (late - 30.0).abs() <= 5.0,
        "{early} and {late} %"
    );
}

/// In calls that a signal ends, and in one that is made again after it.
#[inline(never)]
fn sleep_in_the_kernel(turn: u64, mut peer: &UnixStream) {
    match turn % 3 {
        0 => thread::sleep(Duration::from_millis(4)),
        1 => thread::park_timeout(Duration::from_millis(4)),
        _ => {
            peer.write_all(&[0]).expect("somebody answers");
            peer.read_exact(&mut [0]).expect("an answer");
        }
    }
    // Or the calls that are the last would take its place on the stack.
    black_box(turn);
}

/// Burns and sleeps in turns; which share of its CPU time the latter takes, in per cent.
fn burn_and_sleep() -> f64 {
    let (peer, mut other) = UnixStream::pair().expect("two sockets");
    // Of another name than the worker.
    let answerer = thread::Builder::new().name("answerer".to_owned());
    let answer = move || {
        while other.read_exact(&mut [0]).is_ok() {
            thread::sleep(Duration::from_millis(4));
            other.write_all(&[0]).expect("somebody waits");
        }
    };
    answerer.spawn(answer).expect("a thread");
    let (mut burnt_ns, mut asleep_ns) = (0, 0);
    for turn in 0..400 {
        burnt_ns += burn_long(2 * MS);
        let before_ns = thread_cpu_ns();
        sleep_in_the_kernel(turn, &peer);
        asleep_ns += thread_cpu_ns() - before_ns;
    }
    asleep_ns as f64 / (burnt_ns + asleep_ns) as f64 * 100.0
}

/// The signal wakes threads that sleep: what they slept in must not look as if it ran.
#[test]
fn system_calls_that_sleep_are_no_cpu_time() {
    let _turn = turn();
    // Undisturbed: what signals add, which the program itself would not do, does not count.
    let truth = burn_and_sleep();
    let [asleep, burning] = shares(["sleep_in_the_kernel", "burn_long"], || {
        burn_and_sleep();
    });
    assert!(
        (asleep - truth).abs() <= 3.0 && (burning - (100.0 - truth)).abs() <= 3.0,
        "{asleep} % asleep, {burning} % burning; in truth {truth} % asleep"
    );
}

#[inline(never)]
fn wait_and_run(iterations: u64) -> u64 {
    let _waiting = wait::begin(WaitKind::Idle, "test");
    black_box((0..iterations).fold(1, |number, i| black_box(number ^ i)))
}

#[inline(never)]
fn run_awake(iterations: u64) -> u64 {
    black_box((0..iterations).fold(3, |number, i| black_box(number ^ i)))
}

/// What waits cost is measured by themselves, one in a few: it must come out as what it is.
#[test]
fn what_waiting_costs_is_cpu_time() {
    let _turn = turn();
    let [waiting, running] = shares(["wait_and_run", "run_awake"], || {
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() - start_ns < 2_000 * MS {
            wait_and_run(10_000);
            run_awake(30_000);
        }
    });
    assert!(
        (waiting - 25.0).abs() <= 4.0 && (running - 75.0).abs() <= 4.0,
        "{waiting} % waiting, {running} % running"
    );
}

#[inline(never)]
fn work_after_the_wait(ns: u64) -> u64 {
    black_box(burn(ns) + 2) - 2
}

#[inline(never)]
fn work_before_the_wait(ns: u64) -> u64 {
    black_box(burn(ns) + 3) - 3
}

/// Work that takes less than any gap between two samples, with waits before it that are longer than any.
#[test]
fn short_work_between_long_waits_is_seen() {
    let _turn = turn();
    let (tell, told) = std::sync::mpsc::channel();
    let [after, before] = shares(["work_after_the_wait", "work_before_the_wait"], move || {
        let (mut after_ns, mut before_ns) = (0, 0);
        for _ in 0..5_000 {
            lock::park(WaitKind::Idle, "test", Some(Duration::from_millis(1)));
            after_ns += work_after_the_wait(50_000);
            before_ns += work_before_the_wait(50_000);
        }
        tell.send(after_ns as f64 / (after_ns + before_ns) as f64 * 100.0)
            .expect("somebody listens");
    });
    let truth = told.recv().expect("it was told");
    let seen = after / (after + before) * 100.0;
    assert!(
        (seen - truth).abs() <= 8.0,
        "{after} and {before} % of all: {seen} instead of {truth} %"
    );
}

/// How often the calling thread has gone to sleep.
fn sleep_count() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.expect("it is there").trim().parse().expect("a number")
}

#[test]
fn a_thread_that_has_said_that_it_waits_sleeps_on() {
    let _turn = turn();
    let (tell, told) = std::sync::mpsc::channel();
    shares([], move || {
        let start_ns = monotonic_ns();
        let before = sleep_count();
        let mut wait_count = 0;
        while monotonic_ns() - start_ns < 1_000 * MS {
            wait_count += 1;
            lock::park(WaitKind::Idle, "test", Some(Duration::from_secs(1)));
        }
        tell.send((sleep_count() - before, wait_count))
            .expect("somebody listens");
    });
    let (sleep_count, wait_count) = told.recv().expect("it was told");
    // Its timer fires once in a wait, and then not before the end of the wait.
    assert!(
        sleep_count <= 2 * wait_count,
        "{sleep_count} sleeps in {wait_count} waits"
    );
}

/// Also when it does say so elsewhere.
#[test]
fn a_thread_that_sleeps_without_saying_so_is_soon_left_alone() {
    let _turn = turn();
    let (tell, told) = std::sync::mpsc::channel();
    shares([], move || {
        lock::park(WaitKind::Idle, "test", Some(Duration::from_millis(1)));
        let before = sleep_count();
        thread::sleep(Duration::from_millis(1_500));
        tell.send(sleep_count() - before).expect("somebody listens");
    });
    let sleep_count = told.recv().expect("it was told");
    // At the full rate it would be 3,000.
    assert!(sleep_count <= 100, "woken {sleep_count} times");
}
