//! Help, manual pages, completions and the reference, generated from one definition.

use crate::kvant_command::{TempDir, kvant, run, run_kvant};
use std::path::Path;

const SETTINGS: [&str; 8] = [
    "data",
    "listen",
    "admin-listen",
    "sync",
    "memory",
    "value-bytes-max",
    "stop-wait-max",
    "print-config",
];

#[test]
fn help_shows_each_setting_with_its_default_and_variable() {
    let help = run_kvant(&["serve", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for setting in SETTINGS {
        assert!(help.stdout.contains(&format!("--{setting}")), "{setting}\n{}", help.stdout);
    }
    assert!(help.stdout.contains("[default: interval=1s] [env: KVANT_SYNC]"), "{}", help.stdout);
    assert_eq!(run_kvant(&["help", "serve"]).stdout, help.stdout);
    assert_eq!(run_kvant(&["--version"]).stdout, format!("kvant {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_explains_itself() {
    let commands = ["verify", "repair", "dump", "stats", "compact", "checkpoint", "restore"];
    for command in commands {
        let help = run_kvant(&["db", command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains(&format!("Usage: kvant db {command}")), "{}", help.stdout);
    }
    for command in ["fill", "compare"] {
        let help = run_kvant(&["load", command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains(&format!("Usage: kvant load {command}")), "{}", help.stdout);
        assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    }
    for command in ["man", "completions", "db"] {
        assert_eq!(run_kvant(&[command, "--help"]).code, Some(0), "{command}");
    }
}

#[test]
fn help_of_load_has_wrk2s_options_ours_and_the_exit_codes() {
    let help = run_kvant(&["load", "--help"]).stdout;
    for option in [
        "-t, --threads",
        "-c, --connections",
        "-d, --duration",
        "-R, --rate",
        "-s, --script",
        "-H, --header",
        "-L, --latency",
        "-U, --u_latency",
        "-B, --batch_latency",
        "-T, --timeout",
        "-v, --version",
        "-h, --help",
        "--find-max",
        "--assert",
        "--workload",
        "--wrk2-exact",
    ] {
        assert!(help.contains(option), "{option}\n{help}");
    }
    for code in
        ["0 done", "1 could not run", "2 wrong usage", "3 an assertion", "4 an assertion", "130"]
    {
        assert!(help.replace('\n', " ").contains(code), "{code}\n{help}");
    }
    let version = run_kvant(&["load", "-v"]);
    assert_eq!(version.code, Some(0), "{version:?}");
    assert!(version.stdout.contains(env!("CARGO_PKG_VERSION")), "{version:?}");
}

#[test]
fn manual_pages_one_file_a_command() {
    let dir = TempDir::new();
    let done = run(kvant().arg("man").arg(dir.path().join("new")));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    let mut pages: Vec<String> = std::fs::read_dir(dir.path().join("new"))
        .expect("created")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
        .collect();
    pages.sort();
    let expected = [
        "",
        "-completions",
        "-db",
        "-db-checkpoint",
        "-db-compact",
        "-db-copy",
        "-db-dump",
        "-db-repair",
        "-db-restore",
    ];
    let more = [
        "-db-stats",
        "-db-verify",
        "-explain",
        "-lab",
        "-lab-compare",
        "-lab-explain",
        "-lab-list",
        "-lab-report",
        "-lab-run",
        "-lab-what-if",
        "-load",
        "-load-compare",
        "-load-fill",
        "-man",
        "-profile",
        "-serve",
    ];
    for page in expected.iter().chain(&more) {
        assert!(pages.contains(&format!("kvant{page}.1")), "{page}: {pages:?}");
    }
    assert_eq!(pages.len(), expected.len() + more.len(), "{pages:?}");
    let serve = std::fs::read_to_string(dir.path().join("new/kvant-serve.1")).expect("readable");
    for setting in SETTINGS {
        assert!(serve.contains(&setting.replace('-', "\\-")), "{setting}");
    }
    let all = run_kvant(&["man"]).stdout;
    assert_eq!(all.matches(".TH kvant").count(), pages.len());
}

#[test]
fn completions_know_settings_and_their_words() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = run_kvant(&["completions", shell]);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["admin-listen", "checkpoint"] {
            assert!(done.stdout.contains(word), "{word} for {shell}");
        }
        // The generators for the other two shells suggest no values.
        if ["bash", "zsh", "fish"].contains(&shell) {
            assert!(done.stdout.contains("zstd"), "values for {shell}");
        }
    }
    assert_eq!(run_kvant(&["completions", "tcsh"]).code, Some(2));
}

/// `KVANT_BLESS=1` rewrites the file.
#[test]
fn the_reference_of_settings_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let current = run_kvant(&["docs"]).stdout;
    if std::env::var_os("KVANT_BLESS").is_some() {
        std::fs::write(&path, &current).expect("the repository is writable");
    }
    let stored = std::fs::read_to_string(&path).expect("docs/configuration.md exists");
    assert!(
        stored == current,
        "docs/configuration.md is stale: run `KVANT_BLESS=1 cargo test -p kvant`"
    );
}
