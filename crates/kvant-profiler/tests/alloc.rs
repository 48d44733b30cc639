//! Compares the profiler's figures with those of programs that count their own allocations.

mod support;

use kvant_env::Env;
use kvant_profiler::collect::{Allocator, Options, Profiler};
use kvant_profiler::recording::{Kind, Recording};
use std::hint::black_box;
use support::{Names, assert_within, is_in, turn, weight};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new();

/// Runs `program` while its allocations are sampled; again if the machine stalled for so long that
/// samples were dropped.
fn profile<T>(mean_bytes: u64, program: impl Fn() -> T) -> (Recording, T) {
    const ATTEMPTS_MAX: usize = 5;
    let _turn = turn();
    for _ in 0..ATTEMPTS_MAX {
        let options = Options {
            cpu: None,
            alloc_mean_bytes: Some(mean_bytes),
            wait_mean_ns: None,
            ..Options::default()
        };
        let profiler = Profiler::start(options, &Env::posix(), None).unwrap();
        let outcome = program();
        let recording = profiler.stop();
        assert_eq!(recording.facts.alloc_mean_bytes, Some(mean_bytes));
        if recording.facts.dropped_count == 0 {
            return (recording, outcome);
        }
        eprintln!("{} samples were dropped", recording.facts.dropped_count);
    }
    panic!("samples were dropped in each of {ATTEMPTS_MAX} attempts");
}

/// Gives the drain time to empty the ring, which has room for a few hundred samples.
struct Pace {
    bytes_between_rests: usize,
    left_bytes: usize,
}

impl Pace {
    fn new(mean_bytes: u64) -> Pace {
        let bytes_between_rests = 100 * mean_bytes as usize;
        Pace { bytes_between_rests, left_bytes: bytes_between_rests }
    }

    fn allocated(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if self.left_bytes == 0 {
            self.left_bytes = self.bytes_between_rests;
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
    }
}

/// Sizes from `smallest` to `largest`, with all octaves equally likely.
struct Sizes {
    state: u64,
    smallest: f64,
    octaves: f64,
}

impl Sizes {
    fn new(seed: u64, smallest: usize, largest: usize) -> Sizes {
        Sizes {
            state: seed,
            smallest: smallest as f64,
            octaves: (largest as f64 / smallest as f64).log2(),
        }
    }

    fn next(&mut self) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let fraction = (self.state >> 33) as f64 / (1_u64 << 31) as f64;
        (self.smallest * (fraction * self.octaves).exp2()) as usize
    }
}

// Each of these functions has its own number, or the linker may merge them.
#[inline(never)]
fn allocate_small(bytes: usize) -> Vec<u8> {
    black_box(1);
    black_box(Vec::with_capacity(black_box(bytes)))
}

#[inline(never)]
fn allocate_large(bytes: usize) -> Vec<u8> {
    black_box(2);
    black_box(Vec::with_capacity(black_box(bytes)))
}

#[inline(never)]
fn allocate_and_keep(bytes: usize) -> Vec<u8> {
    black_box(3);
    black_box(Vec::with_capacity(black_box(bytes)))
}

#[inline(never)]
fn allocate_and_free(bytes: usize) -> Vec<u8> {
    black_box(4);
    black_box(Vec::with_capacity(black_box(bytes)))
}

#[inline(never)]
fn grow(buffer: &mut Vec<u8>, bytes: usize) {
    buffer.reserve_exact(black_box(bytes));
    black_box(buffer);
}

