use super::*;
use crate::histogram::Histogram;
use crate::op::OpNames;
use crate::record::Errors;

fn phase(rate: Rate, seconds: u64, warmup: u64) -> Phase {
    Phase {
        rate,
        warmup: Duration::from_secs(warmup),
        duration: Duration::from_secs(seconds),
        request_count_max: None,
    }
}

/// Second `index` of a phase: 1,000 planned, all but `unsent` sent and completed in 650 us.
fn second(index: u64, unsent: u64) -> Interval {
    let mut interval = Interval {
        start_ns: index * 1_000_000_000,
        end_ns: (index + 1) * 1_000_000_000,
        planned: 1_000,
        sent: 1_000 - unsent,
        completed: 1_000 - unsent,
        ..Interval::default()
    };
    let op = OpNames::default().intern("GET");
    let mut response = Histogram::new();
    response.record_many_ns(650_000, 1_000 - unsent);
    interval.op_mut(op).response = response;
    interval
}

fn written(is_terminal: bool, write: impl FnOnce(&mut Progress<&mut Vec<u8>>)) -> String {
    let mut bytes = Vec::new();
    write(&mut Progress::new(&mut bytes, is_terminal));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn progress_of_a_limited_number_of_requests_counts_requests() {
    let text = written(false, |progress| {
        let limited =
            Phase { request_count_max: Some(5_000), ..phase(Rate::Constant(1_000.0), 86_400, 0) };
        progress.begin(&limited, 0, 1).unwrap();
        progress.second(&second(0, 10)).unwrap();
        progress.end().unwrap();
    });
    assert!(text.starts_with("0:01 990 of 5000 sent 0.99k of 1.00k/s "), "{text}");
}

#[test]
fn a_terminal_has_one_line_that_is_erased_at_the_end() {
    let text = written(true, |progress| {
        progress.begin(&phase(Rate::Constant(1_000.0), 60, 5), 0, 1).unwrap();
        progress.second(&second(0, 0)).unwrap();
        progress.second(&second(1, 3)).unwrap();
        progress.end().unwrap();
    });
    let expected = "\r\x1b[Kwarm-up for 0:05\
                    \r\x1b[K0:01/1:00 1.00k of 1.00k/s p50 650.24us p99 650.24us errors 0 backlog 0\
                    \r\x1b[K0:02/1:00 1.00k of 1.00k/s p50 650.24us p99 650.24us errors 0 backlog 3\
                    \r\x1b[K";
    assert_eq!(text, expected);
}

#[test]
fn without_a_terminal_a_plain_line_follows_every_ten_seconds() {
    let text = written(false, |progress| {
        progress.begin(&phase(Rate::Constant(1_000.0), 25, 0), 1, 3).unwrap();
        for index in 0..25 {
            progress.second(&second(index, 10)).unwrap();
        }
        progress.end().unwrap();
    });
    let expected = "[2/3] 0:10/0:25 0.99k of 1.00k/s p50 650.24us p99 650.24us errors 0 backlog 100\n\
                    [2/3] 0:20/0:25 0.99k of 1.00k/s p50 650.24us p99 650.24us errors 0 backlog 200\n";
    let expected: Vec<String> =
        expected.lines().map(|line| line.chars().take(79).collect()).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert!(!text.contains(['\r', '\x1b']));
}

#[test]
fn each_short_phase_has_a_line() {
    let text = written(false, |progress| {
        for index in 0..3 {
            progress.begin(&phase(Rate::Closed, 2, 0), index, 3).unwrap();
            progress.second(&second(0, 0)).unwrap();
            progress.second(&second(1, 0)).unwrap();
            progress.end().unwrap();
        }
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2], "[3/3] 0:02/0:02 1.00k/s p50 650.24us p99 650.24us errors 0 backlog 0");
}

#[test]
fn a_phase_without_seconds_has_no_line() {
    let text = written(false, |progress| {
        progress.end().unwrap();
        progress.begin(&phase(Rate::Closed, 2, 0), 0, 1).unwrap();
        progress.end().unwrap();
    });
    assert_eq!(text, "");
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let mut large = second(86_000, 0);
    large.planned = 1 << 40;
    large.errors.read = 1 << 40;
    large.ops[0].response.record_many_ns(999_990_000, 1_000);
    let shown = |is_terminal| {
        let text = written(is_terminal, |progress| {
            progress.begin(&phase(Rate::Constant(1e6), 86_400, 0), 98, 99).unwrap();
            progress.second(&large).unwrap();
            progress.end().unwrap();
        });
        text.replace(ERASE, "").trim_end().to_string()
    };
    let (cut, whole) = (shown(true), shown(false));
    assert!(cut.len() <= TERMINAL_WIDTH && whole.len() > TERMINAL_WIDTH, "{cut}");
    assert!(whole.starts_with(&cut) && whole.ends_with("backlog 1.10T"), "{whole}");
    assert!(cut.starts_with("[99/99] 23:53:21/24:00:00 1.00k of 1.10T/s p50 "), "{cut}");
}

#[test]
fn failures_of_all_kinds_count() {
    let mut failing = second(0, 0);
    failing.errors = Errors { connect: 1, read: 2, write: 3, status: 4, timeout: 5 };
    let text = written(true, |progress| {
        progress.begin(&phase(Rate::Closed, 2, 0), 0, 1).unwrap();
        progress.second(&failing).unwrap();
        progress.second(&failing).unwrap();
    });
    assert!(text.contains("errors 15 ") && text.contains("errors 30 "), "{text}");
}

#[test]
fn times_are_formatted_as_on_a_clock() {
    let clock = |ms| super::clock(Duration::from_millis(ms));
    assert_eq!(clock(400), "0:00");
    assert_eq!(clock(999), "0:01");
    assert_eq!(clock(59_500), "1:00");
    assert_eq!(clock(600_000), "10:00");
    assert_eq!(clock(7_265_000), "2:01:05");
}

#[test]
fn lines_of_a_search_begin_with_the_purpose_of_the_phase() {
    let text = written(false, |progress| {
        progress.set_note("[bisection, 1:40 left] ".to_owned());
        progress.begin(&phase(Rate::Constant(1_000.0), 1, 3), 0, 1).unwrap();
        progress.second(&second(0, 0)).unwrap();
        progress.end().unwrap();
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "[bisection, 1:40 left] warm-up for 0:03");
    assert!(lines[1].starts_with("[bisection, 1:40 left] 0:01/0:01 1.00k of 1.00k/s"), "{text}");
}
