//! A generator that is paused, and a neighbour that takes the cores: attempts that are hit must not
//! be in any figure.

use super::setting::{Setting, json};
use crate::process::{self, about};
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const RUN_WAIT_MAX: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// From the first interval of a load into the middle of its measured time.
const INTO_PHASE: Duration = Duration::from_millis(700);
const PAUSE: Duration = Duration::from_millis(300);
/// Pauses, each at another time within the generator's own period.
const PAUSES: u32 = 5;

/// Both disturbances, of a held rate and of a closed loop.
pub(super) fn check(setting: &Setting) -> Result<bool, String> {
    let mut passed = true;
    for phase in ["rate = 200", "closed = true"] {
        for number in 0..PAUSES {
            let name = format!("paused-{}-{number}", phase.split(' ').next().unwrap_or_default());
            let moment = INTO_PHASE + Duration::from_millis(20) * number;
            passed &= disturbed(setting, &name, phase, |run| {
                thread::sleep(moment);
                let pid = run.id().to_string();
                process::run(Command::new("kill").args(["-STOP", &pid]))?;
                thread::sleep(PAUSE);
                process::run(Command::new("kill").args(["-CONT", &pid]))
            })?;
        }
    }
    passed &= disturbed(setting, "neighbour", "rate = 200", |_| {
        let loops = Loops::start()?;
        thread::sleep(Duration::from_secs(2));
        loops.end()
    })?;
    Ok(passed)
}

/// Runs a plan, disturbs its first attempt, and checks journal and report.
fn disturbed(
    setting: &Setting,
    name: &str,
    phase: &str,
    disturb: impl FnOnce(&Child) -> Result<(), String>,
) -> Result<bool, String> {
    let plan = format!(
        "title = \"{name}\"\nrepeats = 1\nconnections = 8\n{}\
         [workload.all]\nmethod = \"GET\"\npath = \"/\"\n\
         [phase]\nload = {{ {phase}, duration = \"2s\", warmup = \"200ms\" }}\n",
        setting.subject("server", ("constant", 500), "all", false)
    );
    let mut run = setting.lab_run(name, &plan)?.spawn().map_err(about("kvant lab"))?;
    let disturbed = disturb_when_loaded(setting, name, &mut run, disturb);
    run.wait().map_err(about("kvant lab"))?;
    disturbed?;

    let dir = setting.run_dir(name);
    let journal = process::read(&dir.join("journal.jsonl"))?;
    let first: Value = serde_json::from_str(journal.lines().next().unwrap_or_default())
        .map_err(about("journal"))?;
    let report = json(&dir.join("report.json"))?;
    let figures = report["figures"].as_array().into_iter().flatten();
    let mut counted = figures.flat_map(|figures| figures["attempts"].as_array()).flatten();
    let is_marked = first["verdict"]["verdict"] == "disturbed";
    let is_counted = counted.any(|number| *number == first["number"]);
    let is_repeated = journal.lines().count() > 1;
    let passed = is_marked && !is_counted && is_repeated;
    println!(
        "{name}: {} ({}), {} attempts{}",
        first["verdict"]["verdict"],
        first["verdict"]["why"],
        journal.lines().count(),
        if passed { "" } else { "  FAILED" }
    );
    Ok(passed)
}

fn disturb_when_loaded(
    setting: &Setting,
    name: &str,
    run: &mut Child,
    disturb: impl FnOnce(&Child) -> Result<(), String>,
) -> Result<(), String> {
    let log = setting.run_dir(name).join("attempts/0001/load.hlog");
    let start = Instant::now();
    while fs::metadata(&log).is_err() {
        if start.elapsed() > RUN_WAIT_MAX || !matches!(run.try_wait(), Ok(None)) {
            return Err(format!("{name}: no load began"));
        }
        thread::sleep(POLL_INTERVAL);
    }
    disturb(run)
}

/// Busy processes, two for each CPU. Dropping them kills them.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> Result<Loops, String> {
        let cpus = thread::available_parallelism().map_err(about("CPUs"))?;
        let mut loops = Loops(Vec::new());
        for _ in 0..cpus.get() * 2 {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            loops.0.push(command.spawn().map_err(about("sh"))?);
        }
        Ok(loops)
    }

    fn end(mut self) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|child| {
            child.kill().and_then(|()| child.wait()).map(drop).map_err(about("sh"))
        })
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both succeed on a reaped process.
            if let Err(error) = child.kill().and_then(|()| child.wait()) {
                println!("process {} may still run: {error}", child.id());
            }
        }
    }
}
