//! The slowest requests, told one by one.
//!
//! Of one moment no more than three requests are told: a stall of a second would fill the list with
//! requests that say the same.

use super::evidence::{Evidence, Phase, Request};
use super::model::{Cause, Moment};
use super::suspects::Suspect;
use super::words::{clock, time};

const COUNT_MAX: usize = 10;
/// Requests of one moment.
const OF_MOMENT_MAX: usize = 3;
/// Requests whose ends are this near belong to one moment.
const MOMENT_NS: u64 = 1_000_000_000;
/// A phase that took less of a request is not told.
const PHASE_PART_MIN: f64 = 0.1;
/// What is shown around a request, as a part of its length.
const AROUND_PART: f64 = 0.5;

/// The slowest requests. Without kept requests, the longest response of the slowest windows.
pub(super) fn moments(evidence: &Evidence, suspects: &[Suspect]) -> Vec<Moment> {
    let of_windows;
    let requests = match evidence.requests.is_empty() {
        true => {
            of_windows = longest_of_windows(evidence);
            &of_windows
        }
        false => &evidence.requests,
    };
    let mut ordered: Vec<&Request> = requests.iter().collect();
    ordered.sort_by_key(|request| std::cmp::Reverse(request.total_ns()));
    let mut chosen: Vec<&Request> = Vec::new();
    for request in ordered {
        let near = chosen.iter().filter(|one| one.end_ns.abs_diff(request.end_ns) < MOMENT_NS);
        if chosen.len() < COUNT_MAX && near.count() < OF_MOMENT_MAX {
            chosen.push(request);
        }
    }
    chosen.into_iter().map(|request| moment(request, evidence, suspects)).collect()
}

fn longest_of_windows(evidence: &Evidence) -> Vec<Request> {
    let mut found = Vec::new();
    for window in &evidence.windows {
        for (operation, of) in &window.operations {
            let Some((longest_ns, _)) = of.values.last() else { continue };
            found.push(Request {
                operation: operation.clone(),
                start_ns: window.end_ns().saturating_sub(*longest_ns),
                end_ns: window.end_ns(),
                ..Request::default()
            });
        }
    }
    found
}

fn moment(request: &Request, evidence: &Evidence, suspects: &[Suspect]) -> Moment {
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        let (from_ns, to_ns) = request.phase_span_ns(phase);
        if to_ns > from_ns {
            phases.push((phase.name().to_owned(), from_ns - request.start_ns, to_ns - from_ns));
        }
    }
    let around_ns = (request.total_ns() as f64 * AROUND_PART) as u64;
    let (from_ns, to_ns) = (request.start_ns.saturating_sub(around_ns), request.end_ns + around_ns);
    let mut events: Vec<(String, i64, i64)> = Vec::new();
    for suspect in suspects {
        let near = suspect.spans_ns.iter().filter(|(from, to)| *from < to_ns && *to >= from_ns);
        for (from, to) in joined(near.copied()) {
            let since = |at: u64| at as i64 - request.start_ns as i64;
            events.push((suspect.cause.words(), since(from), since(to)));
        }
    }
    Moment {
        operation: request.operation.clone(),
        start_ns: request.start_ns,
        total_ns: request.total_ns(),
        phases,
        events,
        sentence: sentence(request, evidence, suspects),
    }
}