#[test]
fn bytes_are_attributed_to_their_allocating_functions() {
    const SEED: u64 = 1;
    const MEAN_BYTES: u64 = 128 << 10;
    const THREAD_COUNT: u64 = 4;
    const LARGE_BYTES_PER_THREAD: usize = 128 << 20;
    let allocate = |thread: u64| {
        let mut small_sizes = Sizes::new(SEED + 2 * thread, 16, 8 << 10);
        let mut large_sizes = Sizes::new(SEED + 2 * thread + 1, 8 << 10, 1 << 20);
        let (mut small_bytes, mut large_bytes) = (0, 0);
        let mut pace = Pace::new(MEAN_BYTES);
        while large_bytes < LARGE_BYTES_PER_THREAD {
            let bytes = large_sizes.next();
            large_bytes += allocate_large(bytes).capacity();
            pace.allocated(bytes);
            while small_bytes < 3 * large_bytes {
                let bytes = small_sizes.next();
                small_bytes += allocate_small(bytes).capacity();
                pace.allocated(bytes);
            }
        }
        (small_bytes as f64, large_bytes as f64)
    };
    let (recording, (small_bytes, large_bytes)) = profile(MEAN_BYTES, || {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREAD_COUNT).map(|thread| scope.spawn(move || allocate(thread))).collect();
            let counts = threads.into_iter().map(|thread| thread.join().unwrap());
            counts.fold((0.0, 0.0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
        })
    });
    let mut names = Names::of_this_binary();
    let mut of =
        |function| weight(&recording, Kind::Alloc, |s| is_in(&mut names, &recording, s, function));
    let total_bytes = weight(&recording, Kind::Alloc, |_| true);
    assert_within(5.0, total_bytes, small_bytes + large_bytes, "all bytes");
    let share = of("allocate_small") / total_bytes;
    let true_share = small_bytes / (small_bytes + large_bytes);
    assert!(
        (share - true_share).abs() < 0.03,
        "share of the small ones {share}, in truth {true_share}"
    );
    let others = 1.0 - (of("allocate_small") + of("allocate_large")) / total_bytes;
    // The rest are allocations of the profiler's and the test's threads, and lost stacks.
    assert!(others.abs() < 0.03, "{others} belongs to neither");
    assert!(recording.samples.iter().all(|sample| !sample.is_live || sample.weight > 0));
    let live = weight(&recording, Kind::Alloc, |s| {
        s.is_live
            && (is_in(&mut names, &recording, s, "allocate_small")
                || is_in(&mut names, &recording, s, "allocate_large"))
    });
    assert_eq!(live, 0.0, "all of it was freed");
}

#[test]
fn unfreed_memory_is_live_whichever_thread_frees_the_rest() {
    const SEED: u64 = 11;
    const MEAN_BYTES: u64 = 32 << 10;
    let (recording, (kept, grown)) = profile(MEAN_BYTES, || {
        let mut kept_sizes = Sizes::new(SEED, 256, 256 << 10);
        let mut freed_sizes = Sizes::new(SEED + 1, 64, 64 << 10);
        let mut pace = Pace::new(MEAN_BYTES);
        let (mut kept, mut kept_bytes) = (Vec::with_capacity(1 << 17), 0);
        let (freed_here, freed_elsewhere) = std::sync::mpsc::channel::<Vec<u8>>();
        let other = std::thread::spawn(move || freed_elsewhere.into_iter().for_each(drop));
        while kept_bytes < 128 << 20 {
            let buffer = allocate_and_keep(kept_sizes.next());
            kept_bytes += buffer.capacity();
            // The others are half as many bytes.
            pace.allocated(buffer.capacity() * 3 / 2);
            kept.push(buffer);
            drop(allocate_and_free(freed_sizes.next()));
            freed_here.send(allocate_and_free(freed_sizes.next())).unwrap();
        }
        drop(freed_here);
        other.join().unwrap();
        let mut grown = allocate_and_free(1 << 20);
        grow(&mut grown, 4 << 20);
        (kept, grown)
    });
    let mut names = Names::of_this_binary();
    let mut live = |function| {
        weight(&recording, Kind::Alloc, |s| s.is_live && is_in(&mut names, &recording, s, function))
    };
    let kept_bytes: usize = kept.iter().map(Vec::capacity).sum();
    assert_within(5.0, live("allocate_and_keep"), kept_bytes as f64, "kept bytes");
    assert_eq!(live("allocate_and_free"), 0.0);
    // A reallocation is a free and an allocation: all bytes belong to its caller.
    assert_within(1.0, live("grow"), grown.capacity() as f64, "grown bytes");
    let freed = weight(&recording, Kind::Alloc, |s| {
        !s.is_live && is_in(&mut names, &recording, s, "allocate_and_free")
    });
    assert!(freed > kept_bytes as f64 / 4.0, "{freed} bytes were allocated and freed");
}
