//! The exact queue: what response times follow from arrivals and service times that really were.

use std::ops::Range;

/// Arrival, service time, and the time at which the response was written, of a request: in
/// nanoseconds of the monotonic clock.
pub(crate) type Served = (u64, u64, u64);

/// Response times, ascending, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Responses(Vec<u64>);

impl Responses {
    pub(crate) fn new(mut response_ns: Vec<u64>) -> Responses {
        response_ns.sort_unstable();
        Responses(response_ns)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn mean_ns(&self) -> f64 {
        self.0.iter().map(|ns| *ns as f64).sum::<f64>() / self.0.len() as f64
    }

    /// The least value that `part` of all do not exceed.
    pub(crate) fn quantile_ns(&self, part: f64) -> f64 {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1] as f64
    }
}

/// The response times of the requests that arrived in measured times: by Lindley's recursion over
/// arrivals and service times, and as the server wrote them. Like the generator, both count a
/// request that is pending at the end of such a time with its age.
pub(crate) fn within(served: &[Served], measured: &[Range<u64>]) -> (Responses, Responses) {
    let mut in_order = served.to_vec();
    in_order.sort_unstable();
    let (mut exact, mut written) = (Vec::new(), Vec::new());
    let mut due_ns = 0;
    for (arrival_ns, service_ns, written_ns) in in_order {
        due_ns = arrival_ns.max(due_ns) + service_ns;
        if let Some(time) = measured.iter().find(|time| time.contains(&arrival_ns)) {
            exact.push(due_ns.min(time.end) - arrival_ns);
            written.push(written_ns.min(time.end) - arrival_ns);
        }
    }
    (Responses::new(exact), Responses::new(written))
}
