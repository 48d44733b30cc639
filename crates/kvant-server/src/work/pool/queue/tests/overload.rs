//! The adaptive limit with simulated workers, clients and time.

use super::*;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const TARGET: u64 = crate::admission::TARGET_NS;

/// Workers on a queue, and clients that do not wait for responses.
struct Simulation {
    queue: Queue,
    rng: Rng,
    now_ns: u64,
    service_ns: u64,
    /// When workers finish, and which jobs.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    finished: Vec<Option<FinishedJobs>>,
    /// Waits of done and of refused requests.
    waits_ns: Vec<u64>,
    refusals_ns: Vec<u64>,
}

impl Simulation {
    fn new(workers: usize, service_ns: u64) -> Simulation {
        let seed = entropy_seed();
        println!("seed {seed}");
        Simulation {
            queue: Queue::new(config(Overload::Adaptive, workers, 4096)),
            rng: Rng::new(seed),
            now_ns: S,
            service_ns,
            busy: BinaryHeap::new(),
            finished: vec![None; workers],
            waits_ns: Vec::new(),
            refusals_ns: Vec::new(),
        }
    }

    fn capacity_per_s(&self) -> f64 {
        self.finished.len() as f64 * 1e9 / self.service_ns as f64
    }

    /// An exponentially distributed time.
    fn random_ns(&mut self, mean_ns: f64) -> u64 {
        let uniform = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (-mean_ns * (1.0 - uniform).ln()) as u64
    }

    fn offer(&mut self) {
        let ticket = Ticket { selector: 0, slot: 0 };
        let job = Job::new(get(), ticket, self.now_ns);
        let mut removed = Vec::new();
        self.queue.offer(job, self.now_ns, &mut removed);
        self.refuse(removed);
        let idle = (0..self.finished.len()).find(|&worker| self.finished[worker].is_none());
        if let Some(worker) = idle {
            self.take(worker);
        }
    }

    fn refuse(&mut self, removed: Vec<RemovedJob>) {
        let waits = removed.iter().map(|removed| self.now_ns - removed.job.queued_ns);
        self.refusals_ns.extend(waits);
    }

    fn take(&mut self, worker: usize) {
        let (mut taken, mut removed) = (Vec::new(), Vec::new());
        self.queue.take(self.now_ns, &mut taken, &mut removed);
        self.refuse(removed);
        if taken.is_empty() {
            return;
        }
        let mut done_ns = self.now_ns;
        for job in &taken {
            self.waits_ns.push(done_ns - job.queued_ns);
            // Half of the work always takes as long, half is random.
            done_ns += self.service_ns / 2 + self.random_ns(self.service_ns as f64 / 2.0);
        }
        self.finished[worker] = Some(FinishedJobs {
            class: Class::Read,
            request_count: taken.len(),
            worked_ns: done_ns - self.now_ns,
        });
        self.busy.push(Reverse((done_ns, worker)));
    }

    /// Lets time pass while requests come at a rate; returns the done and the refused ones.
    fn run(&mut self, rate_per_s: f64, duration_ns: u64) -> Period {
        self.waits_ns.clear();
        self.refusals_ns.clear();
        let end_ns = self.now_ns + duration_ns;
        let mut arrival_ns = self.next_arrival(rate_per_s);
        loop {
            let done_ns = self.busy.peek().map_or(u64::MAX, |Reverse((done_ns, _))| *done_ns);
            let next_ns = arrival_ns.min(done_ns);
            if next_ns > end_ns {
                break;
            }
            self.now_ns = next_ns;
            if arrival_ns <= done_ns {
                self.offer();
                arrival_ns = self.next_arrival(rate_per_s);
            } else if let Some(Reverse((_, worker))) = self.busy.pop() {
                self.queue.finish(self.finished[worker].take().unwrap());
                self.take(worker);
            }
        }
        self.now_ns = end_ns;
        self.waits_ns.sort_unstable();
        self.refusals_ns.sort_unstable();
        Period {
            waits_ns: self.waits_ns.clone(),
            refusals_ns: self.refusals_ns.clone(),
            done_share: self.waits_ns.len() as f64 * 1e9
                / duration_ns as f64
                / self.capacity_per_s(),
        }
    }

    fn next_arrival(&mut self, rate_per_s: f64) -> u64 {
        match rate_per_s {
            0.0 => u64::MAX,
            rate_per_s => self.now_ns + self.random_ns(1e9 / rate_per_s),
        }
    }
}

