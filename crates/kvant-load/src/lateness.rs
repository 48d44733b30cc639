//! How much of the response times is the generator's own lateness, for requests of about the same
//! response time.
//!
//! The 99th percentile of the send lag does not say that the slowest requests were slow for it:
//! both are recorded together here, so that a percentile of the response time can be divided
//! between generator and server.
//!
//! Invariant: recording allocates nothing.

/// Bits of a response time that tell classes apart: eight in each power of two, so that a class is
/// at most an eighth wide.
const CLASS_BITS: u32 = 3;
/// Classes for all numbers of 64 bits.
const CLASSES: usize = (64 - CLASS_BITS as usize + 1) << CLASS_BITS;

/// Sums by class of response time.
#[derive(Clone, Debug)]
pub struct Lateness {
    classes: Vec<Class>,
    is_empty: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    response_ns: u64,
    lag_ns: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { classes: vec![Class::default(); CLASSES], is_empty: true }
    }
}

impl Lateness {
    /// A request: its response time, and the part of it by which the generator was late.
    #[inline]
    pub fn record_ns(&mut self, response_ns: u64, lag_ns: u64) {
        let class = &mut self.classes[class_of(response_ns)];
        class.response_ns += response_ns;
        class.lag_ns += lag_ns.min(response_ns);
        self.is_empty = false;
    }

    /// Adds what another thread, or another interval, recorded.
    pub fn add(&mut self, other: &Lateness) {
        if other.is_empty {
            return;
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.response_ns += theirs.response_ns;
            mine.lag_ns += theirs.lag_ns;
        }
        self.is_empty = false;
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty {
            self.classes.fill(Class::default());
            self.is_empty = true;
        }
    }

    /// How much of a response time of `response_ns` is the generator's, by the requests that took
    /// about as long.
    pub fn of_response_ns(&self, response_ns: u64) -> u64 {
        let Class { response_ns: all_ns, lag_ns } = self.classes[class_of(response_ns)];
        if all_ns == 0 {
            return 0;
        }
        (response_ns as f64 * (lag_ns as f64 / all_ns as f64)).round() as u64
    }
}

fn class_of(ns: u64) -> usize {
    let power = ns.max(1).ilog2();
    if power < CLASS_BITS {
        return ns as usize;
    }
    let digits = (ns >> (power - CLASS_BITS)) as usize & ((1 << CLASS_BITS) - 1);
    ((power - CLASS_BITS + 1) as usize) << CLASS_BITS | digits
}

#[cfg(test)]
mod tests;
