//! Slows all stages of a subject but one down for the phases of an attempt.
//!
//! Invariants:
//! 1. The subject is asked when all connections are open and a phase is to begin, so that the
//!    warm-up is slowed down as well.
//! 2. A phase that outlasted what was asked for, or whose subject refused, is no measurement; the
//!    record says why.
//!
//! Threads: that of the load's owner.

use super::context::Context;
use super::http::Server;
use super::subject::Running;
use super::tasks::{self, Order};
use crate::record::SpedUp;
use kvant_base::lock::NamedMutex;
use kvant_base::tag::Stage;
use kvant_env::Clock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for a response, and for the end of what was asked for before.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Time between two requests while the one before goes on.
const RETRY: Duration = Duration::from_millis(5);
/// What is asked for beyond the length of a phase.
const SLACK: Duration = Duration::from_millis(100);
const CONFLICT: u16 = 409;

/// Slows a subject down, phase by phase. Shared with the load that begins the phases.
pub(super) struct Slowing(NamedMutex<Inner>);

struct Inner {
    server: Option<Server>,
    clock: Arc<dyn Clock>,
    stage: Stage,
    length: Duration,
    phases: Vec<SpedUp>,
    /// Phases that have begun.
    begun_count: usize,
    /// When the subject goes on as it is.
    until_ns: u64,
}

impl Slowing {
    /// `None` if the case speeds nothing up.
    pub(super) fn new(
        context: &Context<'_>,
        order: &Order<'_>,
        running: &Running,
    ) -> Option<Arc<Slowing>> {
        let phase = &order.resolved.phase;
        let inner = Inner {
            server: running.server.clone(),
            clock: Arc::clone(&context.env.clock),
            stage: phase.sped_up?,
            length: phase.warmup + phase.duration + SLACK,
            phases: tasks::sped_up(order),
            begun_count: 0,
            until_ns: 0,
        };
        Some(Arc::new(Slowing(NamedMutex::new("lab_slowing", inner))))
    }

    /// The next phase is to begin.
    pub(super) fn begin(&self) {
        let mut inner = self.0.lock();
        let index = inner.begun_count;
        inner.begun_count += 1;
        if let Some(phase) = inner.phases.get(index).cloned() {
            let problem = inner.ask(&phase).err();
            inner.phases[index].problem = problem;
        }
    }

    /// The measured time of the phase ended.
    pub(super) fn end(&self, end_ns: u64) {
        let mut inner = self.0.lock();
        let has_outlasted = end_ns > inner.until_ns;
        let index = inner.begun_count.saturating_sub(1);
        if let Some(phase) = inner.phases.get_mut(index)
            && has_outlasted
        {
            phase.problem.get_or_insert_with(|| "the phase lasted longer than planned".to_owned());
        }
    }

    /// The phases that have begun.
    pub(super) fn phases(&self) -> Vec<SpedUp> {
        let inner = self.0.lock();
        inner.phases.iter().take(inner.begun_count).cloned().collect()
    }
}

impl Inner {
    fn ask(&mut self, phase: &SpedUp) -> Result<(), String> {
        let server = self.server.as_ref().ok_or("single requests to it are not possible")?;
        let path = path(self.stage, phase, self.length);
        let give_up = Instant::now() + WAIT_MAX;
        let response = loop {
            let asked_ns = self.clock.monotonic_ns();
            let response = server.request("POST", &path, WAIT_MAX);
            let response = response.map_err(|error| error.to_string())?;
            if response.status != CONFLICT || Instant::now() >= give_up {
                self.until_ns = asked_ns + self.length.as_nanos() as u64;
                break response;
            }
            std::thread::sleep(RETRY);
        };
        match response.status {
            200..=299 => Ok(()),
            _ => Err(response.refusal()),
        }
    }
}

/// What the subject is asked for: all of its work but the stage is slowed down.
fn path(stage: Stage, phase: &SpedUp, length: Duration) -> String {
    let percent = phase.added_percent();
    let others = Stage::ALL.into_iter().filter(|other| *other != stage && percent > 0.0);
    let slow: Vec<String> = others.map(|other| format!("{}:{percent:.2}", other.name())).collect();
    let slow = if slow.is_empty() { String::new() } else { format!("&slow={}", slow.join(",")) };
    format!("/v0/admin/what-if?for={}ms{slow}", length.as_millis())
}
