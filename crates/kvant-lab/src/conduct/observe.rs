//! Everything that is observed beside a load: the kernel's account, whether memory is slow, and, of
//! a Kvant, its statistics, its events, its history and a recording.
//!
//! Invariant: a subject that does not respond delays the end of an observation by no more than
//! [`PROFILE_WAIT_MAX`], and by no more than [`STOPPED_WAIT_MAX`] once the run is to end. What it
//! has not said until then is missing.
//!
//! Threads: one for each of them, on the CPUs of the generator, as the thread that starts them.

use super::clocks;
use super::events;
use super::http::{self, Server, Stream};
use super::memory_probe::{self, MemoryProbe};
use super::stop::Stop;
use super::watch::{self, Sampler, Watched};
use crate::record::{ClockMatch, EventFacts, StatsSample, Stretch, Watch};
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
use std::time::{Duration, Instant};

/// Time between two samples of `/v0/stats`.
const STATS_PERIOD: Duration = Duration::from_millis(500);
/// Longest wait for statistics: a subject beyond its limit is late.
const STATS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a recording after it was ended: names of functions are resolved first.
const PROFILE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the rest of an observation when the run is to end.
const STOPPED_WAIT_MAX: Duration = Duration::from_secs(1);
/// Between two looks at whether a thread has ended.
const LOOK_PERIOD: Duration = Duration::from_millis(2);
/// Time until the last window of a history has ended: twice its length.
const HISTORY_LAG: Duration = Duration::from_millis(200);
/// Recordings are ended with the load; the server's own limit is an hour.
const PROFILE: &str = "/v0/profile?format=kprof&event=cpu,alloc,lock&duration=3600s";

/// What is observed.
pub(super) struct Scope {
    pub(super) proc: ProcFs,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) watched: Watched,
    /// Nodes of its cluster on this machine.
    pub(super) nodes: Vec<u32>,
    /// A Kvant.
    pub(super) kvant: Option<Server>,
    /// Whether it is on this machine, so that its times are ours.
    pub(super) shares_clock: bool,
    pub(super) is_profiled: bool,
    /// Whether its history is wanted.
    pub(super) has_history: bool,
    /// Whether the run is to end.
    pub(super) stop: Stop,
}

/// What was observed.
pub(super) struct Observed {
    pub(super) watch: Watch,
    /// What paused this program, if anything did.
    pub(super) pause: Option<String>,
    pub(super) stats: Option<Vec<StatsSample>>,
    /// By our clock; `None`, too, if its clock is another one that could not be matched.
    pub(super) events: Option<Vec<EventFacts>>,
    /// The response to `/v0/history`, by its clock; `None` if it keeps none.
    pub(super) history: Option<Vec<u8>>,
    /// How its clock was matched, if it is another one.
    pub(super) clock: Option<ClockMatch>,
    /// The recording, or why there is none.
    pub(super) profile: Option<std::result::Result<Vec<u8>, String>>,
}

/// Samples of `/v0/stats` so far.
pub(super) type StatsSoFar = Arc<NamedMutex<Vec<StatsSample>>>;

