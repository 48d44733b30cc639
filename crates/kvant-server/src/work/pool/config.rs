//! Settings of a pool.

use crate::admission::Class;
use crate::config::{Overload, ServerConfig};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolConfig {
    /// At least 1.
    pub(crate) workers: usize,
    /// Requests that may wait.
    pub(crate) queue_capacity: usize,
    pub(crate) overload: Overload,
    pub(crate) queue_wait_max_ns: u64,
}

impl From<&ServerConfig> for PoolConfig {
    fn from(config: &ServerConfig) -> PoolConfig {
        PoolConfig {
            workers: config.workers,
            queue_capacity: config.queue_capacity,
            overload: config.overload,
            queue_wait_max_ns: u64::try_from(config.queue_wait_max.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl PoolConfig {
    /// Requests of all classes together beyond which none of this class is admitted: a flood of
    /// cheap writes leaves room for reads, which go before them.
    pub(crate) fn capacity_of(&self, class: Class) -> usize {
        let share_per_cent = match (self.overload, class) {
            (Overload::Adaptive, Class::Write) => 90,
            (Overload::Adaptive, Class::Range) => 70,
            _ => 100,
        };
        self.queue_capacity * share_per_cent / 100
    }
}
