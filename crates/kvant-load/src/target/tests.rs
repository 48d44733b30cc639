use super::*;

fn parsed(url: &str) -> Target {
    Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// TLS, host, port, authority, path.
fn parts(url: &str) -> (bool, String, Option<u16>, String, String) {
    let target = parsed(url);
    assert_eq!(target.url, url);
    assert_eq!(target.addresses, []);
    (target.is_tls, target.host, target.port, target.authority, target.path)
}

#[test]
fn urls_are_parsed_and_paths_kept_as_given() {
    let cases = [
        ("http://localhost", (false, "localhost", None, "localhost", "/")),
        ("http://localhost:8080/", (false, "localhost", Some(8080), "localhost:8080", "/")),
        (
            "HTTPS://Example.com/a/../b%2f?x=1&y=%20#part",
            (true, "Example.com", None, "Example.com", "/a/../b%2f?x=1&y=%20"),
        ),
        (
            "http://127.0.0.1:1?x=ftp://localhost@:0",
            (false, "127.0.0.1", Some(1), "127.0.0.1:1", "/?x=ftp://localhost@:0"),
        ),
        ("http://[::1]:65535/v0", (false, "::1", Some(65535), "[::1]:65535", "/v0")),
        ("https://[2001:db8::1]#x", (true, "2001:db8::1", None, "[2001:db8::1]", "/")),
        ("http://localhost:/x", (false, "localhost", None, "localhost", "/x")),
        ("http://localhost:80//x", (false, "localhost", Some(80), "localhost:80", "//x")),
    ];
    for (url, (is_tls, host, port, authority, path)) in cases {
        let expected = (is_tls, host.to_owned(), port, authority.to_owned(), path.to_owned());
        assert_eq!(parts(url), expected, "{url}");
    }
}

#[test]
fn unix_sockets_are_percent_encoded_hosts() {
    let target = parsed("http+unix://%2Frun%2Fkv%20ant.sock/v0/status?x");
    assert_eq!(target.addresses, [Address::Unix(PathBuf::from("/run/kv ant.sock"))]);
    assert_eq!(
        (target.host.as_str(), target.port, target.authority.as_str()),
        ("localhost", None, "localhost")
    );
    assert_eq!(target.path, "/v0/status?x");
    assert!(!target.is_tls);
    assert_eq!(target.clone().resolve().unwrap(), target);
    assert_eq!(
        parsed("http+unix://here.sock").addresses,
        [Address::Unix(PathBuf::from("here.sock"))]
    );
}

#[test]
fn malformed_urls_are_refused_with_the_reason() {
    let after_http = [
        ("", "has no host"),
        ("/path", "has no host"),
        (":80/", "has no host"),
        ("user:secret@host/", "Authorization"),
        ("a b/", "' '"),
        ("a/b c", "' '"),
        ("a/b\r\nX: y", "'\\r'"),
        ("ho\u{e9}te/", "in its host"),
        ("::1/", "brackets"),
        ("[::1/", "without `]`"),
        ("[fe80::1%25eth0]/", "no IPv6 address"),
        ("[::1]8080/", "between `]` and the port"),
        ("host:0/", "port `0`"),
        ("host:65536/", "port `65536`"),
        ("host:+80/", "port `+80`"),
        ("host:8o/", "port `8o`"),
    ];
    let others = [
        ("localhost:8080", "has no scheme"),
        ("ftp://localhost/", "scheme `ftp`"),
        ("unix:///run/x.sock", "http+unix://"),
        ("http+unix:///run/x.sock", "percent-encode"),
        ("http+unix://%2Fx:80/", "has a port"),
        ("http+unix://%2Fx%00/", "zero byte"),
    ];
    let refused = |url: &str, reason: &str| {
        let message = Target::parse(url).unwrap_err().to_string();
        assert!(message.contains(reason), "{url}: {message}");
    };
    for (rest, reason) in after_http {
        refused(&format!("http://{rest}"), reason);
    }
    for (url, reason) in others {
        refused(url, reason);
    }
    let long = format!("http+unix://{}/", "x".repeat(108));
    assert!(Target::parse(&long).unwrap_err().to_string().contains("107"));
}

#[test]
fn hosts_are_resolved_with_the_default_port() {
    let addresses = |url: &str| parsed(url).resolve().unwrap().addresses;
    assert_eq!(addresses("http://127.0.0.1"), [Address::Tcp("127.0.0.1:80".parse().unwrap())]);
    assert_eq!(addresses("https://127.0.0.1"), [Address::Tcp("127.0.0.1:443".parse().unwrap())]);
    assert_eq!(addresses("https://[::1]:8443/"), [Address::Tcp("[::1]:8443".parse().unwrap())]);
    let localhost = addresses("http://localhost:7");
    assert!(!localhost.is_empty());
    for address in localhost {
        let Address::Tcp(address) = address else { panic!("{address:?}") };
        assert!(address.ip().is_loopback() && address.port() == 7, "{address}");
    }
}

#[test]
fn a_host_without_an_address_is_an_error_that_names_it() {
    // RFC 2606 reserves this top-level domain.
    let host = "kvant.invalid";
    let error = parsed(&format!("http://{host}/")).resolve().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains(host), "{error}");
}

#[test]
fn the_first_reachable_address_comes_first() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = Address::Tcp(listener.local_addr().unwrap());
    let closed = {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Address::Tcp(closed.local_addr().unwrap())
    };
    let no_socket = Address::Unix("/does/not/exist.sock".into());
    let second = std::time::Duration::from_secs(1);
    let mut target = parsed("http://127.0.0.1/");
    target.addresses = vec![closed.clone(), no_socket.clone(), here.clone()];
    let addresses = target.clone().reach(second).unwrap().addresses;
    assert_eq!(addresses, [here, closed.clone(), no_socket.clone()]);
    for address in [closed, no_socket] {
        target.addresses = vec![address.clone()];
        let error = target.clone().reach(second).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error.to_string().starts_with(&format!("unable to connect to {address} ")),
            "{error}"
        );
    }
}

#[test]
fn a_password_in_a_url_is_not_repeated() {
    let url = format!("http://{}@example.com/p?q=@", "ada:secret");
    let text = Target::parse(&url).unwrap_err().to_string();
    assert!(text.contains("http://...@example.com/p?q=@"), "{text}");
    assert!(!text.contains("ada") && !text.contains("secret"), "{text}");
}