/// Running observations. Dropping ends them.
pub(super) struct Observer {
    shared: Arc<Shared>,
    stop: Stop,
    shares_clock: bool,
    watch: Option<JoinHandle<(Watch, Option<String>)>>,
    memory: Option<JoinHandle<Vec<Stretch>>>,
    stats: Option<JoinHandle<()>>,
    stats_so_far: StatsSoFar,
    events: Option<(Stream, JoinHandle<Vec<EventFacts>>)>,
    profile: Option<JoinHandle<Recorded>>,
    /// The subject whose history is wanted, and since when.
    history: Option<(Server, Instant)>,
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
        let Scope {
            proc,
            clock,
            watched,
            nodes,
            kvant,
            shares_clock,
            is_profiled,
            has_history,
            stop,
        } = scope;
        let shared = Arc::new(Shared {
            state: NamedMutex::new("lab_observer", State::default()),
            changed: NamedCondvar::new(WaitKind::Idle, "lab_observer"),
        });
        let mut observer = Observer {
            shared: Arc::clone(&shared),
            stop,
            shares_clock,
            watch: None,
            memory: None,
            stats: None,
            stats_so_far: Arc::new(NamedMutex::new("lab_stats", Vec::new())),
            events: None,
            profile: None,
            history: kvant.clone().filter(|_| has_history).map(|kvant| (kvant, Instant::now())),
        };
        let mut sampler = Sampler::new(proc, Arc::clone(&clock), watched, nodes);
        sampler.sample();
        let watching = Arc::clone(&shared);
        observer.watch = Some(thread("lab-watch", move || {
            while watching.pause(watch::PERIOD) {
                sampler.sample();
            }
            sampler.finish()
        })?);
        let mut probe = MemoryProbe::new(Arc::clone(&clock));
        let probing = Arc::clone(&shared);
        observer.memory = Some(thread("lab-memory", move || {
            while probing.pause(memory_probe::PERIOD) {
                probe.read();
            }
            probe.finish()
        })?);
        let Some(kvant) = kvant else { return Ok(observer) };
        if let Ok(stream) = events::open(&kvant) {
            let reading = stream.try_clone().map_err(|error| failed("events", error))?;
            let reader = thread("lab-events", move || events::read(reading))?;
            observer.events = Some((stream, reader));
        }
        if is_profiled {
            let (shared, kvant) = (Arc::clone(&shared), kvant.clone());
            observer.profile = Some(thread("lab-profile", move || record(&shared, &kvant))?);
        }
        let samples = Arc::clone(&observer.stats_so_far);
        let sample = move || sample_stats(&shared, &kvant, &*clock, &samples);
        observer.stats = Some(thread("lab-stats", sample)?);
        Ok(observer)
    }

    /// What begins the recording.
    pub(super) fn profile_trigger(&self) -> ProfileTrigger {
        ProfileTrigger(Arc::clone(&self.shared))
    }

    /// The samples of `/v0/stats`, while they are taken; none of other servers.
    pub(super) fn stats_so_far(&self) -> StatsSoFar {
        Arc::clone(&self.stats_so_far)
    }

    /// Ends the observations and returns them.
    pub(super) fn finish(mut self) -> Observed {
        self.end();
        // A subject that has ended, or whose thread cannot be started, has none.
        let history = self.history.take().and_then(|(kvant, since)| {
            thread("lab-history", move || read_history(&kvant, since)).ok()
        });
        let (mut watch, pause) = self.watch.take().and_then(joined).unwrap_or_default();
        watch.slow_memory = self.memory.take().and_then(joined).unwrap_or_default();
        let until = Instant::now() + PROFILE_WAIT_MAX;
        let stats = self.stats.take().map(|sampler| {
            joined_until(sampler, until, &self.stop);
            std::mem::take(&mut *self.stats_so_far.lock())
        });
        let events = self.events.take();
        let events = events.and_then(|(_, reader)| joined_until(reader, until, &self.stop));
        let clock = stats.as_deref().filter(|_| !self.shares_clock).and_then(clocks::matched);
        let events = match (self.shares_clock, clock) {
            (true, _) => events,
            (false, Some(clock)) => events.map(|events| clocks::ours(events, &clock)),
            (false, None) => None,
        };
        let profile = self.profile.take().and_then(|recorder| {
            joined_until(recorder, until, &self.stop).unwrap_or_else(|| {
                Some(Err(format!("none came within {} s", PROFILE_WAIT_MAX.as_secs())))
            })
        });
        let history = history.and_then(|reader| joined_until(reader, until, &self.stop)).flatten();
        Observed { watch, pause, stats, events, history, clock, profile }
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
        // A thread that still reads a recording ends.
        if let Some(stream) = &self.shared.state.lock().profile {
            end_stream(stream, Shutdown::Both);
        }
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

fn sample_stats(
    shared: &Shared,
    kvant: &Server,
    clock: &dyn Clock,
    samples: &NamedMutex<Vec<StatsSample>>,
) {
    let mut next_ns = clock.monotonic_ns();
    loop {
        // A subject that dies or refuses leaves a gap.
        let asked_ns = clock.monotonic_ns();
        if let Ok(response) = kvant.request("GET", "/v0/stats", STATS_WAIT_MAX) {
            let at_ns = clock.monotonic_ns();
            if let Ok(stats) = serde_json::from_slice(&response.body) {
                samples.lock().push(StatsSample { asked_ns, at_ns, stats });
            }
        }
        next_ns += STATS_PERIOD.as_nanos() as u64;
        while clock.monotonic_ns() < next_ns {
            let left = Duration::from_nanos(next_ns.saturating_sub(clock.monotonic_ns()));
            if !shared.pause(left) {
                return;
            }
        }
        if shared.state.lock().is_over {
            return;
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
        // The observer ends a connection that waits too long.
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

/// What the subject kept since then; `None` if it keeps nothing.
fn read_history(kvant: &Server, since: Instant) -> Option<Vec<u8>> {
    std::thread::sleep(HISTORY_LAG);
    let path = format!("/v0/history?last={}ms", since.elapsed().as_millis());
    let response = kvant.request("GET", &path, STATS_WAIT_MAX).ok()?;
    (response.status == 200).then_some(response.body)
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

/// What a thread returned; `None` if it panicked, or has not ended by then or soon after a request
/// to stop: it is left alone.
fn joined_until<T>(thread: JoinHandle<T>, until: Instant, stop: &Stop) -> Option<T> {
    let mut until = until;
    let mut is_stopped = false;
    while !thread.is_finished() {
        if !is_stopped && stop.is_requested() {
            is_stopped = true;
            until = until.min(Instant::now() + STOPPED_WAIT_MAX);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    joined(thread)
}

/// What a thread returned; `None` if it panicked, which it has reported.
fn joined<T>(thread: JoinHandle<T>) -> Option<T> {
    thread.join().ok()
}
