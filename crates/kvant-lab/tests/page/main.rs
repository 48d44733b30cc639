//! The lab's page as markup and data: what a browser makes of them is checked by `cargo xtask
//! lab-check`.

mod sample;
#[path = "../../../kvant-profiler/examples/profile_files/synthetic.rs"]
mod synthetic;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use kvant_lab::model::{KnownRow, Report, TimeLine};
use kvant_lab::report::{self, Language, PAGE_BYTES_MAX};
use kvant_profiler::recording::Recording;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;
use synthetic::Plan;

static RECORDING: LazyLock<Recording> =
    LazyLock::new(|| synthetic::recording(Plan { seconds: 10, ..Plan::loaded(1) }));

fn report() -> Report {
    sample::report(&RECORDING)
}

fn page(report: &Report) -> String {
    report::html(report, &|_| Some(RECORDING.clone()), Language::English)
}

/// The script elements of a class: attributes and content.
fn elements(page: &str, class: &str) -> Vec<(String, String)> {
    let start = format!("<script type=\"application/octet-stream\" class=\"{class}\" ");
    let parts = page.split(&start).skip(1);
    parts
        .map(|part| {
            let (attributes, rest) = part.split_once('>').expect("the end of the tag");
            let (content, _) = rest.split_once("</script>").expect("the end of the element");
            (attributes.to_owned(), content.to_owned())
        })
        .collect()
}

fn unpacked(base64: &str) -> Vec<u8> {
    let packed = BASE64_STANDARD.decode(base64).expect("base64");
    let mut bytes = Vec::new();
    ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("zlib");
    bytes
}

#[test]
fn a_page_loads_nothing() {
    let page = page(&report());
    assert!(page.contains("default-src 'none'"));
    for word in
        ["src=\"", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "<link rel=\"s"]
    {
        assert!(!page.contains(word), "{word}");
    }
    // The chart library names its project in a comment, and its licence is inside.
    assert_eq!(page.matches("https://").count(), 1);
    assert!(page.contains("Copyright (c) 2022 Leon Sorokin"));
}

