use super::*;
use crate::machine::MachineUse;
use crate::outcome::Second;
use crate::report::testing::{Classic, calm, overloaded};
use crate::report::wrk2;
use crate::verdict::judge;
use std::time::Duration;

/// Two kinds of requests, statuses, failures of all kinds.
fn mixed() -> Outcome {
    let mut outcome = calm(2_000);
    let mut range = outcome.total.ops[0].clone();
    range.response.record_many_ns(71_000_000, 40);
    range.statuses = vec![(200, 19_000), (404, 900), (429, 60), (500, 30), (503, 10)];
    range.name = "GET /v0/entities?start=&end= of everything".to_string();
    outcome.total.ops.push(range);
    outcome.total.ops.push(OpRecord { name: "never sent".to_string(), ..OpRecord::default() });
    outcome.total.errors = Errors { connect: 8, read: 12, write: 3, timeout: 232, status: 100 };
    outcome
}

fn ramp(count: u64) -> Outcome {
    let mut outcome = calm(1_000);
    outcome.phase.rate = Rate::Ramp { from: 0.0, to: 50_000.0 };
    outcome.phase.duration = Duration::from_secs(count);
    outcome.seconds = (0..count)
        .map(|second| Second {
            start_ns: second * 1_000_000_000,
            end_ns: (second + 1) * 1_000_000_000,
            planned: 5_000 * second,
            completed: 5_000 * second.min(7),
            backlog: 5_000 * second.saturating_sub(7),
            errors: second % 2,
            p50_ns: 700_000 + 1_000 * second,
            p99_ns: 5_000_000 * (second + 1),
            max_ns: 7_000_000 * (second + 1),
            machine: None,
        })
        .collect();
    outcome
}

fn closed() -> Outcome {
    let mut outcome = calm(20_000);
    outcome.phase.rate = Rate::Closed;
    outcome
}

fn steps_of_three() -> String {
    let ramp = Outcome { phase: ramp(10).phase, ..calm(1_000) };
    let phases = [calm(10_000), overloaded(20_000, 72), ramp, closed()];
    let judged: Vec<(Outcome, Verdict)> = phases
        .into_iter()
        .map(|outcome| {
            let verdict = judge(&outcome);
            (outcome, verdict)
        })
        .collect();
    steps(&judged)
}

fn judged(outcome: &Outcome) -> String {
    phase(outcome, &judge(outcome))
}

/// `KVANT_BLESS=1` rewrites the file.
fn assert_golden(name: &str, text: &str, golden: &str) {
    let path = format!("{}/../../testdata/golden/load/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KVANT_BLESS").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    for (index, (found, expected)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", index + 1);
    }
    assert_eq!(text, golden, "{name}");
}

macro_rules! golden {
    ($name:literal, $text:expr) => {
        let golden = include_str!(concat!("../../../../../testdata/golden/load/", $name));
        assert_golden($name, &$text, golden);
    };
}

#[test]
fn summaries_match_the_golden_files() {
    golden!("summary-calm.txt", judged(&calm(2_000)));
    golden!("summary-overload.txt", judged(&overloaded(20_000, 72)));
    golden!("summary-mixed.txt", judged(&mixed()));
    golden!("summary-steps.txt", steps_of_three());
    golden!("summary-ramp.txt", seconds(&ramp(10)));
}

#[test]
fn one_line_has_the_cpu_use() {
    let machine = MachineUse {
        generator_part: 0.124,
        server_part: Some(0.21),
        others_part: 0.012,
        stolen_part: 0.001,
        pressure_part: Some(0.023),
        ..MachineUse::default()
    };
    let line = |machine: Option<MachineUse>| {
        let outcome = Outcome { machine, ..calm(2_000) };
        let text = judged(&outcome);
        let line = text.lines().find(|line| line.starts_with("  CPU use: "));
        line.map(str::to_owned)
    };
    assert_eq!(line(None), None);
    assert_eq!(
        line(Some(machine)).unwrap(),
        "  CPU use: generator 12.4 %, server 21.0 %, others 1.2 %, stolen 0.1 %; tasks waited 2.3 %"
    );
    let hidden = MachineUse {
        server_part: None,
        others_include_server: true,
        pressure_part: None,
        ..machine
    };
    assert_eq!(
        line(Some(hidden)).unwrap(),
        "  CPU use: generator 12.4 %, server and others 1.2 %, stolen 0.1 %"
    );
    let full = MachineUse {
        generator_part: 1.0,
        server_part: Some(1.0),
        others_part: 1.0,
        stolen_part: 1.0,
        pressure_part: Some(1.0),
        ..machine
    };
    assert!(line(Some(full)).unwrap().len() <= WIDTH);
}

