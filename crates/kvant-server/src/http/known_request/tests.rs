use super::super::query;
use super::*;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

/// What the parsers find in a request of the fast path.
fn parsed(received: &[u8]) -> Option<(PlainRequest<'_>, FastRequest)> {
    let request = PlainRequest::parse(received)?;
    let route = Route::from_name(request.path)?;
    let is_put = request.method == Method::PUT;
    let query = match route {
        Route::Status if request.method == Method::GET => None,
        Route::Entity => Some(query::entity(request.query, is_put).ok()?),
        _ => return None,
    };
    let (method, body_bytes) = (request.method.clone(), request.body.len());
    Some((request, FastRequest { method, route, query, body_bytes }))
}

fn known_from(text: &str) -> KnownRequests {
    let mut known = KnownRequests::default();
    let (request, fast) = parsed(text.as_bytes()).expect(text);
    known.keep(text.as_bytes(), &request, fast.route);
    known
}

fn key_found(known: &KnownRequests, text: &str) -> Option<String> {
    let found = known.find(text.as_bytes())?;
    Some(String::from_utf8(found.query?.key.to_vec()).unwrap())
}

#[test]
fn the_head_of_the_last_request_is_known() {
    let get = |key: &str| format!("GET /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\n\r\n");
    let known = known_from(&get("first"));
    assert_eq!(key_found(&known, &get("second=?+")).as_deref(), Some("second=?+"));
    for key in ["", "%61", "a&ttl=1", "a b", "a\r\nX:", "\u{e4}", "a#b"] {
        assert_eq!(key_found(&known, &get(key)), None, "{key}");
    }
    let longest = "k".repeat(KEY_BYTES_MAX);
    assert_eq!(key_found(&known, &get(&longest)), Some(longest.clone()));
    assert_eq!(key_found(&known, &get(&format!("{longest}k"))), None);
    assert_eq!(key_found(&known, &get("a").to_lowercase()), None);
    assert_eq!(key_found(&known, &format!("{}{}", get("a"), get("b"))), None);
    let whole = get("a");
    (0..whole.len()).for_each(|end| assert_eq!(key_found(&known, &whole[..end]), None));

    let put = |key: &str, value: &str| {
        let bytes = value.len();
        format!(
            "PUT /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n{value}"
        )
    };
    let known = known_from(&put("first", "abc"));
    let found = known.find(put("second", "\r\nd").as_bytes()).expect("a known head");
    assert_eq!((found.method, found.body_bytes), (Method::PUT, 3));
    assert_eq!(key_found(&known, &put("second", "abcd")), None);
    assert_eq!(key_found(&known, &put("second", "abc")[1..]), None);
    assert_eq!(key_found(&known, &get("a")), None);
}

#[test]
fn a_status_request_is_known_as_a_whole() {
    let status = "GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n";
    let known = known_from(status);
    let found = known.find(status.as_bytes()).expect("known");
    assert!(found.route == Route::Status && found.query.is_none());
    assert!(known.find(b"GET /v0/status HTTP/1.1\r\nHost: y\r\n\r\n").is_none());
    assert!(KnownRequests::default().find(status.as_bytes()).is_none());
}

#[test]
fn heads_with_other_parameters_or_of_unusual_length_are_not_kept() {
    for target in ["/v0/entity?id=%61", "/v0/entity?id=a&x=y", "/v0/entity?x=y&id=a"] {
        let known = known_from(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(known.get.is_none(), "{target}");
    }
    let long = "y".repeat(HEAD_BYTES_MAX);
    let known =
        known_from(&format!("GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"));
    assert!(known.get.is_none());
}

/// Requests of a few parts, so that many heads are known and many keys are odd.
fn random_request(rng: &mut Rng) -> String {
    let mut any = |all: &[&str]| all[rng.below(all.len() as u64) as usize].to_string();
    let method = any(&["GET", "GET", "PUT", "DELETE", "\r\nGET", "HEAD"]);
    let before = any(&["?id=", "?id=", "?id=", "?ID=", "?x=y&id=", "?id=a&id="]);
    let key = any(&["a", "bc", "", "%62", "d=e", "f?g", "h&i", "j k", "l\r\n", "m&ttl=1", "n#"]);
    let headers = any(&["Host: x\r\n", "Host: x\r\n", "Host: y\r\nA: b\r\n", "host: x\r\n"]);
    let body = any(&["", "", "vvv", "wwww", "\r\n\r\n"]);
    let length = match body.as_str() {
        "" if method != "PUT" => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let path = any(&["/v0/entity", "/v0/entity", "/v0/entity", "/v0/status"]);
    format!("{method} {path}{before}{key} HTTP/1.1\r\n{headers}{length}\r\n{body}")
}

#[test]
fn a_known_request_means_what_the_parsers_find() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut known = KnownRequests::default();
    let mut found_count = 0;
    for _ in 0..50_000 {
        let text = random_request(&mut rng);
        let found = known.find(text.as_bytes());
        let parsed = parsed(text.as_bytes());
        if let Some(found) = found {
            let (_, parsed) = parsed.as_ref().unwrap_or_else(|| panic!("{text:?} is not plain"));
            assert_eq!(format!("{found:?}"), format!("{parsed:?}"), "{text:?}");
            found_count += 1;
        }
        if let Some((request, fast)) = &parsed {
            known.keep(text.as_bytes(), request, fast.route);
        }
    }
    assert!(found_count > 500, "{found_count} of 50,000 were known");
}
