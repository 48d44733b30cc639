//! Everything that is observed beside a load: the kernel's account, and, of a Kvant, its
//! statistics, its events and a recording.
//!
//! Threads: one for each of them, on the CPUs of the generator, as the thread that starts them.

use super::events;
use super::http::{self, Server, Stream};
use super::watch::{self, Sampler, Watched};
use crate::record::{EventFacts, StatsSample, Watch};
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, Result};
use kvant_env::Clock;
use kvant_env::host::procfs::ProcFs;
use std::io;
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two samples of `/v0/stats`.
const STATS_PERIOD: Duration = Duration::from_millis(500);
/// Longest wait for statistics: a subject beyond its limit is late.
const STATS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a recording after it was ended: names of functions are resolved first.
const PROFILE_WAIT_MAX: Duration = Duration::from_secs(120);
/// Recordings are ended with the load; the server's own limit is an hour.
const PROFILE: &str = "/v0/profile?format=kprof&event=cpu,alloc,lock&duration=3600s";

/// What is observed.
pub(super) struct Scope {
    pub(super) proc: ProcFs,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) watched: Watched,
    /// A Kvant.
    pub(super) kvant: Option<Server>,
    /// Whether it is on this machine, so that its times are ours.
    pub(super) shares_clock: bool,
    pub(super) is_profiled: bool,
}

/// What was observed.
pub(super) struct Observed {
    pub(super) watch: Watch,
    /// What paused this program, if anything did.
    pub(super) pause: Option<String>,
    pub(super) stats: Option<Vec<StatsSample>>,
    pub(super) events: Option<Vec<EventFacts>>,
    /// The recording, or why there is none.
    pub(super) profile: Option<std::result::Result<Vec<u8>, String>>,
}

/// Running observations. Dropping ends them.
pub(super) struct Observer {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<(Watch, Option<String>)>>,
    stats: Option<JoinHandle<Vec<StatsSample>>>,
    events: Option<(Stream, JoinHandle<Vec<EventFacts>>)>,
    profile: Option<JoinHandle<Recorded>>,
}

type Recorded = Option<std::result::Result<Vec<u8>, String>>;

/// Starts the recording, from any thread.
#[derive(Clone)]
pub(super) struct ProfileTrigger(Arc<Shared>);

struct Shared {
    state: NamedMutex<State>,
    changed: NamedCondvar,
}

#[derive(Default)]
struct State {
    is_over: bool,
    has_profile_begun: bool,
    /// The connection of the recording, whose sending side is closed to end it.
    profile: Option<Stream>,
}

impl Observer {
    /// Starts to observe; the first sample is taken at once.
    ///
    /// # Errors
    /// `Io` if a thread cannot be started.
    pub(super) fn start(scope: Scope) -> Result<Observer> {
        let shared = Arc::new(Shared {
            state: NamedMutex::new("lab_observer", State::default()),
            changed: NamedCondvar::new(WaitKind::Idle, "lab_observer"),
        });
        let mut observer = Observer {
            shared: Arc::clone(&shared),
            watch: None,
            stats: None,
            events: None,
            profile: None,
        };
        let Scope { proc, clock, watched, kvant, shares_clock, is_profiled } = scope;
        let mut sampler = Sampler::new(proc, Arc::clone(&clock), watched);
        sampler.sample();
        let watching = Arc::clone(&shared);
        observer.watch = Some(thread("lab-watch", move || {
            while watching.pause(watch::PERIOD) {
                sampler.sample();
            }
            sampler.finish()
        })?);
        let Some(kvant) = kvant else { return Ok(observer) };
        if shares_clock && let Ok(stream) = events::open(&kvant) {
            let reading = stream.try_clone().map_err(|error| failed("events", error))?;
            let reader = thread("lab-events", move || events::read(reading))?;
            observer.events = Some((stream, reader));
        }
        if is_profiled {
            let (shared, kvant) = (Arc::clone(&shared), kvant.clone());
            observer.profile = Some(thread("lab-profile", move || record(&shared, &kvant))?);
        }
        observer.stats = Some(thread("lab-stats", move || sample_stats(&shared, &kvant, &*clock))?);
        Ok(observer)
    }

