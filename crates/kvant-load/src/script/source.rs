//! A thread's source of requests: calls the script of its own state.
//!
//! 1. What is sent is what the script returned, byte for byte.
//! 2. The requests in it are counted exactly, each time: text that is not what `wrk.format`
//!    returned is read for its boundaries, unless it is the same as the last.
//! 3. An error of the script is an error of the run.

use super::batch::{self, Malformed};
use super::classify::{self, Classifier};
use super::response::Response;
use super::state::{self, State, TagTable};
use super::thread::ThreadShared;
use crate::op::{OpId, OpNames};
use crate::source::{Batch, Expected, RequestSource, ResponseView};
use crate::target::{Address, Target};
use kvant_base::{Error, Result};
use mlua::{BString, Function, Table};
use std::sync::Arc;
use std::time::Duration;

/// Longest time that `delay()` is taken for, in milliseconds: a day.
const DELAY_MAX_MS: f64 = 86_400_000.0;

/// Calls a script.
pub(super) struct ScriptSource {
    state: Arc<State>,
    shared: Arc<ThreadShared>,
    requests: Requests,
    response: Option<Response>,
    delay: Option<Function>,
}

enum Requests {
    /// The script makes none: always the same, by target.
    Prebuilt(Vec<Made>),
    /// The script makes them.
    Called(Box<Caller>),
}

/// Text with the requests in it.
#[derive(Default)]
struct Made {
    bytes: BString,
    requests: Vec<Expected>,
    /// It is what `wrk.format` returned.
    is_single: bool,
}

/// What a close look at a text came to.
pub(super) struct Verified {
    pub(super) request_count: usize,
    /// What its reader should know.
    pub(super) warning: Option<String>,
}

/// Calls `request()`.
struct Caller {
    state: Arc<State>,
    request: Function,
    last: Made,
    reader: Reader,
    /// What a target sets in `wrk`, by target; empty when there is only one.
    targets: Vec<Table>,
    target: usize,
}

/// Says what kinds of requests a text has.
struct Reader {
    classifier: Classifier,
    tags: TagTable,
    /// What was in `tags` when last looked at.
    known_tags: Vec<OpId>,
    /// The tag that the last text was read with.
    last_tag: usize,
}

impl ScriptSource {
    /// The source of the thread `shared`, whose state has been initialized.
    pub(super) fn new(
        state: &Arc<State>,
        shared: &Arc<ThreadShared>,
        targets: &[Target],
        ops: &OpNames,
    ) -> Result<ScriptSource> {
        let mut caller = Caller::new(state, targets, ops)?;
        // Decided once, as in wrk: what `request` becomes later is called, but not found where
        // there was none.
        let requests = if state.defines("request")? {
            Requests::Called(Box::new(caller))
        } else {
            let made = (0..targets.len()).map(|target| {
                caller.make(target)?;
                Ok(std::mem::take(&mut caller.last))
            });
            Requests::Prebuilt(made.collect::<Result<_>>()?)
        };
        Ok(ScriptSource {
            requests,
            response: if state.defines("response")? { Some(Response::new(state)?) } else { None },
            delay: if state.defines("delay")? { Some(state.entry("delay")?) } else { None },
            state: Arc::clone(state),
            shared: Arc::clone(shared),
        })
    }
}

impl ScriptSource {
    /// Whether no Lua runs for a request.
    pub(super) fn is_static(&self) -> bool {
        matches!(self.requests, Requests::Prebuilt(_))
    }

    /// Reads a text closely, made for this if the script makes them.
    pub(super) fn verify(&mut self) -> Result<Verified> {
        let made = match &mut self.requests {
            Requests::Prebuilt(made) => &made[0],
            Requests::Called(caller) => {
                caller.make(0)?;
                &caller.last
            }
        };
        let odd_header = batch::odd_header(&made.bytes);
        match check(&made.bytes) {
            // One request is meant, whatever a server takes it for.
            Err(_) if made.is_single && odd_header.is_some() => {}
            checked => {
                checked
                    .map_err(|malformed| malformed_request(&self.state, &malformed, &made.bytes))?;
            }
        }
        let warning = odd_header.map(|(name, odd)| {
            format!(
                "request() returned the header `{name}` with the control character {odd:?}: it is sent as it is, as wrk2 \
                 sends it, and servers may refuse it"
            )
        });
        Ok(Verified { request_count: made.requests.len(), warning })
    }
}

