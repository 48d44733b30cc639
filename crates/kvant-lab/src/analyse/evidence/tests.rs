use super::*;

const MS: u64 = 1_000_000;

fn sample(at_ms: u64, server_ms: u64, all_ms: u64) -> WatchSample {
    WatchSample {
        at_ns: at_ms * MS,
        server_cpu_ns: Some(server_ms * MS),
        all_cpu_ns: Some(all_ms * MS),
        ..WatchSample::default()
    }
}

#[test]
fn counters_grow_on_straight_lines_between_samples() {
    let samples = vec![sample(0, 0, 0), sample(100, 50, 100), sample(200, 50, 300)];
    let watch = Watch { samples, ..Watch::default() };
    let window = machine(&watch, 50 * MS, 150 * MS);
    assert_eq!(window.server_cpu_ns, Some(25 * MS));
    assert_eq!(window.all_cpu_ns, Some(150 * MS));
    assert_eq!(window.stolen_ns, None);
    assert!(!window.is_generator_paused);
    // Beyond the samples nothing is known.
    assert_eq!(machine(&watch, 150 * MS, 250 * MS).server_cpu_ns, None);
}

#[test]
fn a_gap_in_the_samples_is_a_pause_of_the_generator() {
    let samples = vec![sample(0, 0, 0), sample(100, 1, 1), sample(500, 2, 2), sample(600, 3, 3)];
    let watch = Watch { samples, ..Watch::default() };
    let is_paused = |from_ms: u64| machine(&watch, from_ms * MS, (from_ms + 100) * MS);
    assert!(!is_paused(0).is_generator_paused);
    assert!(is_paused(100).is_generator_paused && is_paused(400).is_generator_paused);
    assert!(!is_paused(500).is_generator_paused);
}

#[test]
fn windows_get_the_phases_and_run_queue_waits_of_the_server_by_overlap() {
    let window = |start_ms: u64, count: u64| {
        let of = OperationWindow { count, ..OperationWindow::default() };
        Window {
            start_ns: start_ms * MS,
            length_ns: 100 * MS,
            operations: BTreeMap::from([("get".to_owned(), of)]),
            ..Window::default()
        }
    };
    let of_server = |start_ms: u64, count: u64, selector_ns: u64, wait_ms: u64| {
        let mut seen = window(start_ms, count);
        let get = seen.operations.get_mut("get").unwrap();
        get.phases_ns = Some([selector_ns, 0, 0, 0, 0]);
        seen.machine.run_queue_wait_ns = Some(wait_ms * MS);
        seen
    };
    // The server's windows are half a window off, and it has seen fewer requests than the client.
    let mut windows = vec![window(0, 20), window(100, 30), window(500, 1)];
    add_server_view(&mut windows, &[of_server(50, 10, 1000, 8), of_server(150, 20, 6000, 4)]);
    let selector_ns =
        |at: usize| windows[at].operations["get"].phases_ns.map(|phases_ns| phases_ns[0]);
    // A mean of 100 ns, for 20 requests; (500 + 3000) ns of 5 + 10 requests, for 30.
    assert_eq!(selector_ns(0), Some(2000));
    assert_eq!(selector_ns(1), Some(7000));
    assert_eq!(selector_ns(2), None, "no window of the server overlaps");
    let waits: Vec<_> = windows.iter().map(|window| window.machine.run_queue_wait_ns).collect();
    assert_eq!(waits, [Some(4 * MS), Some(6 * MS), None]);
}
