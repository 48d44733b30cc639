//! Threads that wait and sleep: the effect of signals, and the CPU time of waits compared with the
//! threads' own measurements.

mod support;

use kvant_base::lock;
use kvant_base::wait::{self, WaitKind};
use kvant_profiler::collect::clock::monotonic_ns;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use support::{MS, burn, shares, thread_cpu_ns, turn};

#[inline(never)]
fn burn_busily(ns: u64) -> u64 {
    black_box(burn(ns))
}

/// Sleeps in calls that a signal ends, and in one that is restarted.
#[inline(never)]
fn sleep_in_the_kernel(turn: u64, mut peer: &UnixStream) {
    match turn % 3 {
        0 => thread::sleep(Duration::from_millis(4)),
        1 => thread::park_timeout(Duration::from_millis(4)),
        _ => {
            peer.write_all(&[0]).expect("a peer");
            peer.read_exact(&mut [0]).expect("a response");
        }
    }
    // Without this a tail call would take its place on the stack.
    black_box(turn);
}

/// Burns and sleeps alternately; returns the CPU time of sleeping, in per cent.
fn burn_and_sleep() -> f64 {
    let (peer, mut other) = UnixStream::pair().expect("two sockets");
    // Not named like the worker.
    let responder = thread::Builder::new().name("responder".to_owned());
    let respond = move || {
        while other.read_exact(&mut [0]).is_ok() {
            thread::sleep(Duration::from_millis(4));
            other.write_all(&[0]).expect("a reader");
        }
    };
    responder.spawn(respond).expect("a thread");
    let (mut burnt_ns, mut asleep_ns) = (0, 0);
    for turn in 0..400 {
        burnt_ns += burn_busily(2 * MS);
        let before_ns = thread_cpu_ns();
        sleep_in_the_kernel(turn, &peer);
        asleep_ns += thread_cpu_ns() - before_ns;
    }
    asleep_ns as f64 / (burnt_ns + asleep_ns) as f64 * 100.0
}

/// Signals wake sleeping threads: the call in which they slept must not seem to have run.
#[test]
fn sleeping_system_calls_are_no_cpu_time() {
    let _turn = turn();
    // Measured without signals, whose cost must not count.
    let truth = burn_and_sleep();
    let [asleep, burning] = shares(["sleep_in_the_kernel", "burn_busily"], || {
        burn_and_sleep();
    });
    // Timers fire at ticks of 4 ms: of some 200 samples, chance takes 3 points now and then. A
    // sleep that counted as CPU time would take two thirds.
    assert!(
        (asleep - truth).abs() <= 6.0 && (burning - (100.0 - truth)).abs() <= 6.0,
        "{asleep} % asleep, {burning} % burning; in truth {truth} % asleep"
    );
}

#[inline(never)]
fn burn_in_a_wait() -> u64 {
    let _waiting = wait::begin(WaitKind::Idle, "test");
    black_box(burn(0))
}

#[inline(never)]
fn burn_awake() -> u64 {
    black_box(burn(0) + burn(0) + burn(0))
}

/// The CPU time of waits is measured at one wait in a few; the estimate must be right.
#[test]
fn the_cost_of_waiting_is_cpu_time() {
    let _turn = turn();
    let (sender, receiver) = std::sync::mpsc::channel();
    let [waiting, awake] = shares(["burn_in_a_wait", "burn_awake"], move || {
        let (mut waiting_ns, mut awake_ns) = (0, 0);
        // Long enough for many measurements: each stands for 16 waits, disturbances included.
        while waiting_ns + awake_ns < 8_000 * MS {
            waiting_ns += burn_in_a_wait();
            awake_ns += burn_awake();
        }
        sender
            .send(waiting_ns as f64 / (waiting_ns + awake_ns) as f64 * 100.0)
            .expect("a receiver");
    });
    let truth = receiver.recv().expect("a message");
    assert!(
        (waiting - truth).abs() <= 4.0 && (awake - (100.0 - truth)).abs() <= 4.0,
        "{waiting} % waiting, {awake} % awake; in truth {truth} % waiting"
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

/// Work that takes less than any gap between two samples, after waits that are longer than any.
#[test]
fn short_work_between_long_waits_is_sampled() {
    let _turn = turn();
    let (sender, receiver) = std::sync::mpsc::channel();
    let [after, before] = shares(["work_after_the_wait", "work_before_the_wait"], move || {
        let (mut after_ns, mut before_ns) = (0, 0);
        for _ in 0..5_000 {
            lock::park(WaitKind::Idle, "test", Some(Duration::from_millis(1)));
            after_ns += work_after_the_wait(50_000);
            before_ns += work_before_the_wait(50_000);
        }
        sender.send(after_ns as f64 / (after_ns + before_ns) as f64 * 100.0).expect("a receiver");
    });
    let truth = receiver.recv().expect("a message");
    let seen = after / (after + before) * 100.0;
    assert!(
        (seen - truth).abs() <= 8.0,
        "{after} and {before} % of all: {seen} instead of {truth} %"
    );
}

/// How often the calling thread has fallen asleep.
fn sleep_count() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.expect("a counter").trim().parse().expect("a number")
}

#[test]
fn a_thread_in_an_announced_wait_is_not_woken() {
    let _turn = turn();
    let (sender, receiver) = std::sync::mpsc::channel();
    shares([], move || {
        let start_ns = monotonic_ns();
        let before = sleep_count();
        let mut wait_count = 0;
        while monotonic_ns() - start_ns < 1_000 * MS {
            wait_count += 1;
            lock::park(WaitKind::Idle, "test", Some(Duration::from_secs(1)));
        }
        sender.send((sleep_count() - before, wait_count)).expect("a receiver");
    });
    let (sleep_count, wait_count) = receiver.recv().expect("a message");
    // Its timer fires once in a wait and then rests until the end of the wait.
    assert!(sleep_count <= 2 * wait_count, "{sleep_count} sleeps in {wait_count} waits");
}

/// Even if it announces other waits.
#[test]
fn a_thread_that_sleeps_unannounced_is_soon_woken_rarely() {
    let _turn = turn();
    let (sender, receiver) = std::sync::mpsc::channel();
    shares([], move || {
        lock::park(WaitKind::Idle, "test", Some(Duration::from_millis(1)));
        let before = sleep_count();
        thread::sleep(Duration::from_millis(1_500));
        sender.send(sleep_count() - before).expect("a receiver");
    });
    let sleep_count = receiver.recv().expect("a message");
    // At the full rate it would be woken 3,000 times.
    assert!(sleep_count <= 100, "woken {sleep_count} times");
}