    /// What begins the recording.
    pub(super) fn profile_trigger(&self) -> ProfileTrigger {
        ProfileTrigger(Arc::clone(&self.shared))
    }

    /// Ends the observations and returns them.
    pub(super) fn finish(mut self) -> Observed {
        self.end();
        let (watch, pause) = self.watch.take().and_then(joined).unwrap_or_default();
        Observed {
            watch,
            pause,
            stats: self.stats.take().and_then(joined),
            events: self.events.take().and_then(|(_, reader)| joined(reader)),
            profile: self.profile.take().and_then(joined).flatten(),
        }
    }

    fn end(&self) {
        let mut state = self.shared.state.lock();
        state.is_over = true;
        if let Some(stream) = &state.profile {
            end_stream(stream, Shutdown::Write);
        }
        if let Some((stream, _)) = &self.events {
            end_stream(stream, Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.end();
    }
}

impl ProfileTrigger {
    pub(super) fn begin(&self) {
        self.0.state.lock().has_profile_begun = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Waits; returns whether the observation goes on.
    fn pause(&self, time: Duration) -> bool {
        let state = self.state.lock();
        if state.is_over {
            return false;
        }
        !self.changed.wait_timeout(state, time).is_over
    }
}

fn sample_stats(shared: &Shared, kvant: &Server, clock: &dyn Clock) -> Vec<StatsSample> {
    let mut samples = Vec::new();
    let mut next_ns = clock.monotonic_ns();
    loop {
        // A subject that dies or refuses leaves a gap.
        if let Ok(response) = kvant.request("GET", "/v0/stats", STATS_WAIT_MAX)
            && let Ok(stats) = serde_json::from_slice(&response.body)
        {
            samples.push(StatsSample { at_ns: clock.monotonic_ns(), stats });
        }
        next_ns += STATS_PERIOD.as_nanos() as u64;
        while clock.monotonic_ns() < next_ns {
            let left = Duration::from_nanos(next_ns.saturating_sub(clock.monotonic_ns()));
            if !shared.pause(left) {
                return samples;
            }
        }
        if shared.state.lock().is_over {
            return samples;
        }
    }
}

/// Records from the trigger to the end of the observation. `None` if the measured time never began.
fn record(shared: &Shared, kvant: &Server) -> Recorded {
    {
        let mut state = shared.state.lock();
        while !state.has_profile_begun {
            if state.is_over {
                return None;
            }
            state = shared.changed.wait(state);
        }
    }
    let exchange = || -> io::Result<http::Response> {
        let mut stream = kvant.connect(STATS_WAIT_MAX)?;
        kvant.send(&mut stream, "POST", PROFILE)?;
        let mut state = shared.state.lock();
        if state.is_over {
            stream.shutdown(Shutdown::Write)?;
        }
        state.profile = Some(stream.try_clone()?);
        drop(state);
        stream.set_read_timeout(Duration::from_secs(3_600) + PROFILE_WAIT_MAX)?;
        http::read_response(&mut stream)
    };
    let response = match exchange() {
        Ok(response) => response,
        Err(error) => return Some(Err(error.to_string())),
    };
    if response.status == 200 {
        return Some(Ok(response.body));
    }
    let problem = String::from_utf8_lossy(&response.body).into_owned();
    Some(Err(format!("status {}: {}", response.status, problem.trim())))
}

fn end_stream(stream: &Stream, how: Shutdown) {
    match stream.shutdown(how) {
        // A connection that has ended already is what is wanted.
        Ok(()) | Err(_) => {}
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|error| failed(name, error))
}

fn failed(what: &str, error: io::Error) -> Error {
    Error::io("start", Path::new(what), error)
}

/// What a thread returned; `None` if it panicked, which it has reported.
fn joined<T>(thread: JoinHandle<T>) -> Option<T> {
    thread.join().ok()
}