#[test]
fn findings_of_interventions_stand_in_both_languages() {
    let page = page(&report());
    for text in [
        "cause, adds 24.1 ms (20.9 ms to 27.3 ms)",
        "correlation, no effect is shown; 420 us or more would have been seen",
        "relief, changes it by -900 us (-1.10 ms to -700 us)",
        "no effect is shown; 12.6 us or more would have been seen",
        "too few blocks or requests: nothing is claimed",
        "причина, добавляет 24.1 ms",
        "checkpoint (20): status 507: The disk is full",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn what_faster_stages_would_bring_stands_in_both_languages() {
    let page = page(&report());
    for text in [
        "+11 % (8.0 to 14)",
        "+26 % (22 to 30)",
        "no effect shown; 2.8 % would have been seen",
        "too few blocks or requests",
        "<td class=\"claim better\">",
        "<td class=\"claim worse\">",
        "-10 % (-13 to -7.0)",
        "влияние не показано; 2.8 % было бы видно",
        "<code>sync</code> (2): status 501: No profiler",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_time_lines_are_those_of_the_report() {
    let report = report();
    let page = page(&report);
    let lines = elements(&page, "time-line");
    assert_eq!(lines.len(), report.time_lines.len());
    for ((attributes, content), line) in lines.iter().zip(&report.time_lines) {
        assert!(attributes.contains(&format!("data-case=\"{}\"", line.case)), "{attributes}");
        assert!(unpacked(content) == serde_json::to_vec(line).expect("JSON"));
    }
    let head: Value =
        serde_json::from_slice(&unpacked(&elements(&page, "head")[0].1)).expect("JSON");
    // Numbers as a parser reads them.
    let parsed =
        |value: Value| -> Value { serde_json::from_str(&value.to_string()).expect("JSON") };
    assert_eq!(head["curves"], parsed(json!(report.curves)));
    assert_eq!(head["spectra"], parsed(json!(report.spectra)));
}

#[test]
fn a_recording_stands_on_the_axis_of_its_time_line() {
    let page = page(&report());
    let recordings = elements(&page, "recording");
    assert_eq!(recordings.len(), sample::RECORDING_COUNT);
    let offset_us = -((sample::RECORDING_LEAD_NS / 1_000) as i64);
    for (attributes, _) in &recordings {
        assert!(attributes.contains(&format!("data-offset-us=\"{offset_us}\"")), "{attributes}");
        assert!(attributes.contains("data-factor=\"1\""), "{attributes}");
    }
}

#[test]
fn what_does_not_fit_is_left_out_and_counted() {
    let mut report = report();
    let one = report.time_lines[0].clone();
    report.time_lines = vec![TimeLine { recording: Some("a".to_owned()), ..one }; 60];
    let page = page(&report);
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    let lines = elements(&page, "time-line").len();
    let recordings = elements(&page, "recording");
    assert!((10..60).contains(&lines), "{lines} time lines");
    assert!((1..lines).contains(&recordings.len()), "{} recordings", recordings.len());
    let (attributes, _) = &elements(&page, "head")[0];
    let counted = format!(
        "data-lines-left-out=\"{}\" data-recordings-left-out=\"{}\"",
        60 - lines,
        60 - recordings.len()
    );
    assert!(attributes.contains(&counted), "{attributes}");
}

#[test]
fn a_recording_that_does_not_fit_is_thinned() {
    let mut report = report();
    report.time_lines.truncate(1);
    let whole = page(&report);
    let recording_bytes = elements(&whole, "recording")[0].1.len();
    // Leaves space for two thirds of it.
    let filler_bytes = PAGE_BYTES_MAX - whole.len() + recording_bytes / 3;
    report.wrk2[0].text = "x".repeat(report.wrk2[0].text.len() + filler_bytes);
    let page = page(&report);
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    let recordings = elements(&page, "recording");
    assert_eq!(recordings.len(), 1);
    assert!(!recordings[0].0.contains("data-factor=\"1\""), "{}", recordings[0].0);
}

#[test]
fn nothing_in_a_report_becomes_markup() {
    let mut report = report();
    let evil = "</script><script>alert(1)</script>\"'&";
    report.run.title = evil.to_owned();
    report.run.plan = evil.to_owned();
    for case in &mut report.run.cases {
        case.subject = evil.to_owned();
        case.phase = evil.to_owned();
    }
    report.verdict[0].en = evil.to_owned();
    report.environment[0].1 = evil.to_owned();
    report.observations[0].text.ru = evil.to_owned();
    report.wrk2[0].text = evil.to_owned();
    report.files[0] = evil.to_owned();
    report.known.push(KnownRow { what: evil.to_owned(), ..KnownRow::default() });
    report.time_lines[0].lanes[0].name = evil.to_owned();
    assert!(!page(&report).contains("alert(1)</"));
}

#[test]
fn the_words_of_scripts_are_in_the_table_of_words() {
    let words: BTreeMap<String, [String; 2]> =
        serde_json::from_str(include_str!("../../src/report/words.json")).expect("the table");
    for (key, [en, ru]) in &words {
        assert!(!en.is_empty() && !ru.is_empty(), "{key}");
    }
    let page = page(&report());
    // Such as `say('times.case')` and `said('curves.law', 'figcaption')`.
    let mut checked = 0;
    let calls = [("say('", ""), ("said('", ""), ("'data-label': '", ""), ("phrase('", "phrase.")];
    for (call, prefix) in calls {
        for part in page.split(call).skip(1) {
            let (key, _) = part.split_once('\'').expect("the end of the key");
            assert!(words.contains_key(&format!("{prefix}{key}")), "{key}");
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked} keys");
}

#[test]
fn an_empty_report_has_a_page() {
    let full = report();
    let mut run = full.run.clone();
    run.cases.clear();
    let report = Report {
        run,
        attempts: Vec::new(),
        verdict: Vec::new(),
        warnings: Vec::new(),
        environment: Vec::new(),
        maxima: Vec::new(),
        curves: Vec::new(),
        figures: Vec::new(),
        comparisons: Vec::new(),
        interventions: None,
        what_if: None,
        sweeps: Vec::new(),
        spectra: Vec::new(),
        layers: Vec::new(),
        time_lines: Vec::new(),
        known: Vec::new(),
        observations: Vec::new(),
        wrk2: Vec::new(),
        files: Vec::new(),
        ..full
    };
    let page = report::html(&report, &|_| None, Language::Russian);
    assert!(page.contains("<html lang=\"ru\">"));
    assert_eq!(page.matches("<section").count(), 1);
}
