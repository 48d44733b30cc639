//! How many requests may be in flight at a node, and whether it answers.
//!
//! The limit follows what requests cost there. While even the quickest answer of an interval took
//! longer than the target, requests queue at the node, and the limit falls below the number that
//! was in flight. Otherwise it rises, up to [`IN_FLIGHT_MAX`]. The target is a multiple of the
//! quickest answer of the last seconds: distance is not overload.
//!
//! Only single records that need no more than a quorum are measured. Time-outs of others say
//! something about other nodes. While none are in flight, the limit rises as others are done: what
//! made it fall has ended.
//!
//! A node that owes answers and has given none for [`SILENT_NS`] is silent: others are asked first.
//!
//! Pure: no clock, no threads; every call passes the time.

/// The most requests in flight at a node; the limit where it does not adapt.
pub(crate) const IN_FLIGHT_MAX: u32 = 4_096;
/// The least limit: so few requests are not what makes a node slow.
pub(crate) const IN_FLIGHT_MIN: u32 = 64;
/// A pause of a collector of garbage is shorter, mostly.
pub(crate) const SILENT_NS: u64 = 250_000_000;

/// Queues shorter than this are not worth refusing requests.
const TARGET_NS_MIN: u64 = 25_000_000;
/// Beyond this multiple of the quickest answer, a request waits for others most of its time.
const TARGET_MULTIPLE: u64 = 4;
const INTERVAL_NS: u64 = 100_000_000;
/// The quickest answer of this span and the one before counts.
const SPAN_NS: u64 = 10_000_000_000;

#[derive(Debug)]
pub(crate) struct Gate {
    adapts: bool,
    limit: u32,
    in_flight: u32,
    /// Of these, the ones that are measured, and since when none of them has been answered.
    owed: u32,
    owed_since_ns: u64,
    interval: Interval,
    span_begin_ns: u64,
    quickest_ns: u64,
    quickest_before_ns: u64,
}

#[derive(Debug)]
struct Interval {
    begin_ns: u64,
    quickest_ns: u64,
    in_flight_max: u32,
}

/// How an attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The node has done it.
    Done,
    /// The node has answered with an error.
    Failed,
    /// The node has not answered, or is not waited for any more.
    Unanswered,
}

impl Gate {
    pub(crate) fn new(adapts: bool) -> Gate {
        Gate {
            adapts,
            limit: IN_FLIGHT_MAX,
            in_flight: 0,
            owed: 0,
            owed_since_ns: 0,
            interval: Interval::begin(0, 0),
            span_begin_ns: 0,
            quickest_ns: u64::MAX,
            quickest_before_ns: u64::MAX,
        }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether the node may get another request.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < self.limit
    }

    pub(crate) fn is_silent(&self, now_ns: u64) -> bool {
        self.owed > 0 && now_ns.saturating_sub(self.owed_since_ns) > SILENT_NS
    }

    /// Notes an attempt that is sent.
    pub(crate) fn begin(&mut self, is_measured: bool, now_ns: u64) {
        self.in_flight += 1;
        self.interval.in_flight_max = self.interval.in_flight_max.max(self.in_flight);
        if is_measured {
            if self.owed == 0 {
                self.owed_since_ns = now_ns;
            }
            self.owed += 1;
        }
    }

    /// Notes the end of an attempt that was begun at `begin_ns`.
    pub(crate) fn end(&mut self, is_measured: bool, ending: Ending, begin_ns: u64, now_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if !is_measured {
            if ending == Ending::Done && self.owed == 0 {
                self.adapt_at_end(now_ns);
            }
            return;
        }
        self.owed = self.owed.saturating_sub(1);
        if ending != Ending::Unanswered {
            self.owed_since_ns = now_ns;
        }
        if ending == Ending::Done {
            self.measure(now_ns.saturating_sub(begin_ns), now_ns);
        }
    }

    fn measure(&mut self, time_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(self.span_begin_ns) >= SPAN_NS {
            self.span_begin_ns = now_ns;
            self.quickest_before_ns = self.quickest_ns;
            self.quickest_ns = u64::MAX;
        }
        self.quickest_ns = self.quickest_ns.min(time_ns);
        self.interval.quickest_ns = self.interval.quickest_ns.min(time_ns);
        self.adapt_at_end(now_ns);
    }

    /// Adapts the limit if the interval has ended.
    fn adapt_at_end(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.interval.begin_ns) >= INTERVAL_NS {
            self.adapt();
            self.interval = Interval::begin(now_ns, self.in_flight);
        }
    }

    fn adapt(&mut self) {
        if !self.adapts {
            return;
        }
        let quickest_ns = self.quickest_ns.min(self.quickest_before_ns);
        let target_ns = TARGET_NS_MIN.max(quickest_ns.saturating_mul(TARGET_MULTIPLE));
        let is_measured = self.interval.quickest_ns != u64::MAX;
        self.limit = if is_measured && self.interval.quickest_ns > target_ns {
            (self.interval.in_flight_max.min(self.limit) / 4 * 3).max(IN_FLIGHT_MIN)
        } else {
            (self.limit + self.limit / 8).min(IN_FLIGHT_MAX)
        };
    }
}

impl Interval {
    fn begin(begin_ns: u64, in_flight: u32) -> Interval {
        Interval { begin_ns, quickest_ns: u64::MAX, in_flight_max: in_flight }
    }
}

#[cfg(test)]
mod tests;
