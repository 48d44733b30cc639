//! What a run must have reached: `p99<5ms`.
