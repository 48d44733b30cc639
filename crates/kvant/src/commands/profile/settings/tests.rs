use super::super::definition;
use super::super::parse::server;
use super::*;
use kvant_load::units;

fn read(args: &[&str]) -> Result<Settings, Vec<String>> {
    let args = ["profile"].iter().chain(args);
    Settings::read(&definition::command().get_matches_from(args))
}

fn output(path: &str, format: Format) -> Output {
    Output { path: PathBuf::from(path), format }
}

#[test]
fn without_arguments_the_default_server_is_recorded_into_a_page() {
    let settings = read(&[]).unwrap();
    let wanted = RecordingRequest {
        server: "127.0.0.1:8080".into(),
        events: vec!["cpu".into(), "alloc".into(), "lock".into()],
        duration: Duration::from_secs(30),
        rate_hz: None,
        engine: None,
    };
    assert_eq!(settings.source, Source::Server(wanted));
    assert_eq!(settings.output, output("profile.html", Format::Html));
}

#[test]
fn options_describe_a_recording() {
    let args =
        "--url http://[::1]:9000/ --event cpu --duration 2m --rate 99 --engine perf -o x.collapsed";
    let settings = read(&args.split(' ').collect::<Vec<_>>()).unwrap();
    let wanted = RecordingRequest {
        server: "[::1]:9000".into(),
        events: vec!["cpu".into()],
        duration: Duration::from_secs(120),
        rate_hz: Some(99),
        engine: Some("perf".into()),
    };
    assert_eq!(settings.source, Source::Server(wanted));
    assert_eq!(settings.output, output("x.collapsed", Format::Collapsed(Kind::Cpu)));
}

#[test]
fn file_names_imply_formats_and_format_overrides_them() {
    for (args, expected) in [
        (&["-o", "x.PB.GZ"][..], output("x.PB.GZ", Format::Pprof)),
        (&["-o", "x.kprof"], output("x.kprof", Format::Kprof)),
        (&["-o", "x.txt", "--format", "html"], output("x.txt", Format::Html)),
        (&["-o", "-", "--format", "kprof"], output("-", Format::Kprof)),
        (
            &["-o", "x.folded", "--kind", "idle"],
            output("x.folded", Format::Collapsed(Kind::Wait(WaitKind::Idle))),
        ),
        (
            &["-o", "x.folded", "--event", "lock"],
            output("x.folded", Format::Collapsed(Kind::Wait(WaitKind::Contention))),
        ),
        (&["dir/a.kprof"], output("dir/a.html", Format::Html)),
        (&["--format", "pprof", "dir/a.kprof"], output("dir/a.pb.gz", Format::Pprof)),
        (&["--format", "kprof"], output("profile.kprof", Format::Kprof)),
        (&["a.kprof", "-o", "b.pb.gz"], output("b.pb.gz", Format::Pprof)),
        (&["--diff", "a.kprof", "b.kprof"], output("difference.html", Format::Html)),
    ] {
        assert_eq!(read(args).unwrap().output, expected, "{args:?}");
    }
    let difference = Source::Difference { base: "a.kprof".into(), other: "b.kprof".into() };
    assert_eq!(read(&["--diff", "a.kprof", "b.kprof"]).unwrap().source, difference);
}

#[test]
fn addresses_are_hosts_with_ports() {
    for (url, expected) in [
        ("http://localhost:1", "localhost:1"),
        ("localhost:8080", "localhost:8080"),
        ("http://example.com", "example.com:80"),
        ("http://[::1]", "[::1]:80"),
    ] {
        assert_eq!(server(url).as_deref(), Ok(expected), "{url}");
    }
    for url in [
        "",
        "http://",
        "https://localhost:1",
        "http://localhost:1/v0/profile",
        "http://localhost:x",
        "::1",
    ] {
        assert!(server(url).is_err(), "{url}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let args = "--url https://localhost --event wall --duration soon --rate 0 -o x.svg --kind cpu";
    let problems = read(&args.split(' ').collect::<Vec<_>>()).unwrap_err();
    assert_eq!(problems.len(), 5, "{problems:#?}");
    for args in [
        &["-o", "x.collapsed"][..],
        &["-o", "-"],
        &["--format", "svg"],
        &["--kind", "wall", "-o", "x.collapsed"],
        &["a.kprof", "--duration", "1s"],
        &["a.kprof", "-o", "a.collapsed"],
        &["--diff", "a.kprof"],
        &["--diff", "a.kprof", "b.kprof", "-o", "x.kprof"],
    ] {
        let problems = read(args).unwrap_err();
        assert_eq!(problems.len(), 1, "{args:?}: {problems:#?}");
    }
}

#[test]
fn durations_have_the_forms_of_kvant_load() {
    for (text, seconds) in
        [("30", 30.0), ("30s", 30.0), ("5m", 300.0), ("1h", 3600.0), ("1M", 60.0), ("250ms", 0.25)]
    {
        let Source::Server(wanted) = read(&["-d", text]).unwrap().source else {
            panic!("{text}");
        };
        assert_eq!(wanted.duration.as_secs_f64(), seconds, "{text}");
        assert_eq!(units::parse_time(text), Ok(wanted.duration), "{text}");
    }
    for text in ["2h", "50ms", "0", "1.5s"] {
        let problems = read(&["--duration", text]).err();
        assert!(problems.is_some_and(|problems| problems[0].starts_with("--duration: ")), "{text}");
    }
}
