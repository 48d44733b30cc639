//! A subject that cannot be prepared, found or filled does not keep others from being measured.

use crate::conduct::{TempDir, calm, plan, run};
use crate::server::Server;
use kvant_lab::conduct::{Ended, Progress, Stop};
use kvant_lab::record::{AttemptVerdict, RunState};

const REST: &str = r#"
[subject.small]
SERVER
[data]
keys = 1
[workload.status]
method = "GET"
path = "/"
[phase]
held = { rate = 50, duration = "100ms", warmup = "10ms" }
"#;

/// Runs a plan with another subject before one that works.
fn run_with(broken: &str) -> Ended {
    let (dir, server) = (TempDir::new(), Server::start());
    // `no..host` is no name: it is not looked up, and does not belong into the list of hosts.
    let broken = broken.replace("URL", &server.url()).replace("SLASHES", "//");
    let text = format!("repeats = 1\nconnections = 1\n[subject.broken]\n{broken}\n{REST}");
    let (plan, machine) = (plan(&text, &server), calm(&dir));
    run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap()
}

/// How the attempts of a subject failed.
fn failures(ended: &Ended, subject: &str) -> Vec<String> {
    let of_subject = |case: usize| ended.run.cases[case].subject == subject;
    let failure = |verdict: &AttemptVerdict| match verdict {
        AttemptVerdict::Failed(why) => Some(why.clone()),
        _ => None,
    };
    let attempts = ended.attempts.iter().filter(|attempt| of_subject(attempt.case));
    attempts.filter_map(|attempt| failure(&attempt.verdict)).collect()
}

#[test]
fn what_cannot_start_or_be_found_ends_only_its_subject() {
    let cases = [
        ("command = \"sleep 9\"\nprepare = \"kvant-absent build\"", "`kvant-absent build` did not"),
        ("url = \"URL\"\nready = \"/\"\nfill = \"kvant-absent all\"", "`kvant-absent all` did not"),
        ("url = \"http:SLASHESno..host/\"", "cannot find the host `no..host`"),
    ];
    for (broken, why) in cases {
        let ended = run_with(broken);
        assert_eq!(ended.run.state, RunState::Complete, "{broken}");
        let failed = failures(&ended, "broken");
        let is_said = |failure: &String| failure.starts_with(&format!("broken: {why}"));
        assert!(!failed.is_empty() && failed.iter().all(is_said), "{failed:?}");
        let measured = ended.attempts.len() - failed.len();
        assert!(measured > 0 && failures(&ended, "small").is_empty(), "{:?}", ended.attempts);
    }
}

#[test]
fn a_subject_whose_fill_is_not_installed_is_left_out() {
    let ended =
        run_with("command = \"sleep 9\"\nfill = \"kvant-absent all\"\ninstall = \"make it\"");
    let left_out = ended.run.subjects[0].left_out.as_deref();
    assert_eq!(left_out, Some("there is no `kvant-absent`; make it"));
    assert!(ended.attempts.iter().all(|attempt| ended.run.cases[attempt.case].subject == "small"));
}
