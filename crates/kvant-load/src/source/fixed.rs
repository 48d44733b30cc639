//! The same request again and again.
//!
//! Costs nothing per request: the bytes are made once, for each target, and pipelined batches are
//! repeated in them.

use super::{Batch, Expected, RequestSource};
use crate::op::OpId;
use kvant_base::Result;

/// One request for each target.
#[derive(Clone, Debug)]
pub struct FixedSource {
    /// By target: the batch.
    bytes: Vec<Vec<u8>>,
    /// What comes back, the same for all targets.
    expected: Vec<Expected>,
}

impl FixedSource {
    /// Sends `requests[target]` (complete bytes of one request, as [`crate::request`] makes them),
    /// `pipeline_count` (at least 1) of them at a time. `is_head` says that they are `HEAD`
    /// requests.
    pub fn new(
        requests: &[Vec<u8>],
        op: OpId,
        is_head: bool,
        pipeline_count: usize,
    ) -> FixedSource {
        let pipeline_count = pipeline_count.max(1);
        FixedSource {
            bytes: requests.iter().map(|bytes| bytes.repeat(pipeline_count)).collect(),
            expected: vec![Expected { op, is_head }; pipeline_count],
        }
    }
}

impl RequestSource for FixedSource {
    fn next(&mut self, target: usize) -> Result<Batch<'_>> {
        Ok(Batch { bytes: &self.bytes[target], requests: &self.expected })
    }
}
