//! Whether writes succeed, for monitoring.
//!
//! A write that fails says so to its client. Here it counts until a write succeeds, or for
//! [`KEPT_NS`]: a load balancer that sends no more writes because of the failure would never see
//! one succeed. Flushes and compactions are retried, so their failures count until they succeed,
//! but only while writes are held back because of them.

use super::core::Core;
use crate::maintenance::Maintenance;
use kvant_base::Error;

/// How long a failed write counts when no other follows.
const KEPT_NS: u64 = 30_000_000_000;

/// Whether writes succeed.
#[derive(Clone, Debug)]
pub enum WriteHealth {
    /// Yes, as far as is known.
    Good,
    /// The disk is full: writes that need space are refused until space has returned.
    NoSpace,
    /// The last ones failed, with this error. The next may succeed.
    Failing(Error),
    /// None will succeed before the database is opened again: the first cause.
    Fenced(Error),
}

impl Core {
    pub(crate) fn write_health(&self) -> WriteHealth {
        if let Some(cause) = self.context.fence_cause() {
            return WriteHealth::Fenced(cause.clone());
        }
        let now_ns = self.context.env.clock.monotonic_ns();
        if let Some((at_ns, error)) = self.log.env.failure.get()
            && now_ns.saturating_sub(at_ns) < KEPT_NS
        {
            return WriteHealth::Failing(error);
        }
        let Maintenance { flushes, compactions, .. } = &*self.maintenance;
        if self.admission.gate.stall().is_some()
            && let Some((_, error)) = flushes.last_failure.get().or(compactions.last_failure.get())
        {
            return WriteHealth::Failing(error);
        }
        // As a put does, this probes whether space has returned.
        match self.admission.admit_to_disk(true) {
            Ok(()) => WriteHealth::Good,
            Err(_) => WriteHealth::NoSpace,
        }
    }
}
