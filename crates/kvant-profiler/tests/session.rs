//! Sessions and threads start and end concurrently: nothing leaks, samples are not mixed up, and no
//! signal terminates the process.

mod support;

use kvant_base::events::{EventKind, Events, Field};
use kvant_base::tag::{self, Activity, Stage, Tag};
use kvant_base::wait::WaitKind;
use kvant_env::Env;
use kvant_profiler::collect::anchor::anchored;
use kvant_profiler::collect::record::{Observation, record, record_free};
use kvant_profiler::collect::{
    Background, CpuOptions, Engine, Options, Profiler, StartError, clock,
};
use kvant_profiler::recording::{Kind, Recording, Sample};
use rustix::process::{Signal, getpid, kill_process};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use support::{FOUND_WITHIN, Names, thread_cpu_ns, turn};

fn only_cpu(engine: Engine, rate_hz: u32) -> Options {
    Options {
        cpu: Some(CpuOptions { rate_hz, engine }),
        alloc_mean_bytes: None,
        wait_mean_ns: None,
        ..Options::default()
    }
}

fn no_cpu() -> Options {
    Options { cpu: None, ..only_cpu(Engine::Timer, 0) }
}

fn start(options: Options) -> Profiler {
    Profiler::start(options, &Env::posix(), None).expect("the system permits it")
}

fn burn(ns: u64) {
    let start_ns = thread_cpu_ns();
    while thread_cpu_ns() - start_ns < ns {}
}

fn cpu_samples(recording: &Recording) -> impl Iterator<Item = &Sample> {
    recording.samples.iter().filter(|sample| sample.kind == Kind::Cpu)
}

fn descriptor_count() -> usize {
    fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// Timers of the process; 0 on kernels that do not list them.
fn timer_count() -> usize {
    let timers = fs::read_to_string("/proc/self/timers").unwrap_or_default();
    timers.lines().filter(|line| line.starts_with("ID:")).count()
}

/// Mappings of perf events.
fn perf_mapping_count() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux");
    maps.lines().filter(|line| line.contains("perf_event")).count()
}

fn observation(kind: Kind, weight: u64, address: usize) -> Observation {
    Observation {
        kind,
        time_mono_ns: clock::monotonic_ns(),
        duration_ns: 0,
        weight,
        name: None,
        address,
        frames_to_skip: 0,
    }
}

