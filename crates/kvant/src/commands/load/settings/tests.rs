use super::super::parse::Body;
use super::{LoadPlan, LoadSettings, Requests};
use kvant_load::{Arrival, Rate};
use std::time::Duration;

const URL: &str = "http://127.0.0.1:8080/v0/status";

fn read(args: &[&str]) -> Result<LoadSettings, Vec<String>> {
    let all = ["kvant", "load"].iter().chain(args);
    let matches = crate::cli::command()
        .try_get_matches_from(all)
        .unwrap_or_else(|error| panic!("{args:?}: {error}"));
    let (_, args) = matches.subcommand().expect("load");
    LoadSettings::read(args)
}

fn good(args: &[&str]) -> LoadSettings {
    read(args).unwrap_or_else(|problems| panic!("{args:?}: {problems:#?}"))
}

fn urls(settings: &LoadSettings) -> Vec<&str> {
    settings.common.config.targets.iter().map(|target| target.url.as_str()).collect()
}

/// The only problem with `args` begins with `begin`.
fn refused(args: &[&str], begin: &str) {
    match read(args) {
        Err(problems) => assert!(
            problems.len() == 1 && problems[0].starts_with(begin),
            "{args:?}: {problems:#?}"
        ),
        Ok(settings) => panic!("{args:?} is taken: {settings:?}"),
    }
}

#[test]
fn defaults_are_wrks() {
    let settings = good(&["-R", "1000", URL]);
    assert_eq!(
        (settings.common.config.thread_count, settings.common.config.connection_count),
        (2, 10)
    );
    assert_eq!(settings.duration, Duration::from_secs(10));
    assert_eq!(settings.common.config.timeout, Duration::from_secs(2));
    assert_eq!(settings.warmup, Duration::ZERO);
    assert_eq!(good(&["--find-max", URL]).warmup, Duration::from_secs(3));
    assert_eq!(settings.plan, LoadPlan::Steps(vec![Rate::Constant(1_000.0)]));
    let config = &settings.common.config;
    assert_eq!(config.spin, Duration::from_micros(20));
    assert_eq!(good(&["-R5", "--wrk2-exact", URL]).common.config.spin, Duration::ZERO);
    assert_eq!((config.arrival, config.wrk2_exact), (Arrival::Uniform, false));
    assert_eq!((settings.prints_response, settings.prints_service), (false, false));
    assert!(matches!(settings.requests, Requests::Fixed { pipeline: 1, .. }));
    assert_eq!(urls(&settings), [URL]);
}

#[test]
fn values_may_be_attached_or_separate_before_and_after_the_url() {
    let lines: [&[&str]; 5] = [
        &["-t4", "-c64", "-d30s", "-R10k", "-T500ms", "-s", "a.lua", "-L", URL, "--", "x", "-y"],
        &[
            "-t",
            "4",
            "-c",
            "64",
            "-d",
            "30",
            "-R",
            "10k",
            "-T",
            "500ms",
            "-sa.lua",
            "--latency",
            URL,
            "--",
            "x",
            "-y",
        ],
        &[
            "--threads",
            "4",
            "--connections",
            "64",
            "--duration",
            "30s",
            "--rate",
            "10K",
            "--timeout",
            "500ms",
            "--script",
            "a.lua",
            "-L",
            URL,
            "--",
            "x",
            "-y",
        ],
        &[
            "--threads=4",
            "--connections=64",
            "--duration=30s",
            "--rate=10k",
            "--timeout=500ms",
            "--script=a.lua",
            "-L",
            URL,
            "--",
            "x",
            "-y",
        ],
        &["-t4", URL, "-c64", "-L", "-d30s", "-R10k", "-T500ms", "-s", "a.lua", "--", "x", "-y"],
    ];
    for line in lines {
        let settings = good(line);
        assert_eq!(
            (settings.common.config.thread_count, settings.common.config.connection_count),
            (4, 64),
            "{line:?}"
        );
        assert_eq!(settings.duration, Duration::from_secs(30), "{line:?}");
        assert_eq!(settings.common.config.timeout, Duration::from_millis(500), "{line:?}");
        assert_eq!(settings.plan, LoadPlan::Steps(vec![Rate::Constant(10_000.0)]), "{line:?}");
        assert!(settings.prints_response && !settings.prints_service, "{line:?}");
        assert_eq!(urls(&settings), [URL], "{line:?}");
        let Requests::Script { file, args } = &settings.requests else {
            panic!("{line:?}: {settings:?}");
        };
        assert_eq!((file.to_str(), args.join(" ")), (Some("a.lua"), "x -y".to_owned()), "{line:?}");
    }
}

