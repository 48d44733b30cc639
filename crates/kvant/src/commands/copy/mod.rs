//! `kvant db copy`: the records of one place in another one, of whatever engine.
//!
//! Invariants:
//! 1. A directory is written beside its place (`TO.unfinished`) and renamed when it is whole: a
//!    directory with the final name is complete. Before that it is read again and compared.
//! 2. Records are copied in key order. An interrupted copy goes on after the last key of an
//!    unfinished directory, or after the key that a keyspace has stored; the same record may be
//!    written twice. What was copied before is not compared again with a source in use, which
//!    may have changed.
//! 3. An unfinished target names its source, and goes on with that source only.
//! 4. A time to live, which LevelDB cannot keep, is not dropped unless that is requested.
//!
//! Memory: both places, a batch or window, and the digests of [`digest`].

#[cfg(feature = "cassandra")]
mod cluster;
mod digest;
mod directory;
#[cfg(feature = "leveldb")]
mod leveldb;
mod place;
mod progress;
mod records;
#[expect(clippy::disallowed_types, reason = "a client of servers")]
mod server;
mod unfinished;
mod verify;

use crate::exit::note;
use crate::log::StderrLog;
use crate::settings::Settings;
use clap::ArgMatches;
use digest::Ranges;
use directory::{Directories, Engine};
use kvant_base::{Error, ErrorKind, Result, limits};
use kvant_env::Env;
use place::Place;
use progress::Progress;
use records::{FIRST_KEY, Source, Target, key_after};
use server::Server;
#[cfg(feature = "cassandra")]
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use unfinished::Unfinished;

/// Copies FROM to TO, or compares them; returns what was done, as a line.
pub(crate) fn run(args: &ArgMatches, settings: &Settings) -> Result<String> {
    let place =
        |name| Place::parse(args.get_one::<OsString>(name).expect("clap requires the argument"));
    let (from, to) = (place("FROM")?, place("TO")?);
    let env = Env::posix();
    let copier = Copier {
        directories: Directories {
            log: Arc::new(StderrLog::new(settings.log_format, Arc::clone(&env.clock))),
            env: &env,
            settings,
            // Each side has half.
            memory_bytes: (settings.memory_bytes / 2).max(limits::MEMORY_BYTES_MIN),
            forgets_ttl: args.get_flag("forget-ttl"),
        },
        env: &env,
        verifies: args.get_flag("verify"),
        engine: args.get_one::<String>("to-engine").map(|name| match name.as_str() {
            "leveldb" => Engine::LevelDb,
            _ => Engine::Lsm,
        }),
        #[cfg(feature = "cassandra")]
        cluster_options: OnceCell::new(),
    };
    let source = copier.open(&from)?;
    let done = if args.get_flag("verify-only") {
        let target = copier.open(&to)?;
        copier.verify(&*source, &*target, None)
    } else {
        match &to {
            Place::Directory(dir) => copier.copy_to_directory(&from, &*source, dir),
            Place::Cluster { .. } => copier.copy_to_cluster(&from, &*source, &to),
            Place::Server(_) => Err(Error::invalid(format!(
                "{to}: a server can only be copied from; copy into the directory or the cluster of \
                 a server that is started afterwards"
            ))),
        }
    };
    done.map(|line| line + "\n")
}

struct Copier<'a> {
    directories: Directories<'a>,
    env: &'a Env,
    verifies: bool,
    /// Of a target directory, if one was named.
    engine: Option<Engine>,
    #[cfg(feature = "cassandra")]
    cluster_options: OnceCell<kvant_cassandra::Options>,
}