/// The events of a period.
struct Period {
    waits_ns: Vec<u64>,
    refusals_ns: Vec<u64>,
    /// The done work, as a share of what can be done.
    done_share: f64,
}

impl Period {
    fn refused_share(&self) -> f64 {
        self.refusals_ns.len() as f64 / (self.waits_ns.len() + self.refusals_ns.len()) as f64
    }
}

fn percentile(sorted: &[u64], per_mille: usize) -> u64 {
    sorted.get(sorted.len() * per_mille / 1000).copied().unwrap_or(0)
}

impl Simulation {
    fn run_at(&mut self, load: f64, duration_ns: u64) -> Period {
        let rate_per_s = load * self.capacity_per_s();
        self.run(rate_per_s, duration_ns)
    }
}

/// Checks a period of detected overload.
fn assert_under_control(period: &Period) {
    assert!(period.done_share >= 0.95, "done: {}", period.done_share);
    let p99_ns = percentile(&period.waits_ns, 990);
    assert!(p99_ns < 2 * TARGET, "waits: {p99_ns}");
    // Requests are refused on arrival, except those that the limit misjudged.
    assert_eq!(percentile(&period.refusals_ns, 900), 0);
}

#[test]
fn below_capacity_few_requests_are_refused() {
    let mut simulation = Simulation::new(4, MS);
    let period = simulation.run_at(0.8, 20 * S);
    assert!(period.refused_share() < 0.01, "refused: {}", period.refused_share());
    assert!(percentile(&period.waits_ns, 990) < 2 * TARGET);
}

#[test]
fn in_overload_throughput_stays_high_and_waits_stay_short() {
    for load in [2.0, 5.0] {
        let mut simulation = Simulation::new(4, MS);
        let beginning = simulation.run_at(load, S);
        assert!(beginning.done_share >= 0.95);
        assert_under_control(&simulation.run_at(load, 20 * S));
    }
}

#[test]
fn overload_is_over_within_a_second_of_its_end() {
    let mut simulation = Simulation::new(4, MS);
    simulation.run_at(5.0, 5 * S);
    assert!(simulation.queue.stats().limited[0]);
    simulation.run_at(0.5, S);
    assert!(!simulation.queue.stats().limited[0]);
    assert!(simulation.run_at(0.5, 5 * S).refusals_ns.is_empty());
}

#[test]
fn the_limit_follows_work_that_becomes_slower_and_faster_again() {
    let mut simulation = Simulation::new(4, MS);
    simulation.run_at(2.0, 2 * S);
    simulation.service_ns = 10 * MS;
    let rate_per_s = 2.0 * simulation.capacity_per_s();
    simulation.run(rate_per_s, S);
    let slow = simulation.run(rate_per_s, 20 * S);
    assert!(slow.done_share >= 0.95, "done: {}", slow.done_share);
    // Two rounds of work are the shortest queue that keeps workers busy.
    let p99_ns = percentile(&slow.waits_ns, 990);
    assert!(p99_ns < 2 * 2 * simulation.service_ns, "waits: {p99_ns}");
    simulation.service_ns = MS;
    simulation.run_at(2.0, S);
    assert_under_control(&simulation.run_at(2.0, 20 * S));
}

#[test]
fn a_burst_that_drains_within_the_interval_is_admitted_whole() {
    // 1,024 requests of 0.25 ms take four workers 64 ms. The measured cost varies randomly.
    let mut simulation = Simulation::new(4, 250_000);
    simulation.run_at(0.3, S);
    simulation.run(0.0, S);
    for _ in 0..5 {
        (0..1024).for_each(|_| simulation.offer());
        let period = simulation.run(0.0, S);
        assert!(period.refusals_ns.is_empty(), "{}", period.refused_share());
    }
}

#[test]
fn a_burst_that_does_not_drain_is_cut() {
    let mut simulation = Simulation::new(4, MS);
    simulation.run_at(0.3, S);
    simulation.refusals_ns.clear();
    (0..4000).for_each(|_| simulation.offer());
    let taken_count = 4000 - simulation.refusals_ns.len();
    // 400 requests are done within 100 ms; the measured cost varies randomly.
    assert!((200..800).contains(&taken_count), "taken: {taken_count}");
}