#[test]
fn the_last_value_wins_but_headers_and_assertions_accumulate() {
    let settings = good(&[
        "-t8",
        "-t1",
        "-R5",
        "-R",
        "7",
        "-L",
        "-L",
        "-H",
        "A: 1",
        "-H",
        "B:2",
        "--assert",
        "p99<5ms",
        "--assert",
        "errors==0",
        URL,
        URL,
    ]);
    assert_eq!(settings.common.config.thread_count, 1);
    assert_eq!(settings.plan, LoadPlan::Steps(vec![Rate::Constant(7.0)]));
    let headers: Vec<String> =
        settings.common.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(headers, ["A=1", "B=2"]);
    assert_eq!(settings.results.asserts.len(), 2);
    assert_eq!(settings.common.config.targets.len(), 2);
}

#[test]
fn plans() {
    let steps = |line: &[&str]| good(&[line, &[URL]].concat()).plan;
    assert_eq!(steps(&["-R", "0"]), LoadPlan::Steps(vec![Rate::Closed]));
    assert_eq!(
        steps(&["--rate", "10k,20k,1.5k"]),
        LoadPlan::Steps(vec![
            Rate::Constant(10_000.0),
            Rate::Constant(20_000.0),
            Rate::Constant(1_500.0)
        ])
    );
    assert_eq!(
        steps(&["--ramp", "0..50k"]),
        LoadPlan::Steps(vec![Rate::Ramp { from: 0.0, to: 50_000.0 }])
    );
    assert!(matches!(steps(&["--find-max"]), LoadPlan::FindMax(_)));
    assert!(matches!(steps(&["--find-max", "--slo", "p99.9<20ms"]), LoadPlan::FindMax(_)));
}

#[test]
fn missing_bad_and_contradictory_options_are_refused() {
    refused(&["-t2", URL], "--rate: is missing");
    refused(&["-R5"], "URL: is missing");
    refused(&["-R5", "-t11", URL], "--connections: number of connections must be >= threads");
    refused(&["-R5", "-c1", URL], "--connections: number of connections must be >= threads");
    refused(&["-R5", "-t0", URL], "--threads: must be at least 1");
    refused(&["-R5", "-d0", URL], "--duration: must be more than 0");
    refused(&["-R5", "-d1.5s", URL], "--duration: `1.5s`");
    refused(&["-Rmany", URL], "--rate: `many`");
    refused(&["-R5", "-H", "no colon", URL], "--header: `no colon`");
    refused(&["-R5", "-H", "A: b\r\nC: d", URL], "--header: ");
    refused(&["-R5", "--ramp", "0..5", URL], "--ramp: takes the place");
    refused(&["--ramp", "0..5", "--arrival", "wrk2", URL], "--ramp: --arrival wrk2 holds one rate");
    refused(&["-R5", "--find-max", URL], "--rate: --find-max looks for the rate");
    refused(&["-R5", "--slo", "p99<5ms", URL], "--slo: ");
    refused(&["--find-max", "--slo", "p99<base", URL], "--slo: cannot compare");
    refused(&["-R5", "--ok", "404,abc", URL], "--ok: `abc`");
    refused(&["-R5", "--pipeline", "0", URL], "--pipeline: ");
    refused(&["-R5", "--pipeline", "2", "-s", "x.lua", URL], "--pipeline: ");
    refused(&["-R5", "--keys", "10", URL], "--keys: is for --workload");
    refused(&["-R5", "--arrival", "often", URL], "--arrival: `often`");
    refused(&["-R5", "--seed", "-", URL], "--seed: ");
    refused(&["-R5", "--baseline", "a.json", URL], "--baseline: ");
    refused(&["-R5", URL, "--", "x"], "ARGS: are for a script");
    refused(&["-R0", "--wrk2-exact", URL], "--rate: wrk2 has no closed loop");
    refused(&["-R5", "--wrk2-exact", "--warmup", "1s", URL], "--warmup: ");
}

