//! A server that never ends its responses to some requests does not keep a run from ending.

use crate::conduct::{TempDir, calm, plan, run};
use crate::server::Server;
use kvant_lab::conduct::{Progress, Stop};
use kvant_lab::record::RunState;
use std::fs;
use std::time::{Duration, Instant};

/// The load is short; a recording that hangs is waited for until the stop.
const PLAN: &str = r#"
repeats = 1
connections = 1
[subject.small]
SERVER
[workload.status]
method = "GET"
path = "/"
[phase]
held = { rate = 50, duration = "TIME", warmup = "50ms", profile = true }
"#;

const WAIT_MAX: Duration = Duration::from_secs(60);
/// After a request to stop.
const END_MAX: Duration = Duration::from_secs(4);

/// Stops a run with phases of `time` when the recording has begun and `pause` has passed.
fn stop_while_recording(time: &str, pause: Duration) {
    let (dir, server) = (TempDir::new(), Server::hanging_at("/v0/profile"));
    let (plan, machine) = (plan(&PLAN.replace("TIME", time), &server), calm(&dir));
    let stop = Stop::default();
    let (stopper, log) = (stop.clone(), dir.0.join("run/attempts/0001/load.hlog"));
    let stopping = std::thread::spawn(move || {
        let start = Instant::now();
        while fs::metadata(&log).map_or(0, |log| log.len()) == 0 && start.elapsed() < WAIT_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(pause);
        stopper.request();
        Instant::now()
    });
    let ended = run(&plan, &dir, &machine, &stop, false, &mut Progress::none()).unwrap();
    let stopped = stopping.join().unwrap();
    assert!(matches!(ended.run.state, RunState::Interrupted { .. }), "{:?}", ended.run.state);
    assert!(server.hanging_count() > 0, "nothing was recorded");
    assert!(stopped.elapsed() < END_MAX, "{:?}", stopped.elapsed());
}

#[test]
fn a_hanging_recording_does_not_delay_a_stop() {
    // While the load goes on, and while only the recording is waited for.
    stop_while_recording("20s", Duration::from_millis(300));
    stop_while_recording("300ms", Duration::from_secs(1));
}
