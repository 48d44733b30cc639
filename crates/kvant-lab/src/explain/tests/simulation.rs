//! A simulated server of known behaviour: one queue, requests at random times, and pauses.

use crate::explain::evidence::{Evidence, MachineWindow, OperationWindow, Phase, Request, Window};
use crate::record::EventFacts;
use kvant_env::rng::Rng;
use std::collections::BTreeMap;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MS: u64 = 1_000_000;
const WINDOW_NS: u64 = 100 * MS;
/// Slow requests kept of each second.
const KEPT: usize = 4;

/// A server and its load.
#[derive(Clone)]
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    pub(crate) length_ns: u64,
    pub(crate) rate_per_s: u64,
    pub(crate) service_ns: u64,
    /// When it serves nothing: begin and length.
    pub(crate) pauses: Vec<(u64, u64)>,
    /// Events that it marks.
    pub(crate) events: Vec<EventFacts>,
    /// Whether it tells phases.
    pub(crate) tells_phases: bool,
    /// What is changed of each request, after the queue.
    pub(crate) special: fn(&mut Request, &mut Rng),
}

impl Default for Simulation {
    fn default() -> Simulation {
        Simulation {
            seed: 1,
            length_ns: 60 * SECOND,
            rate_per_s: 1_000,
            service_ns: 200_000,
            pauses: Vec::new(),
            events: Vec::new(),
            tells_phases: false,
            special: |_, _| {},
        }
    }
}

/// An exponentially distributed number.
pub(crate) fn exponential(mean: u64, rng: &mut Rng) -> u64 {
    let uniform = (rng.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
    (-uniform.ln() * mean as f64) as u64
}

pub(crate) fn event(kind: &str, start_ns: u64, length_ns: u64) -> EventFacts {
    EventFacts {
        kind: kind.to_owned(),
        start_ns,
        end_ns: Some(start_ns + length_ns),
        fields: BTreeMap::new(),
    }
}

impl Simulation {
    /// All requests, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut rng = Rng::new(self.seed);
        let mut at_ns = 0;
        let mut free_ns = 0;
        let mut requests = Vec::new();
        loop {
            at_ns += exponential(SECOND / self.rate_per_s, &mut rng);
            if at_ns >= self.length_ns {
                return requests;
            }
            let mut begin_ns = at_ns.max(free_ns);
            for (from, length) in &self.pauses {
                if (*from..from + length).contains(&begin_ns) {
                    begin_ns = from + length;
                }
            }
            let service_ns = self.service_ns / 2 + exponential(self.service_ns / 2, &mut rng);
            free_ns = begin_ns + service_ns;
            let mut request = Request {
                operation: "get".to_owned(),
                status: 200,
                key: format!("key{}", rng.below(1000)),
                start_ns: at_ns,
                sent_bytes: 100,
                ..Request::default()
            };
            request.phases_ns[Phase::Queue as usize] = begin_ns - at_ns;
            request.phases_ns[Phase::Storage as usize] = service_ns;
            (self.special)(&mut request, &mut rng);
            request.end_ns = at_ns + request.phases_ns.iter().sum::<u64>();
            requests.push(request);
        }
    }

    pub(crate) fn evidence(&self) -> Evidence {
        evidence_of(&self.requests(), self.length_ns, self.events.clone(), self.tells_phases)
    }
}

/// What a server would tell of these requests.
pub(crate) fn evidence_of(
    requests: &[Request],
    length_ns: u64,
    events: Vec<EventFacts>,
    tells_phases: bool,
) -> Evidence {
    let count = (length_ns / WINDOW_NS) as usize;
    let mut windows: Vec<Window> = (0..count)
        .map(|at| Window {
            start_ns: at as u64 * WINDOW_NS,
            length_ns: WINDOW_NS,
            operations: BTreeMap::new(),
            machine: MachineWindow::default(),
        })
        .collect();
    let mut values: BTreeMap<(usize, &str), BTreeMap<u64, u64>> = BTreeMap::new();
    let mut by_second: BTreeMap<u64, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        let at = (request.end_ns / WINDOW_NS) as usize;
        let Some(window) = windows.get_mut(at) else { continue };
        let of = window.operations.entry(request.operation.clone()).or_default();
        let OperationWindow { count, failed, phases_ns, .. } = of;
        *count += 1;
        *failed += u64::from(request.status >= 500);
        if tells_phases {
            let sums = phases_ns.get_or_insert_default();
            sums.iter_mut().zip(request.phases_ns).for_each(|(sum, ns)| *sum += ns);
            of.block_read_ns += request.block_read_ns;
            by_second.entry(request.end_ns / SECOND).or_default().push(request);
        }
        // Buckets of two per cent.
        let bucket = (request.total_ns() as f64).ln() / 1.02f64.ln();
        let value = 1.02f64.powf(bucket.ceil()) as u64;
        *values.entry((at, &request.operation)).or_default().entry(value).or_default() += 1;
    }
    for ((at, operation), values) in values {
        let of = windows[at].operations.get_mut(operation).expect("counted above");
        of.values = values.into_iter().collect();
    }
    let mut kept = Vec::new();
    for mut requests in by_second.into_values() {
        requests.sort_by_key(|request| std::cmp::Reverse(request.total_ns()));
        kept.extend(requests.into_iter().take(KEPT).cloned());
    }
    Evidence {
        source: "simulation".to_owned(),
        cpu_count: 2,
        windows,
        events,
        requests: kept,
        ..Evidence::default()
    }
}