/// Spans that touch as one: windows of the machine follow each other.
fn joined(spans: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match joined.last_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn sentence(request: &Request, evidence: &Evidence, suspects: &[Suspect]) -> String {
    let at = clock(request.start_ns, evidence.wall_origin_ns);
    let total_ns = request.total_ns();
    let has_phases = request.phases_ns.iter().any(|ns| *ns > 0);
    let mut text = match (has_phases, request.key.as_str()) {
        (false, _) => format!(
            "A {} that ended by {} took {}.",
            request.operation,
            clock(request.end_ns, evidence.wall_origin_ns),
            time(total_ns)
        ),
        (true, "") => format!("A {} of {at} took {}", request.operation, time(total_ns)),
        (true, key) => {
            format!("A {} of key `{key}` at {at} took {}", request.operation, time(total_ns))
        }
    };
    let mut told: Vec<String> = Vec::new();
    for phase in Phase::ALL {
        let ns = request.phases_ns[phase as usize];
        if ns as f64 >= total_ns as f64 * PHASE_PART_MIN && ns > 0 {
            told.push(format!("{} of it {}", time(ns), doing(phase, request)));
        }
    }
    if has_phases {
        text += &if told.is_empty() { ".".to_owned() } else { format!(": {}.", told.join(", ")) };
        if request.status >= 400 {
            text += &format!(" The response was {}.", request.status);
        }
    }
    let telling: Vec<&Suspect> =
        suspects.iter().filter(|suspect| !suspect.is_always_there(evidence)).collect();
    let overlapping = overlaps(request, &telling);
    text += &match overlapping.as_slice() {
        [] => " Nothing that is known happened meanwhile.".to_owned(),
        some => format!(" It coincides with {}.", some.join(", ")),
    };
    text
}

/// What a request does in a phase.
fn doing(phase: Phase, request: &Request) -> String {
    match (phase, &request.stall) {
        (Phase::Selector, _) => "until the event loop came to it".to_owned(),
        (Phase::Body, _) => "until the client had sent the body".to_owned(),
        (Phase::Queue, Some(reason)) => format!("in the write stall `{reason}`"),
        (Phase::Queue, None) => "waiting for its turn at the storage".to_owned(),
        (Phase::Storage, _) if request.block_reads > 0 => {
            let plural = if request.block_reads == 1 { "" } else { "s" };
            format!("in the storage, with {} block{plural} read", request.block_reads)
        }
        (Phase::Storage, _) => "in the storage".to_owned(),
        (Phase::Answer, _) => {
            format!("until the response of {} bytes had left", request.sent_bytes)
        }
    }
}

/// Suspects during a request, the longest overlap first.
fn overlaps<'a>(request: &Request, suspects: &[&'a Suspect]) -> Vec<String> {
    let mut found: Vec<(u64, &'a Cause)> = Vec::new();
    for suspect in suspects {
        let overlap_ns: u64 = suspect
            .spans_ns
            .iter()
            .filter(|(from, to)| *from <= request.end_ns && *to >= request.start_ns)
            .map(|(from, to)| {
                (*to).min(request.end_ns).saturating_sub((*from).max(request.start_ns)).max(1)
            })
            .sum();
        if overlap_ns > 0 {
            found.push((overlap_ns, &suspect.cause));
        }
    }
    found.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let words = |(ns, cause): (u64, &Cause)| {
        format!("{} (for {})", cause.words(), time(ns.min(request.total_ns())))
    };
    found.into_iter().map(words).collect()
}

/// When each suspect was there, since the begin of the evidence.
pub(super) fn lanes(evidence: &Evidence, suspects: &[Suspect]) -> Vec<(String, Vec<(u64, u64)>)> {
    let lane = |suspect: &Suspect| lane(evidence, &suspect.cause.words(), &suspect.spans_ns);
    suspects.iter().filter_map(lane).collect()
}

/// The lane of what happened at `spans_ns`; `None` if nothing of it is within the windows.
pub(super) fn lane(
    evidence: &Evidence,
    name: &str,
    spans_ns: &[(u64, u64)],
) -> Option<(String, Vec<(u64, u64)>)> {
    let (first, last) = evidence.windows.first().zip(evidence.windows.last())?;
    let (from_ns, to_ns) = (first.start_ns, last.end_ns());
    let within = spans_ns.iter().filter(|(from, to)| *from < to_ns && *to >= from_ns);
    let clipped = within.map(|(from, to)| {
        ((*from).max(from_ns) - from_ns, (*to).min(to_ns).saturating_sub(from_ns))
    });
    let spans = joined(clipped);
    (!spans.is_empty()).then(|| (name.to_owned(), spans))
}
