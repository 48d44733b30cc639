//! The workloads: what each does to an engine, and the data it starts from.
//!
//! Threads: a workload runs on the caller's thread, and on one more where it says so.

use crate::Failure;
use crate::data::{self, Key, Permutation, Values, Zipfian};
use crate::engine::Engine;
use crate::timer::Timer;
use hdrhistogram::Histogram;
use kvant_env::rng::Rng;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Records of one shape. `count_share` records are for each record of the small ones.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    value_bytes: RangeInclusive<u64>,
    count_share: u64,
}

const SMALL: Shape = Shape { name: "small", value_bytes: 100..=100, count_share: 1 };
const MIXED: Shape = Shape { name: "1-10000", value_bytes: 1..=10_000, count_share: 20 };
const KIB: Shape = Shape { name: "1k", value_bytes: 1024..=1024, count_share: 5 };
const KIB_100: Shape = Shape { name: "100k", value_bytes: 102_400..=102_400, count_share: 250 };

impl Shape {
    /// Records of this shape when there are `records` small ones.
    pub(crate) fn count(&self, records: u64) -> u64 {
        (records / self.count_share).max(10)
    }

    pub(crate) fn mean_bytes(&self) -> u64 {
        data::KEY_BYTES as u64 + (self.value_bytes.start() + self.value_bytes.end()) / 2
    }
}

/// What the data directory holds before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Empty,
    /// All records, settled; the workload does not change them.
    Read,
    /// All records, settled; the workload changes a copy.
    Write,
    /// What a process left that wrote all records and was killed: the workload opens it.
    Killed,
}

type Run = fn(&Bench<'_>, u64) -> Result<Done, Failure>;

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: &'static Shape,
    pub(crate) start: Start,
    /// Memory is a quarter of the data instead of what is set.
    pub(crate) is_short_of_memory: bool,
    /// Operations for each record.
    ops_per_record: f64,
    /// What is done first and not measured, with as many operations.
    before: Option<Run>,
    run: Run,
}

/// A workload on small records; the others start from this one.
const fn small(
    name: &'static str,
    start: Start,
    ops_per_record: f64,
    run: Run,
    about: &'static str,
) -> Workload {
    let (is_short_of_memory, before) = (false, None);
    Workload { name, about, shape: &SMALL, start, is_short_of_memory, ops_per_record, before, run }
}

const fn shaped(shape: &'static Shape, workload: Workload) -> Workload {
    Workload { shape, ..workload }
}

pub(crate) const ALL: &[Workload] = &[
    small("fillseq", Start::Empty, 1.0, fill_ascending, "puts in key order"),
    small("fillrandom", Start::Empty, 1.0, fill_shuffled, "puts, each key once, shuffled"),
    small("fillbatch", Start::Empty, 1.0, fill_in_batches, "the same, 100 puts a batch"),
    small("overwrite", Start::Write, 1.0, overwrite, "puts of random existing keys"),
    small("readrandom", Start::Read, 1.0, read_random, "gets of random existing keys"),
    small(
        "readmissing",
        Start::Read,
        1.0,
        read_missing,
        "gets of absent keys between existing ones",
    ),
    small("readzipf", Start::Read, 1.0, read_zipfian, "gets by a Zipfian distribution (0.99)"),
    Workload {
        is_short_of_memory: true,
        ..small(
            "read4x",
            Start::Read,
            0.5,
            read_random,
            "readrandom with memory for a quarter of the data, as far as the page cache allows",
        )
    },
    small("scan100", Start::Read, 0.02, scan_short, "scans of 100 records from a random key"),
    small(
        "scanall",
        Start::Read,
        1.0,
        scan_all,
        "one scan of everything; an operation is a record",
    ),
    small(
        "readwhilewriting",
        Start::Write,
        0.5,
        read_while_writing,
        "readrandom beside a thread that overwrites 50,000/s",
    ),
    small("mixed", Start::Write, 1.0, mixed, "two threads, each half gets, half overwrites"),
    small("deletehalf", Start::Write, 0.5, delete_half, "deletes of every other key, shuffled"),
    Workload {
        before: Some(delete_half),
        ..small(
            "scandeleted",
            Start::Write,
            0.5,
            scan_half,
            "one scan right after deletehalf; an operation is a record",
        )
    },
    shaped(
        &MIXED,
        small("fill-1-10000", Start::Empty, 1.0, fill_shuffled, "fillrandom, large values"),
    ),
    shaped(
        &MIXED,
        small("read-1-10000", Start::Read, 2.0, read_random, "readrandom, large values"),
    ),
    shaped(&KIB, small("fill-1k", Start::Empty, 1.0, fill_shuffled, "fillrandom, values of 1 KiB")),
    shaped(&KIB, small("read-1k", Start::Read, 1.0, read_random, "readrandom, values of 1 KiB")),
    shaped(&KIB_100, small("fill-100k", Start::Empty, 1.0, fill_shuffled, "fillrandom, 100 KiB")),
    shaped(&KIB_100, small("read-100k", Start::Read, 4.0, read_random, "readrandom, 100 KiB")),
    small("recovery", Start::Killed, 0.0, recover, "open after kill -9 during fillrandom"),
];

pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().find(|workload| workload.name == name)
}

impl Workload {
    /// Keys and values of the data when there are `records` small records.
    pub(crate) fn data_bytes(&self, records: u64) -> u64 {
        self.shape.count(records) * self.shape.mean_bytes()
    }

    /// What precedes the measurement: other reads of the same kind fill the caches.
    pub(crate) fn prepare(&self, bench: &Bench<'_>) -> Result<(), Failure> {
        let ops = self.ops(bench);
        match (self.before, self.start) {
            (Some(before), _) => before(&bench.unmeasured(), ops).map(drop),
            (None, Start::Read) => (self.run)(&bench.unmeasured(), ops / 4 + 1).map(drop),
            _ => Ok(()),
        }
    }

    pub(crate) fn run(&self, bench: &Bench<'_>) -> Result<Done, Failure> {
        (self.run)(bench, self.ops(bench))
    }

    fn ops(&self, bench: &Bench<'_>) -> u64 {
        ((bench.count as f64 * self.ops_per_record) as u64).clamp(1, bench.ops_max)
    }
}

/// An engine and the records that it holds or will hold.
pub(crate) struct Bench<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) values: &'a Values,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    /// Most operations of a run.
    pub(crate) ops_max: u64,
    /// Operations a second of each workload; as many as the engine takes if it is not set.
    pub(crate) rate: Option<u64>,
    /// How long the engine took to open.
    pub(crate) open_ns: u64,
}

/// What a workload did.
pub(crate) struct Done {
    pub(crate) op_count: u64,
    /// Key and value bytes written, keys of deletes included.
    pub(crate) user_bytes: u64,
    /// Times of single operations, by kind.
    pub(crate) latencies: Vec<(&'static str, Histogram<u64>)>,
}

pub(crate) fn values(shape: &Shape, seed: u64) -> Values {
    Values::new(seed, shape.value_bytes.clone())
}

/// Passes on a value, as a user would.
fn touch(value: &[u8]) {
    std::hint::black_box(value.first());
    std::hint::black_box(value.last());
}

impl<'a> Bench<'a> {
    /// The same data, other random operations, at full speed.
    fn unmeasured(&self) -> Bench<'a> {
        Bench { seed: self.seed ^ 0x5eed, rate: None, ..*self }
    }

    fn timer(&self) -> Timer {
        self.timer_of(1)
    }

    /// A timer of every `stride`th operation.
    fn timer_of(&self, stride: u64) -> Timer {
        let interval = self.rate.map(|rate| Duration::from_nanos(1_000_000_000 * stride / rate));
        Timer::start(interval)
    }

    fn permutation(&self) -> Permutation {
        Permutation::new(self.seed, self.count)
    }

    fn put(&self, number: u64, version: u64, timer: &mut Timer) -> Result<(), Failure> {
        let (key, value) = (data::key(number), self.values.get(number, version));
        self.engine.put(&key, value)?;
        timer.user_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn get(&self, number: u64) -> Result<(), Failure> {
        match self.engine.get(&data::key(number), &mut touch)? {
            true => Ok(()),
            false => Err(format!("record {number} of {} is missing", self.count).into()),
        }
    }

    fn gets(&self, ops: u64, mut next: impl FnMut() -> u64) -> Result<Done, Failure> {
        let mut timer = self.timer();
        for _ in 0..ops {
            self.get(next())?;
            timer.lap();
        }
        Ok(timer.done("get"))
    }
}

fn fill_ascending(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    fill(bench, 0..ops)
}

pub(crate) fn fill_shuffled(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let order = bench.permutation();
    fill(bench, (0..ops).map(|index| order.get(index)))
}

fn fill(bench: &Bench<'_>, numbers: impl Iterator<Item = u64>) -> Result<Done, Failure> {
    let mut timer = bench.timer();
    for number in numbers {
        bench.put(number, 0, &mut timer)?;
        timer.lap();
    }
    Ok(timer.done("put"))
}

/// Records of a batch: 100, and at most a mebibyte of large ones.
fn batch_records(bench: &Bench<'_>) -> u64 {
    (1 << 20 >> (bench.values.get(0, 0).len().max(1).ilog2())).clamp(1, 100)
}

pub(crate) fn fill_in_batches(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let order = bench.permutation();
    let batch_records = batch_records(bench);
    let mut batch: Vec<(Key, &[u8])> = Vec::new();
    let mut timer = bench.timer_of(batch_records);
    for index in 0..ops {
        let number = order.get(index);
        let value = bench.values.get(number, 0);
        batch.push((data::key(number), value));
        timer.user_bytes += (data::KEY_BYTES + value.len()) as u64;
        if batch.len() as u64 == batch_records || index + 1 == ops {
            bench.engine.write_batch(&batch)?;
            batch.clear();
            timer.lap();
        }
    }
    Ok(Done { op_count: ops, ..timer.done("batch") })
}

fn overwrite(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let mut rng = Rng::new(bench.seed);
    let mut timer = bench.timer();
    for version in 1..=ops {
        bench.put(rng.below(bench.count), version, &mut timer)?;
        timer.lap();
    }
    Ok(timer.done("put"))
}

fn read_random(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let mut rng = Rng::new(bench.seed);
    bench.gets(ops, || rng.below(bench.count))
}

fn read_zipfian(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let (mut rng, zipfian) = (Rng::new(bench.seed), Zipfian::new(1, bench.count));
    bench.gets(ops, || zipfian.next(&mut rng))
}

fn read_missing(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let mut rng = Rng::new(bench.seed);
    let mut timer = bench.timer();
    for _ in 0..ops {
        let number = rng.below(bench.count);
        if bench.engine.get(&data::absent_key(number), &mut touch)? {
            return Err(format!("a key after record {number} exists").into());
        }
        timer.lap();
    }
    Ok(timer.done("get"))
}

const SCAN_RECORDS: u64 = 100;

fn scan_short(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let mut rng = Rng::new(bench.seed);
    let mut timer = bench.timer();
    for _ in 0..ops {
        let number = rng.below(bench.count);
        let expected = SCAN_RECORDS.min(bench.count - number);
        expect_scan(bench, &data::key(number), SCAN_RECORDS, expected)?;
        timer.lap();
    }
    Ok(timer.done("scan"))
}

fn scan_all(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    expect_scan(bench, b"0", ops, ops)?;
    Ok(Done { op_count: ops, user_bytes: 0, latencies: Vec::new() })
}

fn expect_scan(bench: &Bench<'_>, start: &[u8], limit: u64, expected: u64) -> Result<(), Failure> {
    let count = bench.engine.scan(start, limit, &mut |key, value| {
        touch(key);
        touch(value);
    })?;
    if count != expected {
        return Err(format!("a scan found {count} records instead of {expected}").into());
    }
    Ok(())
}

const WRITES_PER_SECOND: u64 = 50_000;
const WRITER_TICK: Duration = Duration::from_millis(1);

fn read_while_writing(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| overwrite_at_a_rate(bench, &is_over));
        let read = read_random(bench, ops);
        is_over.store(true, Ordering::Relaxed);
        let written = writer.join().map_err(|_| "the writer panicked")??;
        let Done { op_count, mut latencies, .. } = read?;
        latencies.extend(written.latencies);
        Ok(Done { op_count, user_bytes: written.user_bytes, latencies })
    })
}

