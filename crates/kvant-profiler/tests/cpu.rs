//! Two threads use CPU time in two functions, about 70 to 30; each function measures itself.

mod support;

use kvant_env::Env;
use kvant_profiler::collect::clock::monotonic_ns;
use kvant_profiler::collect::{Engine, Profiler};
use kvant_profiler::recording::{Kind, Recording};
use std::hint::black_box;
use std::thread;
use support::{FOUND_WITHIN, MS, Names, burn, only_cpu, random, shares, thread_cpu_ns, turn};

/// Per thread.
const BURNT_NS: u64 = 1_500 * MS;

/// CPU time of each function, as measured by itself.
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
    // Code that differs from `burn_long`, or the linker may merge the two.
    black_box(spent_ns + 1) - 1
}

/// Alternates in turns of tens of milliseconds, each with many samples. Their length is random, so
/// that they are not in step with the sampling.
#[inline(never)]
fn burn_both(mut seed: u64) -> Burnt {
    let mut burnt = Burnt::default();
    while burnt.long_ns + burnt.short_ns < BURNT_NS {
        burnt.long_ns += burn_long((40 + random(&mut seed, 60)) * MS);
        burnt.short_ns += burn_short((20 + random(&mut seed, 20)) * MS);
    }
    burnt
}

fn profile(engine: Engine, rate_hz: u32, seed: u64) -> (Recording, Burnt) {
    let options = only_cpu(engine, rate_hz);
    let profiler = Profiler::start(options, &Env::posix(), None).expect("the system permits it");
    let burners: Vec<_> = (0..2)
        .map(|index| {
            let burner = thread::Builder::new().name(format!("burner-{index}"));
            let burn = move || {
                // Threads are listed five times a second; then their sampling starts.
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

/// The samples of the burning threads.
#[derive(Debug, Default)]
struct Seen {
    sample_count: u64,
    total_ns: u64,
    long_ns: u64,
    short_ns: u64,
    /// Weight of stacks that reach the thread's start function in the standard library.
    deep_ns: u64,
}

impl Seen {
    fn add(&mut self, recording: &Recording) {
        assert_eq!(recording.facts.dropped_count, 0);
        let is_burner =
            |thread: u32| recording.threads[thread as usize].name.starts_with("burner-");
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

/// Profiles the burning threads and checks the samples; again if the machine stalled before the
/// threads were listed, or while the samples were to be fetched.
fn check(engine: Engine, rate_hz: u32, check_recording: impl Fn(&Recording)) {
    let share = |part: u64, whole: u64| part as f64 / whole as f64 * 100.0;
    for seed in [7, 17, 27] {
        let (recording, burnt) = profile(engine, rate_hz, seed);
        check_recording(&recording);
        if recording.facts.dropped_count > 0 {
            eprintln!("seed {seed}: {} samples were dropped", recording.facts.dropped_count);
            continue;
        }
        let mut seen = Seen::default();
        seen.add(&recording);
        let burnt_ns = burnt.long_ns + burnt.short_ns;
        let text = format!("seed {seed}: {seen:?}, measured {burnt:?}");
        let account = share(seen.total_ns, burnt_ns);
        assert!(account > 80.0 && account <= 103.0, "{account} % of the CPU time; {text}");
        let depth = share(seen.deep_ns, seen.total_ns);
        assert!(depth >= 95.0, "{depth} % reach the thread's entry; {text}");
        let long_error = share(seen.long_ns, seen.total_ns) - share(burnt.long_ns, burnt_ns);
        let short_error = share(seen.short_ns, seen.total_ns) - share(burnt.short_ns, burnt_ns);
        assert!(long_error.abs() <= 3.0 && short_error.abs() <= 3.0, "{text}");
        // If the machine stalled, threads may have been listed later.
        if account >= 90.0 {
            return;
        }
    }
    panic!("samples or 10 % of the CPU time were missing in each of three attempts");
}

#[test]
fn timers_measure_the_true_shares() {
    let _turn = turn();
    check(Engine::Timer, 2000, |recording| {
        let cpu = recording.facts.cpu.as_ref().expect("CPU time was sampled");
        assert_eq!((cpu.engine.as_str(), cpu.has_kernel_frames), ("timer", false));
    });
}

#[test]
fn perf_events_measure_the_true_shares() {
    let _turn = turn();
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let is_lenient =
        level.is_ok_and(|level| level.trim().parse().is_ok_and(|level: i32| level <= 1));
    if !is_lenient && !rustix::process::geteuid().is_root() {
        // Not permitted on this system.
        return;
    }
    // A container may refuse it although the system permits it.
    if Profiler::start(only_cpu(Engine::Perf, 1000), &Env::posix(), None).is_err() {
        return;
    }
    check(Engine::Perf, 1000, |recording| {
        let cpu = recording.facts.cpu.as_ref().expect("CPU time was sampled");
        // Reading clocks takes the burning threads into the kernel.
        assert_eq!((cpu.engine.as_str(), cpu.has_kernel_frames), ("perf", true));
    });
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

/// A timer that the kernel checks at its tick, every 1, 4 or 10 ms, would sample only one of the
/// two functions.
#[test]
fn work_in_step_with_the_clock_is_sampled_at_all_its_phases() {
    let _turn = turn();
    let functions = ["early_in_the_millisecond", "late_in_the_millisecond"];
    let [early, late] = shares(functions, || {
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() - start_ns < 2_000 * MS {
            early_in_the_millisecond();
            late_in_the_millisecond();
        }
    });
    // A function may start slightly late, and its last turn may end late.
    assert!((early - 70.0).abs() <= 5.0 && (late - 30.0).abs() <= 5.0, "{early} and {late} %");
}
