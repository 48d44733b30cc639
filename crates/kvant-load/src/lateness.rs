//! The generator's lateness as a part of the response time, by response time.
//!
//! The 99th percentile of the send lag does not show whether it delayed the slowest requests. Both
//! are recorded together here, so that a percentile of the response time can be divided between
//! generator and server.
//!
//! Invariant: recording allocates nothing.

/// Each power of two has eight classes, each at most an eighth of its values wide.
const CLASS_BITS: u32 = 3;
/// Classes of all 64-bit numbers.
const CLASSES: usize = (64 - CLASS_BITS as usize + 1) << CLASS_BITS;

/// Sums of response time and lateness, by class of response time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    classes: Vec<Class>,
    is_empty: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// Records a request: its response time, and by how much the generator was late.
    #[inline]
    pub fn record_ns(&mut self, response_ns: u64, lag_ns: u64) {
        let class = &mut self.classes[class_of(response_ns)];
        class.response_ns += response_ns;
        class.lag_ns += lag_ns.min(response_ns);
        self.is_empty = false;
    }

    /// Adds the record of another thread or interval.
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

    /// Resets everything; keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty {
            self.classes.fill(Class::default());
            self.is_empty = true;
        }
    }

    /// The generator's part of `response_ns`, as in the requests that took about as long.
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