fn overwrite_at_a_rate(bench: &Bench<'_>, is_over: &AtomicBool) -> Result<Done, Failure> {
    let mut rng = Rng::new(!bench.seed);
    let start = Instant::now();
    let mut timer = Timer::start(None);
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        let due = start.elapsed().as_millis() as u64 * WRITES_PER_SECOND / 1000;
        timer.last = Instant::now();
        while count < due && !is_over.load(Ordering::Relaxed) {
            count += 1;
            bench.put(rng.below(bench.count), count, &mut timer)?;
            timer.lap();
        }
        thread::sleep(WRITER_TICK);
    }
    Ok(timer.done("put"))
}

fn mixed(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    thread::scope(|scope| {
        let other = scope.spawn(|| mixed_thread(bench, !bench.seed, ops / 2));
        let mut done = mixed_thread(bench, bench.seed, ops - ops / 2)?;
        let other = other.join().map_err(|_| "the other thread panicked")??;
        done.op_count += other.op_count;
        done.user_bytes += other.user_bytes;
        for ((_, sum), (_, part)) in done.latencies.iter_mut().zip(&other.latencies) {
            sum.add(part)?;
        }
        Ok(done)
    })
}

fn mixed_thread(bench: &Bench<'_>, seed: u64, ops: u64) -> Result<Done, Failure> {
    let mut rng = Rng::new(seed);
    let (mut gets, mut puts) = (bench.timer_of(2), bench.timer_of(2));
    for version in 1..=ops {
        let number = rng.below(bench.count);
        let (timer, other) = if rng.below(2) == 0 {
            bench.get(number)?;
            (&mut gets, &mut puts)
        } else {
            bench.put(number, version, &mut puts)?;
            (&mut puts, &mut gets)
        };
        timer.lap();
        other.last = timer.last;
    }
    let mut done = puts.done("put");
    done.latencies.insert(0, ("get", gets.latency));
    Ok(Done { op_count: ops, ..done })
}

fn delete_half(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let order = Permutation::new(bench.seed, ops);
    let mut timer = bench.timer();
    for index in 0..ops {
        bench.engine.delete(&data::key(order.get(index) * 2))?;
        timer.user_bytes += data::KEY_BYTES as u64;
        timer.lap();
    }
    Ok(timer.done("delete"))
}

/// After [`delete_half`].
fn scan_half(bench: &Bench<'_>, ops: u64) -> Result<Done, Failure> {
    let left = bench.count - ops;
    expect_scan(bench, b"0", u64::MAX, left)?;
    Ok(Done { op_count: left, user_bytes: 0, latencies: Vec::new() })
}

/// The engine was opened before this.
fn recover(bench: &Bench<'_>, _ops: u64) -> Result<Done, Failure> {
    let mut timer = Timer::start(None);
    timer.latency.saturating_record(bench.open_ns);
    Ok(timer.done("open"))
}