#[test]
fn all_problems_are_reported_together() {
    let problems = read(&["-t0", "-cx", "-d", "soon", "--ok", "1", "--baseline", "b"])
        .expect_err("six mistakes");
    let names: Vec<&str> =
        problems.iter().filter_map(|problem| problem.split(':').next()).collect();
    for name in ["URL", "--rate", "--threads", "--connections", "--duration", "--ok", "--baseline"]
    {
        assert!(names.contains(&name), "{name} is not in {problems:#?}");
    }
    assert_eq!(names.len(), 7, "{problems:#?}");
}

#[test]
fn a_negative_rate_is_refused_with_a_sentence_of_its_own() {
    for rate in ["-5", "-5k", "-0.5"] {
        let sentence = format!("--rate: `{rate}` is not a rate");
        refused(&["-R", rate, URL], &sentence);
        refused(&[&format!("-R{rate}"), URL], &sentence);
        refused(&[&format!("--rate={rate}"), URL], &sentence);
    }
}

#[test]
fn workloads_and_fills_refuse_a_path() {
    let host = "http://127.0.0.1:8080";
    for url in [host, "http://127.0.0.1:8080/", "http+unix://%2Frun%2Fa.sock"] {
        good(&["-R5", "--workload", "get", url]);
    }
    for path in ["/v0/status", "/?x=y", "?x=y"] {
        let url = format!("{host}{path}");
        refused(&["-R5", "--workload", "get", host, &url], "URL: a workload has paths of its own");
    }
    good(&["-R5", URL]);
}

#[test]
fn methods_and_bodies() {
    let fixed = |args: &[&str]| match good(&[&["-R5", URL], args].concat()).requests {
        Requests::Fixed { method, body, .. } => (method, body),
        other => panic!("{other:?}"),
    };
    let text = |text: &str| Some(Body::Text(text.to_owned()));
    assert_eq!(fixed(&[]), ("GET".to_owned(), None));
    assert_eq!(fixed(&["--method", "DELETE"]), ("DELETE".to_owned(), None));
    assert_eq!(fixed(&["--body", "a=b"]), ("POST".to_owned(), text("a=b")));
    assert_eq!(fixed(&["--method", "PUT", "--body", "-1"]), ("PUT".to_owned(), text("-1")));
    assert_eq!(fixed(&["--body", ""]), ("POST".to_owned(), text("")));
    let file = Some(Body::File("value.bin".into()));
    assert_eq!(fixed(&["--body", "@value.bin"]), ("POST".to_owned(), file));
    refused(&["-R5", "--method", "G ET", URL], "--method: `G ET` is no method");
    refused(&["-R5", "--body", "@", URL], "--body: has no name");
    for option in ["--method", "--body"] {
        refused(&["-R5", "-s", "a.lua", option, "PUT", URL], option);
        refused(&["-R5", "--workload", "get", option, "PUT", "http://127.0.0.1"], option);
    }
}

#[test]
fn a_number_of_requests_has_no_time_limit_by_default() {
    let settings = good(&["-R5", "-n", "10k", URL]);
    assert_eq!(settings.request_count_max, Some(10_000));
    assert_eq!(settings.duration, Duration::from_secs(24 * 3_600));
    let settings = good(&["-R5", "-n10", "-d", "3s", URL]);
    assert_eq!(settings.duration, Duration::from_secs(3));
    assert_eq!(good(&["--ramp", "0..5", "-n10", URL]).duration, Duration::from_secs(10));
    refused(&["-R5", "-n0", URL], "--requests: must be at least 1");
    refused(&["--find-max", "-n5", URL], "--requests: --find-max");
    refused(&["-R5", "--wrk2-exact", "-n5", URL], "--requests: wrk2 has nothing");
}

#[test]
fn an_abort_needs_an_assertion() {
    let settings = good(&["-R5", "--abort-on-fail", "--assert", "errors==0", URL]);
    assert!(settings.results.aborts_on_fail);
    refused(&["-R5", "--abort-on-fail", URL], "--abort-on-fail: ");
    refused(
        &["--find-max", "--abort-on-fail", "--assert", "errors==0", URL],
        "--abort-on-fail: --find-max",
    );
}