/// Reads `bytes` closely: all first lines, all boundaries.
fn check(bytes: &[u8]) -> std::result::Result<(), Malformed> {
    let check_line = |start: usize| {
        batch::check_first_line(&bytes[start..]).map_err(|malformed| Malformed {
            offset_bytes: start + malformed.offset_bytes,
            ..malformed
        })
    };
    let mut first_lines = Ok(());
    let boundaries =
        batch::for_each_request(bytes, |start, _| first_lines = first_lines.and(check_line(start)));
    // What is no request has no boundaries either: say the first thing that is wrong.
    check_line(batch::after_line_breaks(bytes, 0)).and(first_lines).and(boundaries)
}

fn malformed_request(state: &State, malformed: &Malformed, bytes: &[u8]) -> Error {
    state.failed("request", &mlua::Error::RuntimeError(malformed.describe(bytes)))
}

impl RequestSource for ScriptSource {
    fn next(&mut self, target: usize) -> Result<Batch<'_>> {
        let made = match &mut self.requests {
            Requests::Prebuilt(made) => &made[target],
            Requests::Called(caller) => {
                caller.make(target)?;
                &caller.last
            }
        };
        Ok(Batch { bytes: &made.bytes, requests: &made.requests })
    }

    fn address(&self) -> Option<Address> {
        self.shared.chosen_address()
    }

    fn observes(&self) -> bool {
        self.response.is_some()
    }

    fn observe(&mut self, view: &ResponseView<'_>) -> Result<()> {
        let Some(response) = &self.response else {
            return Ok(());
        };
        response.call(&self.state.lua, view).map_err(|error| self.state.failed("response", &error))
    }

    fn delays(&self) -> bool {
        self.delay.is_some()
    }

    fn delay(&mut self) -> Result<Duration> {
        let Some(delay) = &self.delay else {
            return Ok(Duration::ZERO);
        };
        let delay_ms: f64 = delay.call(()).map_err(|error| self.state.failed("delay", &error))?;
        // Negative, or no number at all: none.
        let delay_ms = if delay_ms > 0.0 { delay_ms.min(DELAY_MAX_MS) } else { 0.0 };
        Ok(Duration::from_secs_f64(delay_ms / 1e3))
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }
}

impl Caller {
    fn new(state: &Arc<State>, targets: &[Target], ops: &OpNames) -> Result<Caller> {
        let tables = if targets.len() > 1 { targets } else { &[] };
        let tables = tables.iter().map(|target| state::target_table(&state.lua, target));
        Ok(Caller {
            request: state.entry("request")?,
            last: Made::default(),
            reader: Reader {
                classifier: Classifier::new(ops.clone()),
                tags: Arc::clone(&state.tags),
                known_tags: Vec::new(),
                last_tag: 0,
            },
            targets: tables
                .collect::<mlua::Result<_>>()
                .map_err(|error| state.failed("request", &error))?,
            target: 0,
            state: Arc::clone(state),
        })
    }

    /// Makes the next text.
    fn make(&mut self, target: usize) -> Result<()> {
        if target != self.target {
            let (from, to) = (&self.targets[self.target], &self.targets[target]);
            self.state.call::<()>("retarget", (from, to))?;
            self.target = target;
        }
        let called = self.request.call::<(BString, u32)>(());
        let (bytes, code) = called.map_err(|error| self.state.failed("request", &error))?;
        let read = self.reader.read(&bytes, code, &mut self.last);
        self.last.bytes = bytes;
        read.map_err(|malformed| malformed_request(&self.state, &malformed, &self.last.bytes))
    }
}

impl Reader {
    /// Writes to `last.requests` what is in `bytes`, where `last` has the text before it.
    fn read(
        &mut self,
        bytes: &[u8],
        code: u32,
        last: &mut Made,
    ) -> std::result::Result<(), Malformed> {
        let is_single = code & 1 == 1;
        let tag = (code >> 1) as usize;
        if is_single {
            let expected = self.expected(bytes, tag);
            last.requests.clear();
            last.requests.push(expected);
            last.is_single = true;
            self.last_tag = tag;
            return Ok(());
        }
        if tag == self.last_tag && !last.requests.is_empty() && *last.bytes == *bytes {
            return Ok(());
        }
        self.last_tag = tag;
        last.is_single = false;
        last.requests.clear();
        batch::for_each_request(bytes, |_, request| last.requests.push(self.expected(request, tag)))
    }

    fn expected(&mut self, request: &[u8], tag: usize) -> Expected {
        if tag == 0 {
            return self.classifier.classify(request);
        }
        if tag > self.known_tags.len() {
            self.known_tags.clone_from(&self.tags.lock());
        }
        Expected { op: self.known_tags[tag - 1], is_head: classify::is_head(request) }
    }
}
