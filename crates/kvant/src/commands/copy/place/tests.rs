use super::Place;
use std::ffi::OsStr;
use std::path::PathBuf;

fn cluster(nodes: &[&str], keyspace: &str) -> Place {
    let nodes = nodes.iter().map(|node| node.to_string()).collect();
    Place::Cluster { nodes, keyspace: keyspace.to_string() }
}

#[test]
fn places_are_told_apart_by_their_scheme() {
    let parse = |text: &str| Place::parse(OsStr::new(text)).expect(text);
    for directory in ["data", "/srv/data", "./http:", "cassandra:", "a:b"] {
        assert_eq!(parse(directory), Place::Directory(PathBuf::from(directory)));
    }
    assert_eq!(parse("http://example.com:8080/"), Place::Server("example.com:8080".to_string()));
    assert_eq!(parse("http://[::1]"), Place::Server("[::1]:80".to_string()));
    assert_eq!(parse("cassandra://db1/k"), cluster(&["db1:9042"], "k"));
    let two = cluster(&["db1:9142", "[::1]:9042"], "k");
    assert_eq!(parse("cassandra://db1:9142,[::1]/k"), two);
    assert_eq!(parse(&two.to_string()), two);
}

#[test]
fn what_is_no_place_is_refused_with_the_right_form() {
    for (text, words) in [
        ("https://example.com", "without TLS"),
        ("ftp://db1", "is no place of records"),
        ("http://", "named as http://"),
        ("http://example.com/v0/entities", "named as http://"),
        ("cassandra://db1", "/KEYSPACE"),
        ("cassandra:///k", "/KEYSPACE"),
        ("cassandra://db1,/k", "/KEYSPACE"),
        ("cassandra://me:secret@db1/k", "--cluster-user"),
    ] {
        let error = Place::parse(OsStr::new(text)).expect_err(text);
        assert!(error.message().contains(words), "{text}: {error}");
    }
}
