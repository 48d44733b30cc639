//! `POST
//! /v0/profile[?event=..][&duration=..][&format=..][&rate=..][&engine=..][&kind=..][&known=..]`:
//! records a profile of the process, and responds with it.
//!
//! A recording ends after its duration, when the client closes its side of the connection, or when
//! the server stops. The response has what was recorded until then.
//!
//! Threads: the selector only waits. Starting, stopping, resolving symbols and encoding take
//! milliseconds to seconds: they run on threads of their own, the long part at low priority.

mod request;

use super::server_state::ServerState;
use crate::conn::{Call, RequestStep};
use crate::http::{Body, Exchange, Problem, Reply, Response};
use crate::work::Failure;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CACHE_CONTROL, HeaderValue};
use kvant_base::Level;
use kvant_base::lock::NamedMutex;
use kvant_env::{Task, spawner};
use kvant_profiler::collect::{CpuOptions, Options, Profiler, StartError};
use kvant_profiler::render::Format;
use kvant_profiler::{recording, symbols};
use request::ProfileRequest;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior};

/// How often a recording checks whether to end early.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// Samples take at most this share of the memory budget; later ones are dropped and counted. They
/// are not reserved in the budget: the block cache would shrink, and the profile would show its own
/// effect.
const MEMORY_SHARE: u64 = 16;
const SAMPLE_BYTES: u64 = size_of::<recording::Sample>() as u64;

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn start(server: &Arc<ServerState>, call: &Call, exchange: Exchange) -> RequestStep {
    let accept = exchange.reply.request_headers().get_all(ACCEPT);
    let request = ProfileRequest::read(exchange.uri.query(), accept);
    let mut reply = exchange.reply;
    match request {
        Ok(request) => {
            let (server, call) = (Arc::clone(server), call.clone());
            RequestStep::later(async move {
                match record(&server, &call, request, &mut reply).await {
                    Ok(response) => response,
                    Err(problem) => problem.respond(&mut reply),
                }
            })
        }
        Err(problem) => RequestStep::ready(problem.respond(&mut reply)),
    }
}

async fn record(
    server: &Arc<ServerState>,
    call: &Call,
    request: ProfileRequest,
    reply: &mut Reply,
) -> Result<Response, Problem> {
    let options = options(&request, server.memory.budget().limit_bytes());
    let profiler = {
        let (env, events) = (server.env.clone(), Arc::clone(&server.events));
        let start = move || Profiler::start(options, &env, Some(events));
        match tokio::task::spawn_blocking(start).await {
            Ok(started) => started.map_err(|error| not_started(&error))?,
            Err(error) => return Err(internal(&error)),
        }
    };
    let mut running = Running { profiler: Some(profiler), server: Arc::clone(server) };
    wait(call, request.duration).await;
    let format = request.format;
    let (sender, receiver) = oneshot::channel();
    running.finish(Some((request, sender)));
    let bytes = receiver.await.map_err(|error| internal(&error))?;
    let Some(held) = server.memory.hold(bytes.len() as u64, call.cx.config.queue_wait_max).await
    else {
        return Err(call.explain(&Failure::NoMemory));
    };
    let media_type = HeaderValue::from_static(format.media_type());
    let body = Body::reserved(Bytes::from(bytes), held);
    let mut response = reply.respond(StatusCode::OK, Some(&media_type), body);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
    Ok(response)
}

fn options(request: &ProfileRequest, memory_bytes: u64) -> Options {
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
        StartError::Refused(error) => Problem::internal(
            "io",
            "The system refused the profiler",
            format!("the system refused what the profiler needs: {error}"),
        ),
    }
}

fn internal(error: &dyn std::error::Error) -> Problem {
    let detail = format!("the profile cannot be made: {error}");
    Problem::internal("internal", "Internal error", detail)
}

/// Resolves when the recording has to end.
async fn wait(call: &Call, duration: Duration) {
    let end = Instant::now() + duration;
    let mut check = tokio::time::interval(CHECK_PERIOD);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    call.socket.watch_peer(true);
    while !call.cx.stopping.get() && !call.socket.has_peer_left() {
        tokio::select! {
            () = tokio::time::sleep_until(end) => break,
            _ = check.tick() => {}
        }
    }
    call.socket.watch_peer(false);
}

/// A running profiler. However the request ends, it is stopped, on another thread.
struct Running {
    profiler: Option<Profiler>,
    server: Arc<ServerState>,
}

/// How to encode the recording, and where to send it.
type Wanted = (ProfileRequest, oneshot::Sender<Vec<u8>>);

impl Running {
    /// Stops the profiler and encodes its recording, in the background.
    fn finish(&mut self, wanted: Option<Wanted>) {
        if let Some(profiler) = self.profiler.take() {
            let server = Arc::clone(&self.server);
            let work = Box::new(move || finish(&server, profiler, wanted));
            self.server
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

fn finish(server: &ServerState, profiler: Profiler, wanted: Option<Wanted>) {
    let mut recording = profiler.stop();
    server.log.event(
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
        for problem in symbols::resolve(&mut recording) {
            let fields: [(&str, &dyn Display); 1] = [("problem", &problem)];
            server.log.event(Level::Warn, "profile_without_names", &fields);
        }
    }
    // The receiver is gone if the client has disconnected.
    drop(sender.send(request.format.encode(&recording)));
    drop(recording);
    symbols::release_memory();
}
