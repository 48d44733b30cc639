//! A program whose CPU time is known: two threads spend it in two functions, about 70 to 30, each of which measures itself.

mod support;

use kvant_env::Env;
use kvant_profiler::collect::{CpuOptions, Engine, Options, Profiler};
use kvant_profiler::recording::{Kind, Recording};
use std::hint::black_box;
use std::thread;
use support::{Names, random, thread_cpu_ns, turn};

const MS: u64 = 1_000_000;
/// Per thread.
const BURNT_NS: u64 = 1_500 * MS;

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

fn profile(engine: Engine, rate_hz: u32, seed: u64) -> (Recording, Burnt) {
    let options = Options {
        cpu: Some(CpuOptions { rate_hz, engine }),
        alloc_mean_bytes: None,
        wait_mean_ns: None,
        ..Options::default()
    };
    let profiler = Profiler::start(options, &Env::posix(), None).expect("the system permits it");
    let burners: Vec<_> = (0..2)
        .map(|index| {
            let burner = thread::Builder::new().name(format!("burner-{index}"));
            burner.spawn(move || burn_both(seed + index)).expect("a thread")
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

fn check(recording: &Recording, burnt: Burnt) {
    assert_eq!(recording.facts.dropped_count, 0);
    let is_burner = |thread: u32| recording.threads[thread as usize].name.starts_with("burner-");
    let samples = recording.samples.iter();
    let samples: Vec<_> = samples
        .filter(|sample| sample.kind == Kind::Cpu && is_burner(sample.thread))
        .collect();
    assert!(samples.len() >= 200, "{} samples", samples.len());

    let mut names = Names::of_this_binary();
    let (mut total, mut long, mut short, mut deep) = (0, 0, 0, 0);
    for sample in samples {
        let stack = names.of(recording, sample);
        let has = |function: &str| stack.iter().any(|name| name.contains(function));
        total += sample.weight;
        long += if has("burn_long") { sample.weight } else { 0 };
        short += if has("burn_short") { sample.weight } else { 0 };
        // Where the standard library begins a thread.
        deep += if has("thread_start") { sample.weight } else { 0 };
    }

    let share = |part: u64, whole: u64| part as f64 / whole as f64 * 100.0;
    let truth = share(burnt.long_ns, burnt.long_ns + burnt.short_ns);
    let seen = share(long, total);
    assert!((seen - truth).abs() <= 3.0, "{seen} % instead of {truth} %");
    let seen_short = share(short, total);
    assert!(
        (seen_short - (100.0 - truth)).abs() <= 3.0,
        "{seen_short} % are short"
    );
    let account = share(total, burnt.long_ns + burnt.short_ns);
    assert!(
        (97.0..=103.0).contains(&account),
        "weights are {account} % of the CPU time"
    );
    let depth = share(deep, total);
    assert!(depth >= 95.0, "only {depth} % reach the thread's entry");
}

#[test]
fn timers_see_the_true_shares() {
    let _turn = turn();
    let (recording, burnt) = profile(Engine::Timer, 250, 7);
    let cpu = recording.facts.cpu.clone().expect("CPU time was sampled");
    assert_eq!((cpu.engine.as_str(), cpu.has_kernel_frames), ("timer", false));
    check(&recording, burnt);
}

#[test]
fn perf_events_see_the_true_shares() {
    let _turn = turn();
    let is_permitted = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .is_ok_and(|level| level.trim().parse().is_ok_and(|level: i32| level <= 1))
        || rustix::process::geteuid().is_root();
    if !is_permitted {
        // Not permitted here.
        return;
    }
    let (recording, burnt) = profile(Engine::Perf, 1000, 7);
    let cpu = recording.facts.cpu.clone().expect("CPU time was sampled");
    assert_eq!(cpu.engine, "perf");
    // The burners read clocks, which takes them into the kernel now and then.
    assert!(cpu.has_kernel_frames);
    check(&recording, burnt);
}
