//! Recovery of the largest possible log: the process is killed when every memtable is full and none
//! was flushed.
//!
//! A server that flushes never reaches that state. A separate process therefore fills the database
//! with an engine whose background tasks never run, until writes stall. It is killed, and the real
//! server recovers.

use super::figures::{mib, plain, targeted};
use super::http::Connection;
use super::records::{self, Records};
use super::scratch::Scratch;
use super::server::ServerProcess;
use super::{Failure, Settings};
use kvant_engine::{Db, Options, Resources, SyncLevel, WriteBatch};
use kvant_env::{Env, Signal, Spawner, Task, TaskHandle};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The hidden command that fills; see [`fill`].
pub(crate) const FILL_COMMAND: &str = "recovery-fill";
/// With this budget, or more, memtables have their maximum default size.
const MEMORY_BYTES: u64 = 512 << 20;
/// Smaller values mean more records per memtable.
const VALUE_BYTES: [u64; 2] = [12, 1000];
const PUTS_PER_BATCH: u64 = 20;
/// Number of sampled records, and of newest ones, that are read back.
const SAMPLE: u64 = 2000;

pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let memory_bytes = settings.scaled(MEMORY_BYTES).max(64 << 20);
    for value_bytes in VALUE_BYTES {
        let scratch = Scratch::new(&settings.data_dir)?;
        let data = scratch.path().join("data");
        let record_count = fill_and_kill(&data, memory_bytes, value_bytes)?;
        let server = ServerProcess::start(
            settings,
            scratch.path(),
            &data,
            &["--memory", &memory_bytes.to_string()],
        )?;
        let stats = server.engine_stats()?;
        let counter = |name: &str| {
            stats["recovery"][name]
                .as_u64()
                .ok_or_else(|| format!("no recovery.{name} in the server's statistics"))
        };
        let named = |name: &str| format!("{name}_values_of_{value_bytes}");
        targeted(&named("recovery"), counter("us")? as f64 / 1e6, "s", "< 1");
        plain(&named("start_to_ready"), server.ready_after.as_secs_f64(), "s");
        plain(&named("wal"), mib(counter("wal_bytes")?), "MiB");
        plain(&named("wal_records"), counter("wal_record_count")? as f64, "records");
        plain(&named("puts"), record_count as f64, "records");
        check(&server, value_bytes, record_count)?;
    }
    Ok(())
}

/// Kills a process on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        for result in [self.0.kill(), self.0.wait().map(drop)] {
            if let Err(error) = result {
                eprintln!("the filling process could not be killed: {error}");
            }
        }
    }
}

/// Has another process fill `data`, and kills it. Returns the number of acknowledged records.
fn fill_and_kill(data: &Path, memory_bytes: u64, value_bytes: u64) -> Result<u64, Failure> {
    let child = Command::new(std::env::current_exe()?)
        .arg(FILL_COMMAND)
        .arg(data)
        .args([memory_bytes.to_string(), value_bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut killed = Killed(child);
    let mut line = String::new();
    BufReader::new(killed.0.stdout.take().expect("it was piped")).read_line(&mut line)?;
    line.trim().parse().map_err(|_| format!("the filling process failed: {line:?}").into())
}

/// Fills a database until writes stall, prints the number of acknowledged records, and waits to be
/// killed.
pub(crate) fn fill(dir: &str, memory_bytes: &str, value_bytes: &str) -> Result<(), Failure> {
    let mut options = Options::for_memory(memory_bytes.parse()?);
    options.sync = SyncLevel::Os;
    let resources = Resources::new(&options);
    let env = Env { spawner: Arc::new(IdleSpawner), ..Env::posix() };
    let db = Db::open(env, Path::new(dir), options, resources)?;
    let value_bytes = value_bytes.parse()?;
    let records = Records::new(0, value_bytes, value_bytes);
    let mut count = 0;
    while db.stall().is_none() {
        let mut batch = WriteBatch::new();
        for number in count..count + PUTS_PER_BATCH {
            batch.put(&records::key(scattered(number)), records.value(number, 0), None);
        }
        db.write(batch)?;
        count += PUTS_PER_BATCH;
    }
    println!("{count}");
    // Until standard input ends, at the latest with the parent.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    std::process::exit(1);
}

/// A distinct number for every `number` below 10^9, in pseudorandom order: multiples modulo a
/// prime.
fn scattered(number: u64) -> u64 {
    number * 618_033_989 % 1_000_000_007
}

/// Starts tasks that never run.
struct IdleSpawner;

struct IdleTask;

impl Spawner for IdleSpawner {
    fn spawn(&self, _task: Arc<dyn Task>) -> Arc<dyn TaskHandle> {
        Arc::new(IdleTask)
    }

    fn wait_until(
        &self,
        _signal: &Signal,
        _deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        assert!(ready(), "the engine waits for a task, and none ever runs");
        true
    }

    fn give_way(&self) {}
}

impl TaskHandle for IdleTask {
    fn wake(&self) {}

    fn join(&self) {}
}

/// Checks acknowledged records: a sample, and the newest.
fn check(server: &ServerProcess, value_bytes: u64, record_count: u64) -> Result<(), Failure> {
    let records = Records::new(0, value_bytes, value_bytes);
    let mut connection = Connection::open(server.address)?;
    let mut body = Vec::new();
    let newest = record_count.saturating_sub(SAMPLE)..record_count;
    for number in (0..record_count).step_by((record_count / SAMPLE + 1) as usize).chain(newest) {
        let key = records::key(scattered(number));
        let target =
            format!("/v0/entity?id={}", std::str::from_utf8(&key).expect("digits and letters"));
        let status = connection.ask("GET", &target, b"", &mut body)?;
        if status != 200 || body != records.value(number, 0) {
            return Err(format!(
                "record {number} of {record_count}: status {status}, {} bytes",
                body.len()
            )
            .into());
        }
    }
    Ok(())
}