#[test]
fn sessions_leak_nothing_while_threads_start_and_end() {
    let _turn = turn();
    // One-time initialization.
    drop(start(only_cpu(Engine::Timer, 1000)));
    let before = (descriptor_count(), timer_count(), perf_mapping_count());

    let is_over = AtomicBool::new(false);
    let born_count = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let child = thread::spawn(|| {
                        burn(300_000);
                        record(&observation(Kind::Wait(WaitKind::Idle), 1, 0));
                    });
                    child.join().expect("a short life");
                    born_count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for cycle in 0..50 {
            let engine = [Engine::Perf, Engine::Timer][cycle % 2];
            // Perf events may not be permitted.
            let profiler = Profiler::start(only_cpu(engine, 2000), &Env::posix(), None)
                .unwrap_or_else(|_refused| start(only_cpu(Engine::Timer, 2000)));
            let born_before = born_count.load(Ordering::Relaxed);
            // Threads start and end during every session.
            while born_count.load(Ordering::Relaxed) < born_before + 5 {
                thread::yield_now();
            }
            let recording = profiler.stop();
            assert!(recording.samples.len() > 2, "cycle {cycle}");
            assert!(
                recording
                    .samples
                    .iter()
                    .all(|sample| sample.time_ns <= recording.facts.duration_ns)
            );
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(before, (descriptor_count(), timer_count(), perf_mapping_count()));
}

#[test]
fn a_second_session_is_refused() {
    let _turn = turn();
    let first = start(no_cpu());
    let second = Profiler::start(no_cpu(), &Env::posix(), None);
    assert!(matches!(second, Err(StartError::AlreadyRunning)));
    drop(first);
    start(no_cpu()).stop();
}

#[test]
fn a_background_session_gives_way_and_comes_back() {
    let _turn = turn();
    let (sender, ended) = channel();
    let start_background = || {
        let sender = sender.clone();
        let on_end = move |recording| sender.send(recording).expect("it is received below");
        Background::start(only_cpu(Engine::Timer, 1000), &Env::posix(), on_end)
    };
    let first = start_background().expect("the system permits it");
    assert!(matches!(start_background(), Err(StartError::AlreadyRunning)));
    burn(50_000_000);
    let asked = start(only_cpu(Engine::Timer, 1000));
    let recording = ended.try_recv().expect("the session that was asked for has ended it");
    assert!(cpu_samples(&recording).count() > 0);
    assert!(matches!(start_background(), Err(StartError::AlreadyRunning)));
    burn(50_000_000);
    assert!(cpu_samples(&asked.stop()).count() > 0);
    let second = start_background().expect("nothing runs");
    // It has ended already, and leaves the other alone.
    drop(first);
    assert!(ended.try_recv().is_err());
    drop(second);
    ended.try_recv().expect("a dropped session has ended");
    start(no_cpu()).stop();
}

#[test]
fn records_that_do_not_fit_are_counted_as_dropped() {
    let _turn = turn();
    let profiler = start(no_cpu());
    // More than twice the capacity of a ring, in less time than between two drains.
    let written_count = 5000;
    for _ in 0..written_count {
        record(&observation(Kind::Alloc, 1, 0));
    }
    let recording = profiler.stop();
    let kept_count = recording.samples.len() as u64;
    assert!(recording.facts.dropped_count > 0);
    assert_eq!(kept_count + recording.facts.dropped_count, written_count);
}

#[test]
fn a_recording_above_its_limit_is_thinned_out() {
    const MIB: u64 = 1 << 20;

    let _turn = turn();
    let profiler = start(Options { samples_max: 100, alloc_mean_bytes: Some(MIB / 2), ..no_cpu() });
    let written_count = 1_000;
    for _ in 0..written_count {
        record(&observation(Kind::Alloc, MIB, 0));
    }
    let recording = profiler.stop();
    assert_eq!(recording.facts.dropped_count, 0);
    assert!((25..=100).contains(&recording.samples.len()));
    let mean_bytes = recording.facts.alloc_mean_bytes.expect("allocations are sampled");
    assert!(mean_bytes >= 8 * MIB, "one in {mean_bytes} bytes");
    let weight: u64 = recording.samples.iter().map(|sample| sample.weight).sum();
    // 50 to 100 samples of 16 MiB: four standard deviations are less than half.
    let share = weight as f64 / (written_count * MIB) as f64;
    assert!((0.5..1.5).contains(&share), "{share} of the true sum");
}

#[inline(never)]
fn observe_in_a_known_function(kind: Kind) {
    record(&observation(kind, 5, 0));
    std::hint::black_box(());
}

#[test]
fn a_new_thread_can_record_samples() {
    let _turn = turn();
    let profiler = start(no_cpu());
    let newborn = thread::Builder::new().name("newborn".to_owned());
    let newborn = newborn.spawn(|| {
        let _activity = tag::enter(Activity::Get);
        let _stage = tag::stage(Stage::Table);
        observe_in_a_known_function(Kind::Wait(WaitKind::Io));
    });
    newborn.expect("a thread").join().expect("it lives");
    let recording = profiler.stop();
    let [sample] = recording.samples[..] else {
        panic!("{:?}", recording.samples);
    };
    assert_eq!((sample.kind, sample.weight), (Kind::Wait(WaitKind::Io), 5));
    let tag = Tag { activity: Activity::Get, stage: Stage::Table };
    assert_eq!(sample.tag, tag);
    let stack = Names::of_this_binary().of(&recording, &sample);
    assert!(stack[0].contains("observe_in_a_known_function"), "{stack:?}");
    assert!(stack.iter().any(|name| name.contains("thread_start")), "{stack:?}");
}

#[test]
fn live_allocations_are_those_that_no_thread_freed() {
    let _turn = turn();
    let profiler = start(no_cpu());
    for address in [0x1000, 0x2000, 0x3000] {
        record(&observation(Kind::Alloc, 7, address));
    }
    thread::spawn(|| {
        record_free(0x2000);
        // The address is reused.
        record_free(0x3000);
        record(&observation(Kind::Alloc, 8, 0x3000));
        // Not sampled.
        record_free(0x4000);
    })
    .join()
    .expect("it frees");
    let recording = profiler.stop();
    let live: Vec<_> =
        recording.samples.iter().map(|sample| (sample.weight, sample.is_live)).collect();
    assert_eq!(live, [(7, true), (7, false), (7, false), (8, true)]);
}

#[test]
fn foreign_signals_are_ignored() {
    let _turn = turn();
    // Installs the handler; late signals of this session may arrive, too.
    start(only_cpu(Engine::Timer, 1000)).stop();
    for _ in 0..100 {
        kill_process(getpid(), Signal::PROF).expect("our own process");
    }
    let profiler = start(no_cpu());
    for _ in 0..100 {
        kill_process(getpid(), Signal::PROF).expect("our own process");
    }
    assert_eq!(profiler.stop().samples, []);
}

#[test]
fn waits_for_processors_come_from_scheduler_statistics() {
    let _turn = turn();
    let profiler = start(Options { wait_mean_ns: Some([1_000_000; 5]), ..no_cpu() });
    // More threads than processors, so that some must wait.
    let burners: Vec<_> = (0..2 * kvant_env::host::cpu_count() + 2)
        .map(|_| thread::spawn(|| burn(100_000_000)))
        .collect();
    burners.into_iter().for_each(|burner| burner.join().expect("it burns"));
    let recording = profiler.stop();
    let scheduler = Kind::Wait(WaitKind::Scheduler);
    let is_kept = fs::read_to_string("/proc/self/schedstat").is_ok();
    let samples: Vec<_> =
        recording.samples.iter().filter(|sample| sample.kind == scheduler).collect();
    assert_eq!(is_kept, !samples.is_empty());
    for sample in samples {
        assert_eq!(recording.names[sample.name as usize], "processor");
        assert!(sample.weight > 0 && sample.stack == 0, "{sample:?}");
    }
}

#[test]
fn events_become_spans() {
    let _turn = turn();
    let env = Env::posix();
    let events = Events::new(100);
    let now_ns = || env.clock.monotonic_ns();
    let number = |number| vec![("number", Field::Number(number))];
    let begun_before = events.begin(EventKind::Compaction, now_ns(), number(1));
    let ended_before = events.begin(EventKind::Flush, now_ns(), number(2));
    events.end(EventKind::Flush, ended_before, now_ns(), now_ns(), number(2));
    let profiler =
        Profiler::start(no_cpu(), &env, Some(events.clone())).expect("nothing to refuse");
    events.end(EventKind::Compaction, begun_before, 0, now_ns(), Vec::new());
    events.begin(EventKind::Stall, now_ns(), number(3));
    let recording = profiler.stop();
    let mut spans: Vec<_> = recording
        .spans
        .iter()
        .map(|span| (span.kind.as_str(), span.end_ns.is_some(), span.fields.clone()))
        .collect();
    spans.sort();
    let number = |number: &str| vec![("number".to_owned(), number.to_owned())];
    assert_eq!(spans, [("compaction", true, number("1")), ("stall", false, number("3"))]);
}

/// Runs code without frame pointers that uses their register for other values, like a C library.
#[expect(unsafe_code, reason = "only assembly controls the use of the frame pointer's register")]
#[inline(never)]
fn burn_without_frame_pointer(rounds: u64) {
    // SAFETY: the register is restored, and the loop changes nothing else.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "push rbp",
            "mov rbp, 12345",
            "2:",
            "imul rbp, rbp, 7",
            "dec {rounds}",
            "jnz 2b",
            "pop rbp",
            rounds = inout(reg) rounds => _,
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..rounds).for_each(|round| drop(std::hint::black_box(round)));
}