impl Copier<'_> {
    fn open(&self, place: &Place) -> Result<Box<dyn Source>> {
        match place {
            Place::Directory(dir) => self.directories.open(dir, self.directories.engine_of(dir)?),
            Place::Server(host) => Ok(Box::new(Server::new(host))),
            #[cfg(feature = "cassandra")]
            Place::Cluster { nodes, keyspace } => {
                Ok(Box::new(self.keyspace(nodes, keyspace, false)?))
            }
            #[cfg(not(feature = "cassandra"))]
            Place::Cluster { .. } => Err(not_built(place)),
        }
    }

    #[cfg(feature = "cassandra")]
    fn keyspace(&self, nodes: &[String], name: &str, creates: bool) -> Result<cluster::Keyspace> {
        // Once for both sides: a password that comes from a pipe can be read once.
        let options = match self.cluster_options.get() {
            Some(options) => options,
            None => {
                let settings = &self.directories.settings.cluster;
                let options = super::cassandra::options(settings, false)?;
                self.cluster_options.get_or_init(|| options)
            }
        };
        cluster::Keyspace::open(self.env, options.clone(), nodes, name, creates)
    }

    fn copy_to_directory(&self, from: &Place, source: &dyn Source, to: &Path) -> Result<String> {
        let engine = match (self.engine, from) {
            (Some(engine), _) => engine,
            (None, Place::Directory(dir)) if self.directories.engine_of(dir)? == Engine::Lsm => {
                Engine::LevelDb
            }
            (None, _) => Engine::Lsm,
        };
        let unfinished = Unfinished::open(self.env, to, &self.identity(from)?)?;
        self.note_ttl(from);
        let data = unfinished.data();
        let copied = (|| {
            let last_key = match unfinished.is_resumed() {
                true => records::last_key(&*self.directories.open(&data, engine)?)?,
                false => None,
            };
            let target = self.directories.target(&data, engine)?;
            let ranges = self.copy(source, target, last_key.as_deref())?;
            let is_enough = last_key.is_none() || !matches!(from, Place::Directory(_));
            let copy = self.directories.open(&data, engine)?;
            let compared = self.verify(source, &*copy, is_enough.then_some(ranges));
            compared.map_err(|error| unfinished.advise(error))
        })();
        let line = copied.map_err(to_be_continued)?;
        unfinished.put_in_place()?;
        Ok(format!("{}: {line}", to.display()))
    }

    #[cfg(feature = "cassandra")]
    fn copy_to_cluster(&self, from: &Place, source: &dyn Source, to: &Place) -> Result<String> {
        let Place::Cluster { nodes, keyspace } = to else { unreachable!("a cluster") };
        let keyspace = self.keyspace(nodes, keyspace, true)?;
        let (target, last_key) = keyspace.target(&self.identity(from)?)?;
        self.note_ttl(from);
        let copied = self.copy(source, Box::new(target), last_key.as_deref());
        let ranges = copied.map_err(to_be_continued)?;
        if self.verifies {
            return Ok(format!("{to}: {}", self.verify(source, &keyspace, None)?));
        }
        let total = ranges.total();
        let (count, bytes) = (total.count, kvant_base::size::format(total.bytes));
        let which = if last_key.is_some() { "more records" } else { "records" };
        Ok(format!("{to}: {count} {which}, {bytes}"))
    }

    #[cfg(not(feature = "cassandra"))]
    fn copy_to_cluster(&self, _from: &Place, _source: &dyn Source, to: &Place) -> Result<String> {
        Err(not_built(to))
    }

    /// Copies the records after `last_key`; returns their digests.
    fn copy(
        &self,
        source: &dyn Source,
        mut target: Box<dyn Target + '_>,
        last_key: Option<&[u8]>,
    ) -> Result<Ranges> {
        let start = last_key.map_or_else(|| FIRST_KEY.to_vec(), key_after);
        if let Some(key) = last_key {
            note(&format!("the copy goes on after `{}`", key.escape_ascii()));
        }
        let mut progress = Progress::new(&self.env.clock, "copied");
        let mut ranges = Ranges::new(&start);
        let mut records = source.read(&start, None)?;
        while let Some(record) = records.next()? {
            target.put(record)?;
            ranges.add(record);
            progress.add(record);
        }
        target.finish()?;
        Ok(ranges)
    }

    /// Compares both places; `expected` is what was read from the first one, if that is enough.
    fn verify(
        &self,
        from: &dyn Source,
        to: &dyn Source,
        expected: Option<Ranges>,
    ) -> Result<String> {
        let clock = &self.env.clock;
        let expected = match expected.filter(|_| !self.verifies) {
            Some(expected) => expected,
            None => verify::digests_of(from, clock)?,
        };
        verify::compare(from, to, &expected, clock)
    }

    /// What tells a source from others.
    fn identity(&self, from: &Place) -> Result<String> {
        let Place::Directory(dir) = from else { return Ok(from.to_string()) };
        let path = self.env.fs.canonical(dir).map_err(|error| Error::io("look at", dir, error))?;
        Ok(path.display().to_string())
    }

    fn note_ttl(&self, from: &Place) {
        if let Place::Server(_) = from {
            note("a server does not say when records expire: the copies of such records never do");
        }
    }
}

fn to_be_continued(error: Error) -> Error {
    if error.kind() == ErrorKind::Corruption {
        return error;
    }
    Error::new(error.kind(), format!("{error}; the same command goes on where this one ended"))
}

#[cfg(not(feature = "cassandra"))]
fn not_built(place: &Place) -> Error {
    Error::invalid(format!("{place}: this program was built without the driver of clusters"))
}
