//! A server of known behaviour, for checks of the lab.
//!
//! `queue_server PORT MODEL MEAN_US SEED [LOG [awake]]`
//!
//! One queue serves all requests in order of arrival. `MODEL` is the distribution of its service
//! times with the mean `MEAN_US`: `constant` or `exponential`. A constant 200 us is a server that
//! can do exactly 5,000 requests per second. One line a request is appended to `LOG`: arrival
//! (monotonic), service time and the time at which the response was written, in nanoseconds. A
//! server that continues a log draws other service times than the one before it.
//!
//! With `awake` a thread of the least priority keeps each CPU busy: to wake up a thread on a halted
//! CPU of a virtual machine takes 50 us or more, on a busy one 20 us.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

#[path = "../../tests/queue/mod.rs"]
mod queue;

use queue::{Queue, Service};
use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

/// Between two writes of the log.
const LOG_PERIOD: Duration = Duration::from_millis(50);

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || io::Error::other("usage: queue_server PORT MODEL MEAN_US SEED [LOG]");
    let [port, model, mean_us, seed, more @ ..] = arguments.as_slice() else {
        return Err(usage());
    };
    let (log, is_awake) = match more {
        [] => (None, false),
        [log] => (Some(log), false),
        [log, awake] if awake == "awake" => (Some(log), true),
        _ => return Err(usage()),
    };
    let service = match model.as_str() {
        "constant" => Service::Constant,
        "exponential" => Service::Exponential,
        _ => return Err(usage()),
    };
    let number = |text: &String| text.parse::<u64>().map_err(io::Error::other);
    let port = u16::try_from(number(port)?).map_err(io::Error::other)?;
    let mean = Duration::from_micros(number(mean_us)?);
    let append = |path| File::options().append(true).create(true).open(path);
    let mut log = log.map(append).transpose()?;
    let logged_bytes = log.as_ref().map_or(Ok(0), |log| log.metadata().map(|file| file.len()))?;
    let seed = number(seed)? + logged_bytes;
    let queue = Queue::start(port, service, mean, seed)?;
    println!("{} {model} {mean:?}, seed {seed}", queue.address);
    if is_awake {
        for _ in 0..std::thread::available_parallelism()?.get() {
            std::thread::spawn(keep_busy);
        }
    }
    loop {
        std::thread::sleep(LOG_PERIOD);
        let lines: String = queue
            .take_served()
            .iter()
            .map(|one| format!("{},{},{}\n", one.arrival_ns, one.service_ns, one.written_ns))
            .collect();
        if let Some(log) = &mut log {
            log.write_all(lines.as_bytes())?;
        }
    }
}

/// Keeps a CPU busy while no other thread is ready to run on it.
fn keep_busy() -> io::Result<()> {
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19)?;
    loop {
        std::hint::spin_loop();
    }
}
