//! Random work from many selectors, with real threads.

use super::*;
use kvant_env::rng::Rng;

/// Sends random work and checks the replies; returns how many jobs were sent.
async fn send_random_work(port: Rc<Port>, seed: u64, job_count: u64) -> u64 {
    let mut rng = Rng::new(seed);
    for index in 0..job_count {
        let name = format!("{seed}-{index}");
        let drops = rng.one_in(10);
        match rng.below(8) {
            0 => send(&port, range(index), vec![format!("{index} records")], drops).await,
            1..=3 => {
                let key = format!("{}{name}", char::from(b"stndw"[rng.below(5) as usize]));
                // The first letter of a key selects the kind of failure.
                let failure = match key.as_bytes()[0] {
                    b's' => "Stalled",
                    b'n' => "NoSpace",
                    _ => "OutcomeUnknown",
                };
                let expected = vec![failure.to_string(), "written".to_string()];
                send(&port, write(&[&key]), expected, drops).await;
            }
            _ => send(&port, get(&name), vec![format!("got {name}")], drops).await,
        }
    }
    job_count
}

async fn send<W: Describe>(port: &Rc<Port>, work: W, mut expected: Vec<String>, drops: bool) {
    let refused = work.describe();
    let reasons = ["queue-full", "overloaded", "stopping", "discarded", "waited-too-long", "here"];
    expected.extend(reasons.map(|reason| format!("{reason} {refused}")));
    let later = port.send(work);
    if drops {
        tokio::task::yield_now().await;
        drop(later);
        return;
    }
    let reply = described(later.await);
    assert!(expected.contains(&reply), "{refused}: {reply}");
}

#[test]
fn every_job_of_many_selectors_has_one_reply_and_its_own() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for overload in
        [Overload::Adaptive, Overload::Reject, Overload::DiscardOldest, Overload::CallerRuns]
    {
        let config = ServerConfig {
            workers: 1 + rng.below(4) as usize,
            queue_capacity: 1 + rng.below(40) as usize,
            overload,
            ..config()
        };
        let (pool, _store, _refusals) = start(config, &Env::posix(), 3);
        let stops_early = rng.one_in(2);
        let selectors: Vec<_> = (0..3)
            .map(|selector| {
                let (pool, seed) = (Arc::clone(&pool), rng.next_u64());
                std::thread::spawn(move || {
                    on_selector(async move {
                        let port = Port::new(pool, selector);
                        port.spawn_tasks();
                        let clients: Vec<_> = (0..20)
                            .map(|client| {
                                tokio::task::spawn_local(send_random_work(
                                    Rc::clone(&port),
                                    seed ^ client,
                                    100,
                                ))
                            })
                            .collect();
                        for client in clients {
                            assert_eq!(client.await.unwrap(), 100);
                        }
                        // Replies to dropped futures arrive, too.
                        while port.in_flight.count() > 0 {
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
