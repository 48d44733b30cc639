//! A source that repeats one request. The bytes of a batch are built once for each target.

use super::{Batch, Expected, RequestSource};
use crate::op::OpId;
use kvant_base::Result;

/// Sends one request for each target.
#[derive(Clone, Debug)]
pub struct FixedSource {
    bytes: Vec<Vec<u8>>,
    expected: Vec<Expected>,
}

impl FixedSource {
    /// Sends `requests[target]`, the bytes of one request, `pipeline_count` (at least 1) at a time.
    /// `is_head` says whether they are `HEAD` requests.
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
