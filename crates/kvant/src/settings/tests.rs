mod hosts;
mod threads_and_times;

use super::*;
use kvant_server::{DispatchMode, Overload};
use std::ffi::OsString;
use std::io;
use std::path::Path;

const HOST: Host = Host { memory_bytes: Some(8 << 30), cpu_count: 3 };

fn read_all(
    flags: &[(&'static str, &str)],
    env: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Config, Vec<String>> {
    let file = file.map(str::to_string);
    let read_file = |_: &Path| file.clone().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let sources = Sources {
        flags: flags.iter().map(|&(name, value)| (name, OsString::from(value))).collect(),
        config: file.is_some().then(|| OsString::from("kvant.toml")),
        env: env
            .iter()
            .map(|&(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        read_file: &read_file,
    };
    read(&sources, &HOST)
}

fn problems_of(
    flags: &[(&'static str, &str)],
    env: &[(&str, &str)],
    file: Option<&str>,
) -> Vec<String> {
    read_all(flags, env, file).expect_err("bad values")
}

#[test]
fn defaults_are_those_of_the_contract() {
    let config = read_all(&[], &[("PATH", "/bin")], None).expect("defaults are usable");
    let settings = config.settings;
    assert_eq!(settings.server.listen, "127.0.0.1:8080".parse().expect("an address"));
    assert_eq!(settings.data, Path::new("./kvant-data"));
    assert_eq!(settings.sync, SyncLevel::Interval(Duration::from_secs(1)));
    assert_eq!(settings.memory_bytes, 2 << 30);
    assert_eq!(settings.server.value_bytes_max, 16 << 20);
    assert_eq!(settings.server.selectors, 3);
    assert_eq!(settings.stop_wait_max, Duration::from_secs(10));
    assert_eq!(settings.server.dispatch, DispatchMode::Hybrid);
    assert_eq!(settings.server.overload, Overload::Adaptive);
    assert_eq!(settings.server.workers, 6);
    assert_eq!(settings.server.queue_capacity, 1024);
    assert_eq!(settings.server.selector_cpus, Vec::<usize>::new());
    assert_eq!(settings.server.connections_max, None);
    assert_eq!(settings.server.connection_idle_max, Duration::from_secs(300));
    assert_eq!(settings.server.head_wait_max, Duration::from_secs(10));
    assert!(config.chosen.iter().all(|chosen| chosen.origin == Origin::Default));
}

#[test]
fn checkpoints_are_beside_the_data_and_never_in_it() {
    let dir_of = |flags| read_all(flags, &[], None).expect("usable").settings.server.checkpoints;
    assert_eq!(dir_of(&[]), Path::new("./checkpoints"));
    assert_eq!(dir_of(&[("data", "/srv/kvant/")]), Path::new("/srv/checkpoints"));
    assert_eq!(dir_of(&[("data", ".")]), Path::new("./../checkpoints"));
    assert_eq!(dir_of(&[("data", "/srv/kvant"), ("checkpoints", "/backup")]), Path::new("/backup"));
    for inside in ["/srv/kvant", "/srv/kvant/checkpoints"] {
        let problems = problems_of(&[("data", "/srv/kvant"), ("checkpoints", inside)], &[], None);
        assert!(
            matches!(&problems[..], [one] if one.starts_with("flag --checkpoints: ") && one.contains("data directory")),
            "{problems:?}"
        );
    }
}

#[test]
fn names_are_distinct_and_well_formed() {
    for (at, setting) in SETTINGS.iter().enumerate() {
        assert!(
            setting.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
            "{}",
            setting.name
        );
        assert!(SETTINGS[..at].iter().all(|other| other.name != setting.name), "{}", setting.name);
        assert!(!setting.help.ends_with('.') && !setting.cost.ends_with('.'), "{}", setting.name);
    }
}

#[test]
fn a_small_huge_or_unknown_host_gets_usable_defaults() {
    let sources = Sources {
        flags: vec![],
        config: None,
        env: vec![],
        read_file: &|_| unreachable!("no file is named"),
    };
    for (memory_bytes, expected) in
        [(Some(100 << 20), 64 << 20), (None, 256 << 20), (Some(1 << 40), 256 << 30)]
    {
        let config =
            read(&sources, &Host { memory_bytes, cpu_count: 1 }).expect("defaults are usable");
        assert_eq!(config.settings.memory_bytes, expected);
    }
    // Regression: the default number of selectors was more than their greatest one.
    let host = Host { memory_bytes: None, cpu_count: 4096 };
    let server = read(&sources, &host).expect("defaults are usable").settings.server;
    assert_eq!((server.selectors, server.workers), (1024, 1024));
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let file = Some("stop-wait-max = '1s'\nqueue-wait-max = '1ms'\nrange-idle-max = '1m'\n");
    let env = [("KVANT_STOP_WAIT_MAX", "2s"), ("KVANT_QUEUE_WAIT_MAX", "2ms")];
    let config = read_all(&[("stop-wait-max", "3s")], &env, file).expect("usable");
    assert_eq!(config.settings.stop_wait_max, Duration::from_secs(3));
    assert_eq!(config.settings.server.queue_wait_max, Duration::from_millis(2));
    assert_eq!(config.settings.server.range_idle_max, Duration::from_secs(60));
    let origin = |name: &str| {
        let at = SETTINGS.iter().position(|setting| setting.name == name).expect("a setting");
        config.chosen[at].origin.to_string()
    };
    assert_eq!(origin("stop-wait-max"), "flag --stop-wait-max");
    assert_eq!(origin("queue-wait-max"), "env KVANT_QUEUE_WAIT_MAX");
    assert_eq!(origin("range-idle-max"), "file kvant.toml:3");
    assert_eq!(origin("sync"), "default");
}

#[test]
fn all_problems_are_reported_at_once_with_their_origins() {
    let file = Some("memory = 1_000\nlisten_on = 'x'\nadmin_listen = '127.0.0.1:1'\nsync = 1.5\n");
    let env = [("KVANT_SYNC", "sometimes"), ("KVANT_FOO", "1"), ("KVANT_STOP_WAIT_MAX", "10")];
    let problems =
        problems_of(&[("listen", "8080"), ("workers", "0"), ("engine", "rocksdb")], &env, file);
    let expected = [
        "file kvant.toml:1: memory: `1000` is below the minimum, 64MiB",
        "file kvant.toml:2: there is no setting `listen_on`: see `kvant serve --help`",
        "file kvant.toml:3: there is no setting `admin_listen`: did you mean `admin-listen`?",
        "file kvant.toml:4: sync: write a string, a whole number, true or false",
        "env KVANT_FOO: there is no such setting: see `kvant serve --help`",
        "env KVANT_STOP_WAIT_MAX: `10` is not a duration: write us, ms, s or m, such as 250us, 10ms, 1s, 2m",
        "env KVANT_SYNC: `sometimes` is not a sync level: write os, interval=1s (any duration) or always",
        "flag --listen: `8080` is not an address: write IP:PORT, such as 127.0.0.1:8080 or [::1]:8080",
        "flag --workers: `0` is not a whole number from 1 to 1024",
        "flag --engine: there is no engine `rocksdb`: use lsm, leveldb, cassandra, memory",
    ];
    for sentence in expected {
        assert!(
            problems.iter().any(|problem| problem == sentence),
            "{sentence}\n is not among\n{problems:#?}"
        );
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn an_overridden_value_is_checked_too() {
    let problems = problems_of(&[("sync", "always")], &[("KVANT_SYNC", "never")], None);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("env KVANT_SYNC: "), "{problems:?}");
}

#[test]
fn planned_engines_are_distinguished_from_typos() {
    for (flag, value, sentence) in [
        ("engine", "rocksdb", "there is no engine `rocksdb`: use lsm, leveldb, cassandra, memory"),
        ("dispatch", "both", "there is no dispatch mode `both`: use inline, pool, hybrid"),
        (
            "overload",
            "abort",
            "there is no overload policy `abort`: use adaptive, reject, discard, discard-oldest, caller-runs",
        ),
        ("log-format", "xml", "there is no log format `xml`: use text, json"),
    ] {
        assert_eq!(
            problems_of(&[(flag, value)], &[], None),
            [format!("flag --{flag}: {sentence}")]
        );
    }
}

#[test]
fn a_build_without_the_driver_of_clusters_refuses_the_engine() {
    let flags = [("engine", "cassandra")];
    if cfg!(feature = "cassandra") {
        let read = read_all(&flags, &[], None).expect("usable");
        assert_eq!(read.settings.engine, Engine::Cassandra);
    } else {
        let problems = problems_of(&flags, &[], None);
        assert!(problems[0].contains("was built without the driver of clusters"), "{problems:?}");
    }
}

#[test]
fn leveldb_takes_no_compression_that_it_does_not_have() {
    if cfg!(feature = "leveldb") {
        for compression in ["lz4", "zstd"] {
            let flags = [("engine", "leveldb"), ("compression", compression)];
            let problems = problems_of(&flags, &[], None);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains("compresses with Snappy, or not at all"), "{problems:?}");
        }
        for flags in
            [&[("engine", "leveldb")][..], &[("engine", "leveldb"), ("compression", "none")]]
        {
            assert_eq!(
                read_all(flags, &[], None).expect("usable").settings.engine,
                Engine::LevelDb
            );
        }
    } else {
        let problems = problems_of(&[("engine", "leveldb")], &[], None);
        assert!(problems[0].contains("was built without LevelDB"), "{problems:?}");
    }
}

#[test]
fn an_address_that_is_not_loopback_needs_insecure() {
    for addr in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
        for name in ["listen", "admin-listen"] {
            assert!(
                problems_of(&[(name, addr)], &[], None)[0].contains("is not a loopback address"),
                "{addr}"
            );
            read_all(&[(name, addr), ("insecure", "true")], &[], None)
                .expect("--insecure allows it");
        }
    }
    for addr in ["127.0.0.2:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        read_all(&[("listen", addr)], &[], None).expect("a loopback address");
    }
}

#[test]
fn both_listeners_on_one_address() {
    let same = [("listen", "127.0.0.1:1"), ("admin-listen", "127.0.0.1:1")];
    assert_eq!(problems_of(&same, &[], None).len(), 1);
    read_all(&[("listen", "127.0.0.1:0"), ("admin-listen", "127.0.0.1:0")], &[], None)
        .expect("two free ports");
}

#[test]
fn values_are_at_most_a_quarter_of_the_memory_and_1_gib() {
    for (memory, value) in [("64MiB", "16777217"), ("8GiB", "1073741825"), ("100MiB", "26MiB")] {
        let problems = problems_of(&[("memory", memory), ("value-bytes-max", value)], &[], None);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("flag --value-bytes-max: "), "{problems:?}");
    }
    for (memory, value) in [("64MiB", "16MiB"), ("8GiB", "1GiB"), ("100MiB", "25MiB")] {
        read_all(&[("memory", memory), ("value-bytes-max", value)], &[], None)
            .expect("within the bound");
    }
}

#[test]
fn a_rejected_value_causes_no_other_problem() {
    assert_eq!(problems_of(&[("memory", "lots"), ("value-bytes-max", "1GiB")], &[], None).len(), 1);
    assert_eq!(
        problems_of(&[("listen", "0.0.0.0:1"), ("insecure", "perhaps")], &[], None).len(),
        1
    );
}

#[test]
fn bare_and_quoted_toml_values() {
    let file = "memory = 268_435_456\nselectors = 2\ninsecure = true\nvalue-bytes-max = \"1MiB\"\nlisten = '0.0.0.0:1'\n";
    let settings = read_all(&[], &[], Some(file)).expect("usable").settings;
    assert_eq!(settings.memory_bytes, 256 << 20);
    assert_eq!(settings.server.selectors, 2);
    assert_eq!(settings.server.value_bytes_max, 1 << 20);
    assert!(settings.insecure);
}

#[test]
fn broken_toml_is_reported_with_its_lines() {
    let problems =
        problems_of(&[("listen", "x")], &[], Some("sync = 'always'\nmemory = = 3\nlisten = '\n"));
    assert!(
        problems.iter().any(|problem| problem.starts_with("file kvant.toml:2: ")),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|problem| problem.starts_with("file kvant.toml:3: ")),
        "{problems:?}"
    );
    assert!(problems.iter().any(|problem| problem.starts_with("flag --listen: ")), "{problems:?}");
}

#[test]
fn sections_and_the_file_itself_are_not_keys() {
    let problems = problems_of(&[], &[], Some("config = 'x'\n[server]\nlisten = 'x'\n"));
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("cannot be set in the file itself"), "{problems:?}");
    assert!(problems[1].contains("there is no setting `server`"), "{problems:?}");
}

#[test]
fn an_unreadable_file_is_a_problem_of_its_source() {
    let problems = problems_of(&[], &[("KVANT_CONFIG", "/none.toml")], None);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("env KVANT_CONFIG: cannot read /none.toml: "), "{problems:?}");
}

#[test]
fn service_links_of_kubernetes_are_ignored() {
    let links = [
        ("KVANT_SERVICE_HOST", "10.0.0.1"),
        ("KVANT_SERVICE_PORT", "8080"),
        ("KVANT_SERVICE_PORT_HTTP", "8080"),
        ("KVANT_PORT", "tcp://10.0.0.1:8080"),
        ("KVANT_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("KVANT_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("KVANT_ADMIN_SERVICE_HOST", "10.0.0.1"),
    ];
    read_all(&[], &links, None).expect("the operator set none of these");
    assert_eq!(problems_of(&[], &[("KVANT_PORT", "8080")], None).len(), 1);
    assert_eq!(problems_of(&[], &[("KVANT_PORTS", "1")], None).len(), 1);
    assert_eq!(problems_of(&[], &[("KVANT_SERVICE", "1")], None).len(), 1);
}

#[test]
fn print_config_is_a_file_that_gives_the_same_settings() {
    let flags = [
        ("connections-max", "12"),
        ("dispatch", "pool"),
        ("data", "a \"b\" \\ c"),
        ("memory", "1073741824"),
        ("insecure", "true"),
        ("log-format", "json"),
    ];
    let first = read_all(&flags, &[("KVANT_SELECTORS", " 007")], None).expect("usable");
    let printed = print_config(&first);
    let second = read_all(&[], &[], Some(&printed)).expect("the output can be read");
    assert_eq!(format!("{:?}", first.settings), format!("{:?}", second.settings));
    assert!(printed.contains("# env KVANT_SELECTORS\n"), "{printed}");
    assert!(printed.contains("# flag --memory\n"), "{printed}");
    assert!(printed.contains("# default\n"), "{printed}");
}

#[test]
fn the_engine_accepts_what_the_settings_accept() {
    for memory in ["64MiB", "128MiB", "1GiB", "1024GiB"] {
        for (compaction, goal) in
            [("space", CompactionGoal::Space), ("writes", CompactionGoal::Writes)]
        {
            let flags = [
                ("memory", memory),
                ("compression", "zstd"),
                ("compaction", compaction),
                ("direct-reads", "true"),
            ];
            let options = read_all(&flags, &[], None).expect("usable").settings.engine_options();
            assert_eq!(options.problems(), Vec::<String>::new(), "{memory}, {compaction}");
            assert_eq!(options.goal, goal);
            assert!(options.direct_reads);
            assert!(options.compression.iter().all(|&method| method == Compression::Zstd));
        }
    }
}
