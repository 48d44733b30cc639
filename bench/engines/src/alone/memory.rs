//! Peak RSS of the real server with many times more data than memory, during loading, random reads
//! and a full scan.
//!
//! Threads: one per connection.

use super::figures::{mib, plain, targeted};
use super::http::Connection;
use super::records::{self, Records};
use super::scratch::Scratch;
use super::server::ServerProcess;
use super::{Failure, Settings};
use kvant_env::rng::Rng;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DATA_BYTES: u64 = 5 << 29; // 2.5 GiB
const VALUE_BYTES_MAX: u64 = 10_000;
const READS: u64 = 500_000;
const CONNECTIONS: u64 = 64;
const TARGET: &str = "< 192";
/// The delay before a refused client retries.
const RETRY_AFTER: Duration = Duration::from_millis(100);
const RETRIES_MAX: u32 = 1200;

pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let scratch = Scratch::new(&settings.data_dir)?;
    let server = ServerProcess::start(
        settings,
        scratch.path(),
        &scratch.path().join("data"),
        &["--memory", "128MiB"],
    )?;
    let records = Records::new(settings.seed, 1, VALUE_BYTES_MAX);
    let record_count = settings.scaled(DATA_BYTES * 2 / (VALUE_BYTES_MAX + 1));
    plain("records", record_count as f64, "records");

    phase(&server, "load", || load(server.address, &records, record_count))?;
    phase(&server, "random_reads", || read(server.address, &records, record_count, settings))?;
    phase(&server, "full_range", || stream(server.address, &records, record_count))
}

/// Runs one phase and prints its peak.
fn phase(
    server: &ServerProcess,
    name: &str,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    server.reset_peak_rss()?;
    let start = Instant::now();
    work()?;
    targeted(&format!("rss_peak_{name}"), mib(server.peak_rss_bytes()?), "MiB", TARGET);
    plain(&format!("duration_{name}"), start.elapsed().as_secs_f64(), "s");
    Ok(())
}

/// Puts all records, every 64th on each connection.
fn load(address: SocketAddr, records: &Records, record_count: u64) -> Result<(), Failure> {
    let refused_count = AtomicU64::new(0);
    let loaded_bytes = AtomicU64::new(0);
    on_connections(address, |index, connection| {
        let mut body = Vec::new();
        for number in
            records::shuffled(record_count).skip(index as usize).step_by(CONNECTIONS as usize)
        {
            let value = records.value(number, 0);
            let mut retries = 0;
            loop {
                match connection.ask("PUT", &target(number), value, &mut body)? {
                    201 => break,
                    503 if retries < RETRIES_MAX => {
                        retries += 1;
                        refused_count.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(RETRY_AFTER);
                    }
                    status => return Err(format!("PUT of record {number}: status {status}").into()),
                }
            }
            loaded_bytes.fetch_add(value.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    })?;
    plain("loaded", mib(loaded_bytes.into_inner()), "MiB");
    plain("refused", refused_count.into_inner() as f64, "answers");
    Ok(())
}

fn read(
    address: SocketAddr,
    records: &Records,
    record_count: u64,
    settings: &Settings,
) -> Result<(), Failure> {
    let reads_per_connection = settings.scaled(READS) / CONNECTIONS + 1;
    on_connections(address, |index, connection| {
        let mut rng = Rng::new(settings.seed.wrapping_add(index));
        let mut body = Vec::new();
        for _ in 0..reads_per_connection {
            let number = rng.below(record_count);
            let status = connection.ask("GET", &target(number), b"", &mut body)?;
            if status != 200 || body != records.value(number, 0) {
                return Err(
                    format!("record {number}: status {status}, {} bytes", body.len()).into()
                );
            }
        }
        Ok(())
    })
}

/// Reads everything through one connection and checks every record.
fn stream(address: SocketAddr, records: &Records, record_count: u64) -> Result<(), Failure> {
    let mut count = 0;
    Connection::open(address)?.stream("/v0/entities?start=k", |chunk| {
        let end =
            chunk.iter().position(|&byte| byte == b'\n').ok_or("a record without a line end")?;
        if records::number_of(&chunk[..end]) != Some(count)
            || &chunk[end + 1..] != records.value(count, 0)
        {
            return Err(format!("record {count} of the range is missing or wrong").into());
        }
        count += 1;
        Ok(())
    })?;
    if count == record_count {
        Ok(())
    } else {
        Err(format!("the range has {count} of {record_count} records").into())
    }
}

fn target(number: u64) -> String {
    let key = records::key(number);
    format!("/v0/entity?id={}", std::str::from_utf8(&key).expect("digits and letters"))
}

/// Runs `work` on all connections concurrently, with their indexes. Returns the first failure.
fn on_connections(
    address: SocketAddr,
    work: impl Fn(u64, &mut Connection) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|index| scope.spawn(move || work(index, &mut Connection::open(address)?)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a connection's thread does not panic"))
    })
}
