use super::*;
use kvant_env::Env;
use kvant_load::Target;
use std::io::{Read, Write};
use std::net::TcpListener;

const WINDOW: Duration = Duration::from_millis(50);

/// A maker for a server whose work takes so long.
fn maker(work: Duration, response_wait_max: Duration) -> Maker {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            std::thread::sleep(work);
            // The maker may have gone.
            stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}").ok();
        }
    });
    let facts = InterventionFacts {
        suspects: vec![Suspect::Compaction],
        window_ns: WINDOW.as_nanos() as u64,
        gap_min_ns: 0,
        gap_max_ns: 1,
    };
    let server = Server::of(&Target::parse(&url).unwrap().resolve().unwrap()).unwrap();
    let (server_cpus, clock) = (CpuSet::new(), Env::posix().clock);
    Maker { facts, server, server_cpus, clock, response_wait_max }
}

/// The trials of a phase of this length with two moments, both treated.
fn trials(maker: &Maker, phase: Duration) -> Vec<Trial> {
    let moments = [0, 1].map(|gap_ns| Moment { suspect: 0, is_treated: true, gap_ns });
    let (begin, begun) = channel();
    begin.send(()).unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(move || maker.run(&moments, &begun));
        std::thread::sleep(phase);
        drop(begin);
        run.join().unwrap()
    })
}

#[test]
fn a_window_that_is_over_counts_although_the_phase_ends_before_the_work() {
    let maker = maker(Duration::from_secs(2), RESPONSE_WAIT_MAX);
    let trials = trials(&maker, Duration::from_secs(1));
    assert_eq!(trials.len(), 1, "{trials:?}");
    assert_eq!(trials[0].problem, None);
    assert!(trials[0].end_ns - trials[0].at_ns >= 2_000_000_000, "{trials:?}");
}

#[test]
fn work_whose_end_is_not_awaited_has_happened_and_is_the_last() {
    let maker = maker(Duration::from_secs(3), Duration::from_millis(100));
    let trials = trials(&maker, Duration::from_secs(1));
    assert_eq!(trials.len(), 1, "{trials:?}");
    assert_eq!(trials[0].problem, None);
}