#[test]
fn no_line_is_longer_than_the_width_or_ends_with_a_space() {
    let texts = [
        judged(&calm(2_000)),
        judged(&overloaded(20_000, 72)),
        judged(&mixed()),
        judged(&closed()),
        steps_of_three(),
        seconds(&ramp(10)),
        seconds(&ramp(1_000)),
    ];
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.len());
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn parsers_of_wrk2_do_not_see_the_summary() {
    for outcome in [calm(2_000), overloaded(20_000, 72), mixed()] {
        let parts = wrk2::Parts { uncorrected: true, ..wrk2::Parts::default() };
        let classic = wrk2::body(&outcome, parts);
        let all = classic.clone() + &judged(&outcome) + &steps_of_three() + &seconds(&ramp(10));
        assert_eq!(Classic::parse(&all), Classic::parse(&classic));
    }
}

#[test]
fn a_long_ramp_has_a_bounded_table() {
    let text = seconds(&ramp(1_000));
    assert_eq!(text.lines().count(), 1 + 59);
    // A row of 17 seconds has the largest of their latencies.
    let first: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(first, ["17", "40.00k", "26.76k", "45000", "8", "716.00us", "85.00ms", "119.00ms"]);
    assert_eq!(seconds(&Outcome { seconds: Vec::new(), ..ramp(1) }).lines().count(), 1);
}

#[test]
fn one_kind_with_one_status_needs_no_table() {
    assert!(!judged(&calm(2_000)).contains("statuses"));
    let mut outcome = calm(2_000);
    outcome.total.ops[0].statuses = vec![(200, 19_000), (404, 1_000)];
    assert!(judged(&outcome).contains("200: 19000, 404: 1000"));
}

#[test]
fn long_names_and_lists_are_truncated() {
    assert_eq!(cut("short", 8), "short");
    assert_eq!(cut("much too long", 8), "much t..");
    assert_eq!(cut("a\tb\u{1b}", 8), "a?b?");
    assert_eq!(statuses(&[(200, 5), (404, 6)], 16), "200: 5, 404: 6");
    assert_eq!(statuses(&[(200, 5), (404, 6), (500, 7)], 18), "200: 5, 2 more");
    let long = wrapped(&"word ".repeat(50), "  ");
    assert!(long.lines().all(|line| line.len() <= WIDTH) && long.lines().count() == 3, "{long}");
}

/// One kind, one status: the status is printed unless it is 2xx.
#[test]
fn statuses_of_a_single_kind_are_printed() {
    let with = |statuses: &[(u16, u64)]| {
        let mut outcome = calm(2_000);
        outcome.total.ops[0].statuses = statuses.to_vec();
        judged(&outcome)
    };
    assert!(with(&[(500, 50)]).contains("\n  status 500: 50\n"));
    assert!(with(&[(200, 3_950), (500, 50)]).contains("\n  status 200: 3950, status 500: 50\n"));
    assert!(with(&[(404, 2_000)]).contains("\n  status 404: 2000\n"));
    for well in [200, 201, 202] {
        assert!(!with(&[(well, 2_000)]).contains("status"));
    }
}

#[test]
fn counts_agree_with_their_nouns() {
    let mut outcome = calm(2_000);
    outcome.total.errors = Errors { connect: 1, read: 1, write: 1, timeout: 1, status: 1 };
    let text = judged(&outcome).replace("\n    ", " ");
    for words in [
        "1 attempt to connect failed,",
        "1 answer broke off or was no HTTP,",
        "1 request could not be written,",
        "1 met its deadline",
        "1 answer had a status that is not accepted",
        "  1 attempt to connect failed;",
        "  2 requests were lost",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    outcome.total.errors.write = 0;
    assert!(judged(&outcome).contains("  1 request was lost with its connection"));
}