#[inline(never)]
fn call_with_an_anchor() {
    anchored(|| burn_without_frame_pointer(2_000_000));
    std::hint::black_box(());
}

#[test]
fn a_stack_continues_at_the_anchor_where_frame_pointers_end() {
    let _turn = turn();
    let profiler = start(only_cpu(Engine::Timer, 1000));
    let (send, receive) = channel();
    let caller = thread::Builder::new().name("caller".to_owned());
    let caller = caller.spawn(move || {
        thread::sleep(FOUND_WITHIN);
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() - start_ns < 300_000_000 {
            call_with_an_anchor();
        }
        send.send(()).expect("the test waits");
    });
    receive.recv().expect("the caller calls");
    caller.expect("a thread").join().expect("it is over");
    let recording = profiler.stop();
    let mut names = Names::of_this_binary();
    let (mut total, mut deep) = (0, 0);
    for sample in cpu_samples(&recording) {
        let stack = names.of(&recording, sample);
        if stack.iter().any(|name| name.contains("burn_without_frame_pointer")) {
            total += sample.weight;
            let is_deep = stack.iter().any(|name| name.contains("call_with_an_anchor"))
                && stack.iter().any(|name| name.contains("thread_start"));
            deep += if is_deep { sample.weight } else { 0 };
        }
    }
    assert!(total >= 100_000_000, "only {total} ns were sampled");
    let share = deep as f64 / total as f64;
    assert!(share >= 0.95, "{share} of the time reaches the thread's entry");
}
