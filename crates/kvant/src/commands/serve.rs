//! `kvant serve`: wires settings, log, server and engine together, and shuts them down in order.
//!
//! A start installs signal handlers, so that no signal is lost; starts the listeners, so that
//! `/health` can show the recovery; opens the database; and hands it to the server.
//!
//! Threads: the main thread waits for signals. Opening and stopping block, in threads of their own,
//! so that a second signal always ends the process. Interrupting a recovery loses nothing: the next
//! start repeats it.

use super::signals::{EXIT_INTERRUPTED, Event, Signals};
use crate::log::StderrLog;
use crate::settings::{Config, Engine, SETTINGS, Settings};
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Events, MemoryBudget, duration};
use kvant_engine::{Db, Options, RecoveryProgress, Resources, tools};
use kvant_env::{Env, freed_memory};
#[cfg(feature = "cassandra")]
use kvant_server::Overload;
use kvant_server::{Backend, LsmStore, MemoryStore, Server};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Capacity of the ring behind `/v0/events` and `/v0/slow`: several minutes of a busy store.
const EVENTS_KEPT: usize = 4096;

/// Serves until a signal; returns the exit code.
pub(crate) fn serve(config: &Config) -> u8 {
    kvant_env::posix::keep_little_freed_memory();
    let env = Env::posix();
    let log: Arc<dyn Log> =
        Arc::new(StderrLog::new(config.settings.log_format, Arc::clone(&env.clock)));
    match run(config, env, &log) {
        Ok(exit_code) => exit_code,
        Err(error) => {
            log.event(Level::Error, "start_failed", &[("error", &error)]);
            crate::EXIT_FAILED
        }
    }
}

fn run(config: &Config, env: Env, log: &Arc<dyn Log>) -> io::Result<u8> {
    let settings = &config.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit_code = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        log_start(config, log.as_ref());
        let memory = MemoryBudget::new(settings.memory_bytes);
        let events = Events::new(EVENTS_KEPT);
        freed_memory::keep_releasing(&env, &memory, &events, log);
        let server = Server::start(
            settings.server.clone(),
            env.clone(),
            Arc::clone(&memory),
            Arc::clone(log),
            Arc::clone(&events),
        )?;

        let progress = Arc::<RecoveryProgress>::default();
        server.set_recovering({
            let progress = Arc::clone(&progress);
            move || progress.per_cent()
        });
        let waits_for_cluster = server.waits_for_cluster();
        let mut opened = {
            let settings = settings.clone();
            let resources = Resources { memory, log: Arc::clone(log), events, progress };
            spawn_blocking(move || open_store(&settings, env, resources, &*waits_for_cluster))
        };
        let stopped_by = match signals.first_of(&mut opened).await {
            Event::Signal(name) => name,
            Event::Done(Err(error)) => {
                log_open_failed(settings, &error, log.as_ref());
                return Ok(crate::EXIT_FAILED);
            }
            Event::Done(Ok(store)) => {
                server.set_ready(store);
                log.event(Level::Info, "ready", &[]);
                signals.next().await
            }
        };
        stop(settings, server, stopped_by, &mut signals, log).await
    });
    // Does not wait for an interrupted recovery.
    runtime.shutdown_background();
    exit_code
}

fn open_store(
    settings: &Settings,
    env: Env,
    resources: Resources,
    waits_for_cluster: &dyn Fn(&Error),
) -> Result<Backend, Error> {
    match settings.engine {
        Engine::Memory => Ok(Backend::Local(Arc::new(MemoryStore::new(resources.memory)))),
        #[cfg(feature = "cassandra")]
        Engine::Cassandra => {
            let limits_adapt = settings.server.overload == Overload::Adaptive;
            let (cluster, log) = (&settings.cluster, &resources.log);
            super::cassandra::open(cluster, limits_adapt, env, log, waits_for_cluster)
        }
        #[cfg(not(feature = "cassandra"))]
        Engine::Cassandra => {
            let _unused = waits_for_cluster;
            unreachable!("the settings refuse an engine that is not built in")
        }
        #[cfg(feature = "leveldb")]
        Engine::LevelDb => super::leveldb::open(settings, env, resources).map(Backend::Local),
        #[cfg(not(feature = "leveldb"))]
        Engine::LevelDb => unreachable!("the settings refuse an engine that is not built in"),
        Engine::Lsm => {
            let (dir, options) = (&settings.data, settings.engine_options());
            let db = match settings.recover_anyway {
                true => open_anyway(env, dir, options, resources)?,
                false => Db::open(env, dir, options, resources)?,
            };
            Ok(Backend::Local(Arc::new(LsmStore::new(db))))
        }
    }
}

