//! The queries of `/v0/slow`. The rows are tested beside the route.

use crate::fixture::Fixture;

#[test]
fn the_response_is_a_list() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    let mut client = fixture.client();
    for query in ["", "?limit=1", "?limit=100000", "?operation=get", "?operation=%67et&limit=2&x=y"]
    {
        let response = client.request("GET", &format!("/v0/slow{query}"), b"");
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("application/json")),
            "{query}"
        );
        assert!(response.json().is_array(), "{query}");
    }
    client.assert_goes_on();
}

#[test]
fn bad_queries_are_400() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for query in [
        "limit=0",
        "limit=",
        "limit=-1",
        "limit=1e3",
        "limit=1&limit=1",
        "operation=",
        "operation=GET",
        "operation=%zz",
        "operation=get&operation=put",
    ] {
        client.request("GET", &format!("/v0/slow?{query}"), b"").assert_problem(400, "bad-query");
    }
    client.assert_goes_on();
}
