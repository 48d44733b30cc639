use super::*;
use http::HeaderMap;
use http::header::ACCEPT;

fn read(query: &str, accept: &'static str) -> Result<ProfileRequest, Problem> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    ProfileRequest::read(Some(query), headers.get_all(ACCEPT))
}

#[test]
fn without_a_query_everything_is_recorded_for_half_a_minute_into_a_page() {
    let request = ProfileRequest::read(None, HeaderMap::new().get_all(ACCEPT)).unwrap();
    let expected = ProfileRequest {
        events: ProfiledEvents::ALL,
        rate_hz: None,
        engine: Engine::Timer,
        duration: Duration::from_secs(30),
        format: Format::Html,
        known: Identities::default(),
    };
    assert_eq!(request, expected);
}

#[test]
fn every_parameter_is_read() {
    let request = read(
        "event=cpu,alloc&duration=250ms&format=kprof&rate=99&engine=perf&known=ab%2Ccd",
        "*/*",
    )
    .unwrap();
    let expected = ProfileRequest {
        events: ProfiledEvents { cpu: true, alloc: true, lock: false },
        rate_hz: Some(99),
        engine: Engine::Perf,
        duration: Duration::from_millis(250),
        format: Format::Kprof,
        known: Identities::of_text("cd,ab"),
    };
    assert_eq!(request, expected);
}

#[test]
fn accept_selects_the_format_without_a_query() {
    for (query, accept, format) in [
        ("", "*/*", Format::Html),
        ("", "application/json, text/html;q=0.9", Format::Html),
        ("", "application/vnd.kvant.profile", Format::Kprof),
        ("", "Application/GZIP", Format::Pprof),
        ("event=alloc", "text/plain", Format::Collapsed(Kind::Alloc)),
        ("format=pprof", "text/html", Format::Pprof),
    ] {
        assert_eq!(read(query, accept).unwrap().format, format, "{query} {accept}");
    }
}

#[test]
fn collapsed_stacks_are_of_one_kind() {
    for (query, kind) in [
        ("event=cpu", Kind::Cpu),
        ("event=alloc", Kind::Alloc),
        ("event=lock", Kind::Wait(WaitKind::Contention)),
        ("event=lock&kind=idle", Kind::Wait(WaitKind::Idle)),
        ("event=lock&kind=holder", Kind::Holder),
        ("kind=io", Kind::Wait(WaitKind::Io)),
        ("event=cpu,lock&kind=cpu", Kind::Cpu),
    ] {
        let request = read(&format!("format=collapsed&{query}"), "").unwrap();
        assert_eq!(request.format, Format::Collapsed(kind), "{query}");
    }
    for query in ["", "&event=cpu,lock", "&event=cpu&kind=io", "&kind=everything", "&kind="] {
        assert!(read(&format!("format=collapsed{query}"), "").is_err(), "{query}");
    }
}

#[test]
fn unknown_parameters_are_rejected() {
    for query in ["seconds=5", "Duration=5s", "duration=1s&hz=99", "event=cpu&duration=1s&x"] {
        assert!(read(query, "").is_err(), "{query}");
    }
    // An empty parameter is ignored.
    assert!(read("&duration=1s&", "").is_ok());
}

#[test]
fn invalid_values_are_rejected() {
    for query in [
        "event=",
        "event=cpu,",
        "event=wall",
        "event=cpu&event=lock",
        "duration=",
        "duration=30",
        "duration=99ms",
        "duration=61m",
        "duration=-1s",
        "format=",
        "format=svg",
        "rate=0",
        "rate=+5",
        "rate=1001",
        "event=alloc&rate=99",
        "kind=cpu",
        "format=html&kind=cpu",
        "event=%ff",
        "event=%",
    ] {
        assert!(read(query, "").is_err(), "{query}");
    }
}
