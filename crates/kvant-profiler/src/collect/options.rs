//! What a session samples.

use kvant_base::wait::WaitKind;

/// What to sample. The default is everything.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPU time.
    pub cpu: Option<CpuOptions>,
    /// Allocations: mean number of bytes per sample.
    pub alloc_mean_bytes: Option<u64>,
    /// Waits: mean number of nanoseconds per sample, in the order of [`WaitKind::ALL`].
    pub wait_mean_ns: Option<[u64; WaitKind::ALL.len()]>,
    /// The largest number of samples, of 56 bytes each. Beyond it small samples are dropped at
    /// random and the weights of others raised.
    pub samples_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        const MS: u64 = 1_000_000;
        Options {
            cpu: Some(CpuOptions::default()),
            alloc_mean_bytes: Some(512 << 10),
            // Idle threads wait all the time: they must not fill the recording.
            wait_mean_ns: Some([MS, 20 * MS, MS, MS, MS]),
            samples_max: 1_000_000,
        }
    }
}

/// How to sample CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuOptions {
    /// Samples per second of CPU time; 0 for 99.
    pub rate_hz: u32,
    /// What triggers a sample.
    pub engine: Engine,
}

/// What triggers samples of CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Timers that interrupt a thread at random moments; works on any Linux. Time in the kernel
    /// counts for the function that called it.
    #[default]
    Timer,
    /// Perf events: kernel frames where permitted, otherwise only time outside of the kernel. They
    /// cost about 2 us a context switch (docs/decisions/0009).
    Perf,
}
