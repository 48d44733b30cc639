//! A server that was built without its profiler.

use crate::fixture::Fixture;

#[test]
fn profiles_are_501() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.request("POST", "/v0/profile", b"").assert_problem(501, "no-profiler");
    client.request("POST", "/v0/admin/what-if?for=1s", b"").assert_problem(501, "no-profiler");
    client.assert_goes_on();
}
