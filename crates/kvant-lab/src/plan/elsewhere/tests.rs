use super::*;
use crate::record::ComparisonFacts;
use std::path::Path;

fn parse(text: &str) -> Result<Plan, String> {
    Plan::parse(text, Path::new("t.toml")).map_err(|problems| problems.to_string())
}

#[test]
fn subjects_of_one_cluster_share_a_store_elsewhere() {
    let plan = parse(
        r#"
        [subject]
        one = { serve = { engine = "cassandra", cluster-keyspace = "lab", workers = 1 } }
        two = { serve = { engine = "cassandra", cluster-keyspace = "lab", workers = 2 } }
        apart = { serve = { engine = "cassandra", cluster-keyspace = "other" } }
        here = { serve = { engine = "lsm" } }
        other = { command = "java -jar other.jar {port}" }
        running = { url = "http://127.0.0.1:1/" }
        "#,
    );
    let plan = plan.unwrap();
    let places: Vec<Option<String>> = plan.subjects.iter().map(Subject::elsewhere).collect();
    assert!(places[0].is_some() && places[0] == places[1], "{places:?}");
    assert!(places[2].is_some() && places[2] != places[0], "{places:?}");
    assert_eq!(places[3..], [None, None, Some("http://127.0.0.1:1/".to_owned())]);
}

#[test]
fn nodes_have_the_names_and_ports_of_a_server() {
    let nodes = |options: &str| {
        let text = format!("[subject.one]\nserve = {{ {options} }}\n");
        parse(&text).unwrap().subjects[0].cluster_nodes()
    };
    assert_eq!(nodes("engine = \"cassandra\""), ["127.0.0.1:9042"]);
    let named = nodes("engine = \"cassandra\", cluster-nodes = \"db1, db2:99,[::1]:98\"");
    assert_eq!(named, ["db1:9042", "db2:99", "[::1]:98"]);
    assert!(nodes("engine = \"lsm\", cluster-nodes = \"db1\"").is_empty());
}

const EMPTY: &str = "[workload]\nget = {}\nput = { empty = true }\n[phase]\nmax = \"closed\"\n";

#[test]
fn an_empty_store_is_refused_where_nothing_empties_it() {
    let refused = |subject: &str| parse(&format!("{EMPTY}{subject}")).err();
    for subject in [
        "[subject.one]\nurl = \"http://127.0.0.1:1/\"",
        "[subject.one]\nserve = { engine = \"cassandra\" }",
        "[subject.one]\nserve = {}\n[sweep]\nengine = [\"lsm\", \"cassandra\"]",
    ] {
        let expected = "t.toml:3:1: workload `put` has to begin on an empty store, and nothing \
                        empties that of subject `one`, which is a server that runs already or \
                        keeps its records in a cluster: leave `empty` out";
        assert_eq!(refused(subject).as_deref(), Some(expected), "{subject}");
    }
    for subject in [
        "[subject.one]\nserve = { engine = \"memory\" }",
        "[subject.one]\nurl = \"http://127.0.0.1:1/\"\nfixed-response = true",
        "[subject]\none = { url = \"http://127.0.0.1:1/\", workloads = \"get\" }\ntwo = {}",
    ] {
        assert_eq!(refused(subject), None, "{subject}");
    }
}

#[test]
fn an_empty_store_is_refused_of_a_side_that_nothing_empties() {
    let compare = |b: &str| {
        let (a, b) = ("this".to_owned(), b.to_owned());
        let facts = ComparisonFacts { a, b, assertions: Vec::new() };
        parse(EMPTY).unwrap().compare(facts, 1).map(drop)
    };
    assert_eq!(compare("workers=2"), Ok(()));
    let refused = compare("http://127.0.0.1:1/").unwrap_err();
    assert!(refused.contains("nothing empties that of subject `B`"), "{refused}");
}
