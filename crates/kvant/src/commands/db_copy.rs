//! `kvant db copy`: the records of one engine's directory, in a new directory of the other engine.
//!
//! Invariants:
//! 1. The copy is made beside its place (`TO.unfinished`) and renamed when it is whole: a directory
//!    with the final name is complete.
//! 2. Before that it is opened and read, and count, bytes and checksum of its records have to be
//!    those of what was read from the other engine.
//! 3. A time to live, which LevelDB cannot keep, is not dropped unless that is requested.

use super::leveldb;
use crate::exit::note;
use crate::log::StderrLog;
use crate::settings::Settings;
use clap::ArgMatches;
use kvant_base::checksum::crc32c_masked;
use kvant_base::log::Log;
use kvant_base::{Error, ErrorKind, Events, MemoryBudget, Result, limits, size};
use kvant_engine::{Db, RangeIter, SyncLevel, WriteBatch};
use kvant_env::Env;
use kvant_leveldb::{LevelDb, Loader, Range};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keys and values that the engine `lsm` is given together.
const BATCH_BYTES: usize = 1 << 20;
const PROGRESS_INTERVAL_NS: u64 = 2_000_000_000;

/// Copies FROM to TO; returns what was copied, as a line.
pub(crate) fn run(args: &ArgMatches, settings: &Settings) -> Result<String> {
    let path = |name| args.get_one::<PathBuf>(name).expect("clap requires the argument").as_path();
    let (from, to) = (path("FROM"), path("TO"));
    let env = Env::posix();
    let copier = Copier {
        log: Arc::new(StderrLog::new(settings.log_format, Arc::clone(&env.clock))),
        forgets_ttl: args.get_flag("forget-ttl"),
        // Each side has half.
        memory_bytes: (settings.memory_bytes / 2).max(limits::MEMORY_BYTES_MIN),
        env,
        settings,
    };
    copier.require_empty(to)?;
    let unfinished = beside(to)?;
    copier.remove(&unfinished)?;
    match copier
        .make(from, &unfinished)
        .and_then(|sum| copier.put_in_place(&unfinished, to).map(|()| sum))
    {
        Ok(sum) => {
            let (count, bytes, to) = (sum.count, size::format(sum.bytes), to.display());
            Ok(format!("{count} records, {bytes}, in {to}, read back and equal\n"))
        }
        Err(error) => {
            if let Err(error) = copier.remove(&unfinished) {
                note(&format!("kvant: {error}"));
            }
            Err(error)
        }
    }
}

/// Where the copy is made.
fn beside(to: &Path) -> Result<PathBuf> {
    let name = to.file_name();
    let name = name.ok_or_else(|| Error::invalid("the path ends with no name").with_file(to))?;
    let mut name = name.to_os_string();
    name.push(".unfinished");
    Ok(to.with_file_name(name))
}

/// What was read, in order.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    bytes: u64,
    checksum: u32,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.bytes += (key.len() + value.len()) as u64;
        let lengths = [u64::from(self.checksum), key.len() as u64, value.len() as u64];
        let [before, key_len, value_len] = lengths.map(u64::to_le_bytes);
        self.checksum = crc32c_masked(&[&before, &key_len, &value_len, key, value]);
    }
}

struct Copier<'a> {
    env: Env,
    log: Arc<dyn Log>,
    settings: &'a Settings,
    forgets_ttl: bool,
    memory_bytes: u64,
}

/// Key, value, and when the value expires.
type Record<'a> = (&'a [u8], &'a [u8], Option<u64>);

/// The records of a directory.
trait Records {
    fn next(&mut self) -> Result<Option<Record<'_>>>;
}

impl Records for RangeIter {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        let record = RangeIter::next(self)?;
        Ok(record.map(|record| (record.key, record.value, record.expires_at_ms)))
    }
}

impl Records for Range {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        Ok(Range::next(self)?.map(|(key, value)| (key, value, None)))
    }
}

