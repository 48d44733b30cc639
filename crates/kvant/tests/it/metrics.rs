//! The reference of metrics, made of what servers say of themselves.

use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use std::collections::BTreeMap;
use std::path::Path;

/// The metrics of a cluster are in `docs/cluster.md`: this test has none.
const ENGINES: [&str; 3] = ["lsm", "leveldb", "memory"];

const HEAD: &str = "\
# Metrics

<!-- Made from `/metrics`. `KVANT_BLESS=1 cargo test -p kvant` rewrites it. -->

`GET /metrics` has these, with their labels, in Prometheus's text format. Counters count since the
start of the server. Those of a cluster: [cluster.md](cluster.md#figures).

| metric | kind | engines | meaning |
| --- | --- | --- | --- |
";

/// Kind and meaning of each metric in Prometheus's text format.
fn described(text: &str) -> BTreeMap<&str, (&str, &str)> {
    let of = |word: &'static str| {
        text.lines().filter_map(move |line| line.strip_prefix(word)?.split_once(' '))
    };
    let kinds: BTreeMap<&str, &str> = of("# TYPE ").collect();
    let help = of("# HELP ");
    help.map(|(name, help)| (name, (*kinds.get(name).expect("a kind"), help))).collect()
}

#[test]
fn the_reference_of_metrics_is_up_to_date() {
    let texts = ENGINES.map(|engine| {
        let dir = TempDir::new();
        let server = TestServer::start_with(&dir.path().join("data"), &["--engine", engine]);
        let response = server.exchange(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
        server.stop();
        String::from_utf8(response).expect("UTF-8")
    });
    // Engines may mean something else by a metric.
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for (engine, text) in ENGINES.into_iter().zip(&texts) {
        for (name, (kind, help)) in described(text) {
            rows.entry((name, kind, help)).or_default().push(engine);
        }
    }
    let mut current = String::from(HEAD);
    for ((name, kind, help), engines) in rows {
        let engines = match engines.len() {
            count if count == ENGINES.len() => "all".to_owned(),
            _ => engines.join(", "),
        };
        current += &format!("| `{name}` | {kind} | {engines} | {help} |\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("KVANT_BLESS").is_some() {
        std::fs::write(&path, &current).expect("the repository is writable");
    }
    let stored = std::fs::read_to_string(&path).expect("docs/metrics.md exists");
    assert!(stored == current, "docs/metrics.md is stale: run `KVANT_BLESS=1 cargo test -p kvant`");
}
