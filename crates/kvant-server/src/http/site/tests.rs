use super::*;

#[test]
fn a_host_is_a_name_or_an_address_and_may_have_a_port() {
    for (host, name) in [
        ("localhost", "localhost"),
        ("LocalHost:8080", "LocalHost"),
        ("127.0.0.1:", "127.0.0.1"),
        ("[::1]:8080", "[::1]"),
        ("[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]"),
        ("a_b-c.example:1", "a_b-c.example"),
        ("", ""),
    ] {
        assert_eq!(host_name(host.as_bytes()), Some(name.as_bytes()), "{host}");
    }
    for host in [
        "a b/c@",
        "a b",
        "user@localhost",
        "localhost/",
        "localhost:8x",
        "localhost:80:80",
        "::1",
        "[::1",
        "[::1]x",
        "[x]",
        "[]",
        "\u{e4}",
        "a,b:c",
    ] {
        assert_eq!(host_name(host.as_bytes()), None, "{host}");
    }
}

#[test]
fn addresses_localhost_and_listed_names_are_own() {
    let listed = ["example.com".to_string()];
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:8080",
        "EXAMPLE.com:443",
        "",
    ] {
        assert!(is_own_host(host.as_bytes(), &listed), "{host}");
    }
    for host in [
        "x",
        "localhost.evil.example",
        "evil.localhost",
        "127.0.0.1.evil.example",
        "127.1",
        "0x7f000001",
        "2130706433",
        "example.com.evil",
        "a.example.com",
        "example.com, evil",
    ] {
        assert!(!is_own_host(host.as_bytes(), &listed), "{host}");
    }
}

#[test]
fn names_to_allow_have_no_scheme_port_or_path() {
    for name in ["example.com", "kv", "10.0.0.1", "[::1]"] {
        assert_eq!(allowed_host_problem(name), None);
    }
    for name in ["", "example.com:80", "http://example.com", "example.com/", "a b", "::1"] {
        assert!(allowed_host_problem(name).is_some(), "{name}");
    }
}
