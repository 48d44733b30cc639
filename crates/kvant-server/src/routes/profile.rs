//! `POST
//! /v0/profile[?event=..][&duration=..][&format=..][&rate=..][&engine=..][&kind=..][&known=..]`:
//! records what the process does, for a while, and answers with it.
//!
//! A recording ends when its time is over; when the client closes its side of the connection, be it
//! that it has gone or that it wants what there is; and when the server stops. It is answered in
//! all three cases, for whoever is still there to read it.
//!
//! Threads: the selector only waits. Starting and stopping, names for addresses and the answer's
//! format take milliseconds to seconds: they have threads of their own, the long part with a low
//! priority.

mod request;

use crate::answer::{Body, Exchange, Reply, Response};
use crate::problem::Problem;
use crate::request_body::no_memory;
use crate::selector::Shared;
use crate::service::{Call, Step};
use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CACHE_CONTROL, HeaderValue};
use kvant_base::Level;
use kvant_base::lock::NamedMutex;
use kvant_env::{Task, spawner};
use kvant_profiler::collect::{CpuOptions, Options, Profiler, StartError};
use kvant_profiler::{recording, render, symbols};
use request::{Format, Request};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior};

/// How often a recording looks whether it is to end early.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Samples take at most this share of the memory budget; what comes then is dropped, and counted.
/// It is not taken out of the budget: the block cache would shrink, and the profile would show what
/// it does itself.
const MEMORY_SHARE: u64 = 16;
const SAMPLE_BYTES: u64 = size_of::<recording::Sample>() as u64;

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    let accept = exchange.reply.request_headers().get_all(ACCEPT);
    let request = Request::read(exchange.query(), accept);
    let mut reply = exchange.reply;
    match request {
        Ok(request) => {
            let call = call.clone();
            Step::slow(async move {
                match record(&call, request, &mut reply).await {
                    Ok(response) => response,
                    Err(problem) => problem.answer(&mut reply),
                }
            })
        }
        Err(problem) => Step::answer(problem.answer(&mut reply)),
    }
}

async fn record(call: &Call, request: Request, reply: &mut Reply) -> Result<Response, Problem> {
    let shared = &call.selector.shared;
    let options = options(&request, shared.memory.budget().limit_bytes());
    let profiler = {
        let (env, events) = (shared.env.clone(), Arc::clone(&shared.events));
        let start = move || Profiler::start(options, &env, Some(events));
        match tokio::task::spawn_blocking(start).await {
            Ok(started) => started.map_err(|error| not_started(&error))?,
            Err(error) => return Err(internal(&error)),
        }
    };
    let mut running = Running { profiler: Some(profiler), shared: Arc::clone(shared) };
    wait(call, request.duration).await;
    let format = request.format;
    let (sender, receiver) = oneshot::channel();
    running.finish(Some((request, sender)));
    let bytes = receiver.await.map_err(|error| internal(&error))?;
    let Some(held) = shared.memory.hold(bytes.len() as u64, shared.config.queue_wait_max).await
    else {
        return Err(no_memory(&call.selector));
    };
    let media_type = HeaderValue::from_static(format.media_type());
    let body = Body::reserved(Bytes::from(bytes), held);
    let mut response = reply.answer(StatusCode::OK, Some(&media_type), body);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
    Ok(response)
}

fn options(request: &Request, memory_bytes: u64) -> Options {
    let mut options = Options::default();
    let samples_max = memory_bytes / MEMORY_SHARE / SAMPLE_BYTES;
    options.samples_max =
        options.samples_max.min(usize::try_from(samples_max).unwrap_or(usize::MAX));
    options.cpu = request.events.cpu.then(|| CpuOptions {
        rate_hz: request.rate_hz.unwrap_or_default(),
        engine: request.engine,
    });
    if !request.events.alloc {
        options.alloc_mean_bytes = None;
    }
    if !request.events.lock {
        options.wait_mean_ns = None;
    }
    options
}

fn not_started(error: &StartError) -> Problem {
    match error {
        StartError::AlreadyRunning => Problem::new(
            StatusCode::CONFLICT,
            "profile-running",
            "A profile is being recorded",
            "a process records one profile at a time: ask again when the other has ended",
        ),
        StartError::Refused(error) => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "io",
            "The system refused the profiler",
            format!("the system refused what the profiler needs: {error}"),
        ),
    }
}

fn internal(error: &dyn std::error::Error) -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "Internal error",
        format!("the profile cannot be made: {error}"),
    )
}

/// Returns when the recording is to end.
async fn wait(call: &Call, duration: Duration) {
    let end = Instant::now() + duration;
    let mut look = tokio::time::interval(LOOK_PERIOD);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    call.socket.watch_peer(true);
    while !call.selector.stopping.get() && !call.socket.has_peer_left() {
        tokio::select! {
            () = tokio::time::sleep_until(end) => break,
            _ = look.tick() => {}
        }
    }
    call.socket.watch_peer(false);
}

/// A profiler that runs. Whatever becomes of the request, it is stopped, and not on the selector's
/// thread.
struct Running {
    profiler: Option<Profiler>,
    shared: Arc<Shared>,
}

/// Where the answer's body goes.
type Wanted = (Request, oneshot::Sender<Vec<u8>>);

impl Running {
    /// Has the profiler stopped, and makes of its recording what is wanted.
    fn finish(&mut self, wanted: Option<Wanted>) {
        if let Some(profiler) = self.profiler.take() {
            let shared = Arc::clone(&self.shared);
            let work = Box::new(move || finish(&shared, profiler, wanted));
            self.shared
                .env
                .spawner
                .spawn(Arc::new(Finishing { work: NamedMutex::new("profile", Some(work)) }));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish(None);
    }
}

/// Once, in the background.
struct Finishing {
    work: NamedMutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Task for Finishing {
    fn name(&self) -> &str {
        "profile"
    }

    fn step(&self) -> spawner::Step {
        let work = self.work.lock().take();
        if let Some(work) = work {
            work();
        }
        spawner::Step::Finished
    }

    fn is_background(&self) -> bool {
        true
    }
}

fn finish(shared: &Shared, profiler: Profiler, wanted: Option<Wanted>) {
    let mut recording = profiler.stop();
    shared.log.event(
        Level::Info,
        "profile_recorded",
        &[
            ("duration_ms", &(recording.facts.duration_ns / 1_000_000)),
            ("sample_count", &recording.samples.len()),
            ("dropped_count", &recording.facts.dropped_count),
            ("frame_count", &recording.frames.len()),
        ],
    );
    let Some((request, sender)) = wanted else {
        return;
    };
    let is_left_to_client = request.format == Format::Kprof && request.known.can_name(&recording);
    if !is_left_to_client {
        for problem in symbols::resolve(&mut recording).problems {
            let fields: [(&str, &dyn Display); 1] = [("problem", &problem)];
            shared.log.event(Level::Warn, "profile_without_names", &fields);
        }
    }
    let bytes = match request.format {
        Format::Html => render::html(&recording).into_bytes(),
        Format::Kprof => recording::encode(&recording),
        Format::Pprof => render::pprof(&recording),
        Format::Collapsed(kind) => render::collapsed(&recording, kind).into_bytes(),
    };
    // Nobody wants it any more where the client has gone.
    drop(sender.send(bytes));
    drop(recording);
    symbols::give_back();
}
