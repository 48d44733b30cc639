use super::*;

fn sample(at_ns: u64, cpu_ns: u64) -> WatchSample {
    WatchSample { at_ns, server_cpu_ns: Some(cpu_ns), ..WatchSample::default() }
}

#[test]
fn a_counter_is_interpolated_between_samples() {
    let watch = Watch {
        samples: vec![sample(100, 1_000), sample(200, 3_000), sample(300, 3_000)],
        ..Watch::default()
    };
    let cpu = |from, to| spent(&watch, from, to, |sample| sample.server_cpu_ns);
    assert_eq!(cpu(100, 300), Some(2_000.0));
    assert_eq!(cpu(150, 250), Some(1_000.0));
    assert_eq!(cpu(50, 250), None, "there is no sample before the begin");
    assert_eq!(cpu(150, 350), None, "there is no sample after the end");
}

#[test]
fn an_unreported_counter_gives_no_figure() {
    let watch = Watch { samples: vec![sample(100, 1), sample(200, 2)], ..Watch::default() };
    assert_eq!(spent(&watch, 100, 200, switches), None);
    assert_eq!(greatest(&watch, 100, 200, |sample| sample.server_rss_bytes), None);
}
