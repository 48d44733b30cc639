//! Random work from many selectors, with real threads.

use super::*;
use kvant_env::rng::Rng;

/// Sends random work and checks what comes back: how many jobs were sent.
async fn talk(port: Rc<Port>, seed: u64, job_count: u64) -> u64 {
    let mut rng = Rng::new(seed);
    for index in 0..job_count {
        let name = format!("{seed}-{index}");
        let kind = rng.below(8);
        let (work, answers) = match kind {
            0 => (Work::Range(Box::new(Pieces(index))), vec![format!("piece {}", index + 1)]),
            1..=3 => {
                let key = format!("{}{name}", char::from(b"stndw"[rng.below(5) as usize]));
                // Each kind of failure has a first letter of keys to itself.
                let failure = match key.as_bytes()[0] {
                    b's' => "Stalled",
                    b'n' => "NoSpace",
                    _ => "OutcomeUnknown",
                };
                let mut answers = vec![failure.to_string()];
                answers.extend(["written".to_string(), format!("queue-full write {key}")]);
                (write(&[&key]), answers)
            }
            _ => (get(&name), vec![format!("got {name}")]),
        };
        let refusable = match &work {
            Work::Get(..) => format!("get {name}"),
            Work::Range(_) => "range".to_string(),
            Work::Write(writes) => format!("write {}", String::from_utf8_lossy(&writes[0].key)),
        };
        let later = port.send(work);
        if rng.one_in(10) {
            tokio::task::yield_now().await;
            drop(later);
            continue;
        }
        let answer = told(later.await);
        let refused = ["queue-full", "overloaded", "stopping", "discarded", "waited-too-long"]
            .map(|reason| format!("{reason} {refusable}"));
        assert!(
            answers.contains(&answer)
                || refused.contains(&answer)
                || answer == format!("here {refusable}"),
            "{refusable}: {answer}"
        );
    }
    job_count
}

#[test]
fn every_job_of_many_selectors_has_one_outcome_and_its_own() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for overload in [
        Overload::Adaptive,
        Overload::Reject,
        Overload::Discard,
        Overload::DiscardOldest,
        Overload::CallerRuns,
    ] {
        let config = PoolConfig {
            workers: 1 + rng.below(4) as usize,
            queue_capacity: 1 + rng.below(40) as usize,
            overload,
            ..CONFIG
        };
        let (pool, _store, _refusals) = start(config, &Env::posix(), 3);
        let stops_early = rng.one_in(2);
        let selectors: Vec<_> = (0..3)
            .map(|selector| {
                let (pool, seed) = (Arc::clone(&pool), rng.next_u64());
                std::thread::spawn(move || {
                    on_selector(async move {
                        let port = Port::new(pool, selector);
                        port.spawn();
                        let clients: Vec<_> = (0..20)
                            .map(|client| {
                                tokio::task::spawn_local(talk(Rc::clone(&port), seed ^ client, 100))
                            })
                            .collect();
                        for client in clients {
                            assert_eq!(client.await.unwrap(), 100);
                        }
                        // What nobody waits for any more comes back as well.
                        while port.in_flight_count() > 0 {
                            tokio::task::yield_now().await;
                        }
                    });
                })
            })
            .collect();
        if stops_early {
            pool.stop();
        }
        selectors.into_iter().for_each(|selector| selector.join().unwrap());
        pool.stop();
        let stats = pool.stats();
        assert_eq!((stats.queued, stats.busy_count), ([0; 3], 0));
    }
}