impl Copier<'_> {
    fn require_empty(&self, dir: &Path) -> Result<()> {
        match self.env.fs.list(dir) {
            Ok(entries) if entries.is_empty() => Ok(()),
            Ok(_) => Err(Error::invalid("the directory of the copy is not empty").with_file(dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("list", dir, error)),
        }
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        match self.env.fs.remove_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| Error::io("remove", dir, error)),
        }
    }

    fn put_in_place(&self, unfinished: &Path, to: &Path) -> Result<()> {
        let fs = &*self.env.fs;
        fs.rename(unfinished, to).map_err(|error| Error::io("rename", unfinished, error))?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        fs.sync_dir(parent).map_err(|error| Error::io("fsync", parent, error))
    }

    fn make(&self, from: &Path, to: &Path) -> Result<Sum> {
        let is_leveldb = kvant_leveldb::is_database(&*self.env.fs, from)?;
        let read = match is_leveldb {
            true => self.leveldb_to_lsm(from, to)?,
            false => self.lsm_to_leveldb(from, to)?,
        };
        let found = if is_leveldb {
            let copy = self.open_lsm(to)?;
            let found = self.read("compared", &mut copy.range(b"", None)?, |_| Ok(()))?;
            copy.close()?;
            found
        } else {
            let copy = self.open_leveldb(to)?;
            let found = self.read("compared", &mut copy.range(b"", None)?, |_| Ok(()))?;
            copy.close()?;
            found
        };
        if read != found {
            let what = format!(
                "the copy differs: {} records of {} bytes were read, it has {} of {} bytes, with \
                 checksums {:08x} and {:08x}",
                read.count, read.bytes, found.count, found.bytes, read.checksum, found.checksum
            );
            return Err(Error::new(ErrorKind::Corruption, what).with_file(to));
        }
        Ok(read)
    }

    fn leveldb_to_lsm(&self, from: &Path, to: &Path) -> Result<Sum> {
        let source = self.open_leveldb(from)?;
        let target = self.open_lsm(to)?;
        let (mut batch, mut bytes) = (WriteBatch::new(), 0);
        let sum = self.read("copied", &mut source.range(b"", None)?, |(key, value, _)| {
            batch.put(key, value, None);
            bytes += key.len() + value.len();
            if bytes >= BATCH_BYTES {
                bytes = 0;
                target.write(std::mem::take(&mut batch))?;
            }
            Ok(())
        })?;
        target.write(batch)?;
        target.close()?;
        source.close()?;
        Ok(sum)
    }

    fn lsm_to_leveldb(&self, from: &Path, to: &Path) -> Result<Sum> {
        super::db::require_database(&self.env, from)?;
        let source = self.open_lsm(from)?;
        let mut target = Loader::create(&self.env, to, &self.leveldb_options())?;
        let sum = self.read("copied", &mut source.range(b"", None)?, |(key, value, expiry)| {
            if expiry.is_some() && !self.forgets_ttl {
                let key = key.escape_ascii();
                return Err(Error::invalid(format!(
                    "the record `{key}` has a time to live, which LevelDB cannot keep: with \
                     --forget-ttl such records are copied and never expire"
                )));
            }
            target.put(key, value)
        })?;
        target.finish()?;
        source.close()?;
        Ok(sum)
    }

    /// Gives all records to `take`; shows progress.
    fn read(
        &self,
        verb: &str,
        records: &mut dyn Records,
        mut take: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<Sum> {
        let mut sum = Sum::default();
        let mut shown_ns = self.env.clock.monotonic_ns();
        while let Some(record) = records.next()? {
            take(record)?;
            sum.add(record.0, record.1);
            if sum.count.is_multiple_of(1024) {
                let now_ns = self.env.clock.monotonic_ns();
                if now_ns - shown_ns >= PROGRESS_INTERVAL_NS {
                    shown_ns = now_ns;
                    note(&format!("{} records, {} {verb}", sum.count, size::format(sum.bytes)));
                }
            }
        }
        Ok(sum)
    }

    fn open_lsm(&self, dir: &Path) -> Result<Db> {
        let mut options = kvant_engine::Options::for_memory(self.memory_bytes);
        options.compression.fill(self.settings.compression);
        // All is synced when the database is closed.
        options.sync = SyncLevel::Os;
        options.value_bytes_max = (self.memory_bytes / 4).min(limits::VALUE_BYTES_MAX_LIMIT);
        let resources = kvant_engine::Resources {
            memory: MemoryBudget::new(self.memory_bytes),
            log: Arc::clone(&self.log),
            events: Events::new(1),
            progress: Arc::default(),
        };
        Db::open(self.env.clone(), dir, options, resources)
    }

    fn leveldb_options(&self) -> kvant_leveldb::Options {
        let memory_bytes = self.memory_bytes;
        kvant_leveldb::Options { memory_bytes, ..leveldb::options(self.settings) }
    }

    fn open_leveldb(&self, dir: &Path) -> Result<LevelDb> {
        let memory = MemoryBudget::new(self.memory_bytes);
        let resources = kvant_leveldb::Resources { memory, log: Arc::clone(&self.log) };
        LevelDb::open(self.env.clone(), dir, self.leveldb_options(), resources)
    }
}
