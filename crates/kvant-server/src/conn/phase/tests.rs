use super::*;

fn limits() -> Limits {
    Limits::new(&ServerConfig {
        connection_idle_max: Duration::from_secs(30),
        head_wait_max: Duration::from_secs(8),
        range_idle_max: Duration::from_secs(5),
        ..ServerConfig::default()
    })
}

/// Sweeps until something is due; returns the number of the sweep, and what is due.
fn first_due(progress: &Progress, limits: &Limits) -> Option<(u32, Due)> {
    let sweep = (1..200).find(|_| progress.sweep(limits))?;
    progress.due.get().map(|due| (sweep, due))
}

#[test]
fn nothing_is_due_before_its_whole_limit() {
    let limits = limits();
    assert_eq!(limits.period, Duration::from_secs(1));
    let progress = Progress::default();
    assert_eq!(first_due(&progress, &limits), Some((31, Due::Close)));
    progress.begin_head();
    assert_eq!(first_due(&progress, &limits), Some((9, Due::HeadTimeout)));
    progress.begin_request();
    progress.await_body();
    assert_eq!(first_due(&progress, &limits), Some((6, Due::BodyTimeout)));
    assert!(progress.body_is_due() && progress.take_due().is_none());
}

#[test]
fn the_period_follows_the_shortest_limit_within_bounds() {
    let period = |idle_ms, head_ms| {
        let config = ServerConfig {
            connection_idle_max: Duration::from_millis(idle_ms),
            head_wait_max: Duration::from_millis(head_ms),
            ..ServerConfig::default()
        };
        Limits::new(&config).period
    };
    assert_eq!(period(300_000, 10_000), PERIOD_MAX);
    assert_eq!(period(300_000, 2_000), Duration::from_millis(500));
    assert_eq!(period(400, 2_000), Duration::from_millis(100));
    assert_eq!(period(1, 1), PERIOD_MIN);
    // A limit that is no multiple of the period lasts longer, not shorter.
    let progress = Progress::default();
    let config = ServerConfig {
        connection_idle_max: Duration::from_millis(1001),
        head_wait_max: Duration::from_millis(400),
        ..ServerConfig::default()
    };
    assert_eq!(first_due(&progress, &Limits::new(&config)), Some((12, Due::Close)));
}

#[test]
fn an_unlimited_wait_never_ends() {
    let config = ServerConfig { connection_idle_max: Duration::MAX, ..ServerConfig::default() };
    let progress = Progress::default();
    progress.sweeps.set(u32::MAX - 2);
    assert!(!progress.sweep(&Limits::new(&config)));
}

#[test]
fn a_busy_connection_is_never_due() {
    let limits = limits();
    let progress = Progress::default();
    progress.set_buffers(true);
    progress.begin_head();
    progress.begin_request();
    assert_eq!(first_due(&progress, &limits), None);
    progress.begin_response(false);
    assert_eq!(first_due(&progress, &limits), None);
}

#[test]
fn after_its_last_response_a_connection_is_not_idle() {
    let limits = limits();
    let progress = Progress::default();
    progress.set_buffers(true);
    progress.begin_request();
    progress.begin_response(true);
    // Of the discarded body.
    progress.note_hyper_reads();
    assert_eq!(first_due(&progress, &limits), None);
}

#[test]
fn each_change_of_phase_resets_the_count_and_what_was_due() {
    let limits = limits();
    let progress = Progress::default();
    for _ in 0..100 {
        for _ in 0..30 {
            assert!(!progress.sweep(&limits));
        }
        progress.begin_request();
        progress.end_request();
    }
    assert_eq!(first_due(&progress, &limits), Some((31, Due::Close)));
    progress.begin_request();
    assert_eq!(progress.take_due(), None);
}

#[test]
fn further_bytes_of_a_head_do_not_reset_its_count() {
    let limits = limits();
    let progress = Progress::default();
    for _ in 0..8 {
        progress.begin_head();
        assert!(!progress.sweep(&limits));
    }
    progress.begin_head();
    assert!(progress.sweep(&limits));
}

#[test]
fn taking_bytes_of_earlier_responses_is_progress() {
    let limits = limits();
    let progress = Progress::default();
    progress.begin_head();
    for _ in 0..100 {
        progress.restart();
        assert!(!progress.sweep(&limits));
    }
}

#[test]
fn idle_connections_free_their_buffers() {
    let limits = limits();
    let progress = Progress::default();
    progress.set_buffers(true);
    progress.begin_request();
    progress.begin_response(false);
    progress.note_hyper_reads();
    assert_eq!(first_due(&progress, &limits), Some((2, Due::Idle)));
    assert_eq!(progress.take_due(), Some(Due::Idle));
    assert_eq!(progress.take_due(), None, "told once");
    progress.begin_head();
    assert_eq!(first_due(&progress, &limits), Some((9, Due::HeadTimeout)));
}