/// Opens the database; a damaged one is repaired first, as by `kvant db repair`.
fn open_anyway(env: Env, dir: &Path, options: Options, resources: Resources) -> Result<Db, Error> {
    let log = Arc::clone(&resources.log);
    match Db::open(env.clone(), dir, options.clone(), resources.clone()) {
        Err(error) if error.kind() == ErrorKind::Corruption => {
            log.event(Level::Error, "recovering_anyway", &[("error", &error)]);
        }
        opened => return opened,
    }
    let report = tools::repair(&env, dir)?;
    for problem in &report.problems {
        log.event(Level::Error, "damaged", &[("problem", problem)]);
    }
    for file in &report.moved_files {
        log.event(Level::Warn, "set_aside", &[("file", &file.display())]);
    }
    for what in &report.losses {
        log.event(Level::Error, "lost", &[("what", what)]);
    }
    log.event(Level::Warn, "repaired", &[("losses", &report.losses.len())]);
    Db::open(env, dir, options, resources)
}

/// Lets requests in flight finish and closes the store, unless a second signal arrives.
async fn stop(
    settings: &Settings,
    server: Server,
    stopped_by: &'static str,
    signals: &mut Signals,
    log: &Arc<dyn Log>,
) -> io::Result<u8> {
    let wait_max = settings.stop_wait_max;
    log.event(
        Level::Info,
        "stopping",
        &[("signal", &stopped_by), ("wait_max", &duration::format(wait_max))],
    );
    match signals.first_of(&mut spawn_blocking(move || server.stop(wait_max))).await {
        Event::Signal(name) => {
            log.event(Level::Warn, "stopped_at_once", &[("signal", &name)]);
            Ok(EXIT_INTERRUPTED)
        }
        Event::Done(Ok(())) => {
            log.event(Level::Info, "stopped", &[]);
            Ok(0)
        }
        Event::Done(Err(error)) => {
            log.event(Level::Error, "close_failed", &[("error", &error)]);
            Ok(crate::EXIT_FAILED)
        }
    }
}

fn log_start(config: &Config, log: &dyn Log) {
    let version: &dyn Display = &env!("CARGO_PKG_VERSION");
    let pid: &dyn Display = &std::process::id();
    log.event(Level::Info, "starting", &[("version", version), ("pid", pid)]);
    let named = SETTINGS.iter().zip(&config.chosen);
    let values: Vec<(&str, &dyn Display)> = named
        .filter_map(|(setting, chosen)| Some((setting.name, chosen.text.as_ref()? as &dyn Display)))
        .collect();
    log.event(Level::Info, "settings", &values);
}

/// Logs the failure, its place, and what to do about it.
fn log_open_failed(settings: &Settings, error: &Error, log: &dyn Log) {
    let dir = settings.data.display();
    let advice = match error.kind() {
        ErrorKind::Corruption if settings.engine == Engine::LevelDb => {
            "restore a checkpoint, or save what is whole: --recover-anyway runs LevelDB's own repair \
             and starts"
                .to_string()
        }
        _ if settings.engine == Engine::Cassandra => {
            "change the settings that begin with --cluster".to_string()
        }
        // The error says what to change.
        ErrorKind::Invalid => "choose another --engine or --data".to_string(),
        ErrorKind::Corruption => {
            format!(
                "see the damage with `kvant db verify {dir}`, then restore a checkpoint, or save what is whole with `kvant db \
                 repair {dir}`; --recover-anyway does that and starts"
            )
        }
        ErrorKind::Locked => {
            "stop the process that owns the directory, or use another --data".to_string()
        }
        ErrorKind::Unsupported => {
            "use the version of Kvant that wrote these files, or a later one".to_string()
        }
        ErrorKind::NoSpace => "make room on the device".to_string(),
        _ => format!("check that {dir} is a directory that this user may write"),
    };
    let mut fields: Vec<(&str, &dyn Display)> = vec![("error", &error)];
    let file = error.file().map(std::path::Path::display);
    if let Some(file) = &file {
        fields.push(("file", file));
    }
    let offset_bytes = error.offset_bytes();
    if let Some(offset_bytes) = &offset_bytes {
        fields.push(("offset_bytes", offset_bytes));
    }
    fields.push(("advice", &advice));
    log.event(Level::Error, "open_failed", &fields);
}
