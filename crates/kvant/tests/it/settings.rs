//! Settings as the operator sees them: printed, rejected, exit codes.

use crate::kvant_command::{TempDir, kvant, run, run_kvant};

#[test]
fn print_config_names_the_origin_of_each_value() {
    let dir = TempDir::new();
    let file = dir.path().join("kvant.toml");
    std::fs::write(&file, "# mine\nsync = 'os'\nmemory = '1GiB'\nselectors = 3\n")
        .expect("writable");
    let done = run(kvant()
        .args(["serve", "--print-config", "--sync", "always", "--config"])
        .arg(&file)
        .env("KVANT_SELECTORS", "5"));
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let line = |name: &str| -> Vec<String> {
        let line = done.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        let (value, origin) =
            line.expect("the setting is printed").split_once('#').expect("an origin");
        vec![value.trim().to_string(), origin.trim().to_string()]
    };
    assert_eq!(line("sync"), ["sync = \"always\"", "flag --sync"]);
    assert_eq!(line("selectors"), ["selectors = 5", "env KVANT_SELECTORS"]);
    assert_eq!(
        line("memory"),
        ["memory = \"1GiB\"".to_string(), format!("file {}:3", file.display())]
    );
    assert_eq!(line("listen"), ["listen = \"127.0.0.1:8080\"", "default"]);
    assert!(
        done.stdout.starts_with(&format!("# config = \"{}\"", file.display())),
        "{}",
        done.stdout
    );

    // The output is a file with the same settings.
    let printed = dir.path().join("printed.toml");
    std::fs::write(&printed, &done.stdout).expect("writable");
    let again = run(kvant().args(["serve", "--print-config", "--config"]).arg(&printed));
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('#').next().unwrap_or("").trim().to_string()).collect()
    };
    assert_eq!(values(&again.stdout), values(&done.stdout));
}

#[test]
fn the_environment_can_name_the_file() {
    let dir = TempDir::new();
    let file = dir.path().join("kvant.toml");
    std::fs::write(&file, "log-format = 'json'\n").expect("writable");
    let done = run(kvant().args(["serve", "--print-config"]).env("KVANT_CONFIG", &file));
    assert!(done.stdout.contains("log-format = \"json\""), "{}", done.stdout);
    assert!(done.stdout.contains("# env KVANT_CONFIG\n"), "{}", done.stdout);
}

#[test]
fn bad_settings_are_rejected_all_at_once_with_exit_code_2() {
    let dir = TempDir::new();
    let file = dir.path().join("kvant.toml");
    std::fs::write(&file, "lissten = 'x'\nsync = 'maybe'\n").expect("writable");
    let done = run(kvant()
        .args([
            "serve",
            "--memory",
            "1MB",
            "--dispatch",
            "sometimes",
            "--listen",
            "0.0.0.0:80",
            "--config",
        ])
        .arg(&file)
        .env("KVANT_UNKNOWN", "1")
        .env("KVANT_ENGINE", "rocksdb"));
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines[0], "kvant: 7 settings are refused:");
    let origins = [
        format!("  file {}:1: there is no setting `lissten`", file.display()),
        format!("  file {}:2: sync: `maybe`", file.display()),
        "  env KVANT_UNKNOWN: there is no such setting".to_string(),
        "  env KVANT_ENGINE: there is no engine `rocksdb`: use lsm".to_string(),
        "  flag --memory: `1MB` is not a size".to_string(),
        "  flag --dispatch: there is no dispatch mode `sometimes`: use inline, pool, hybrid"
            .to_string(),
        "  flag --listen: 0.0.0.0:80 is not a loopback address".to_string(),
    ];
    for origin in &origins {
        assert!(lines.iter().any(|line| line.starts_with(origin)), "{origin}\n{}", done.stderr);
    }
    assert_eq!(lines.len(), 1 + origins.len(), "{}", done.stderr);
}

#[test]
fn print_config_refuses_bad_settings_too() {
    let done = run_kvant(&["serve", "--print-config", "--sync", "maybe"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""));
}

#[test]
fn unknown_flags_and_commands_are_rejected_with_exit_code_2() {
    for args in
        [&["serve", "--lissten", "x"][..], &["dance"], &["serve", "extra"], &["db", "verify"], &[]]
    {
        let done = run_kvant(args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stdout.is_empty() && !done.stderr.is_empty(), "{args:?}");
    }
}
