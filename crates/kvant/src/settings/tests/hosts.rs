//! Names under which clients reach the server.

use super::*;

#[test]
fn allowed_hosts_come_from_any_source_and_are_names_alone() {
    let read_hosts =
        |config: Result<Config, Vec<String>>| config.expect("usable").settings.server.allowed_hosts;
    assert_eq!(read_hosts(read_all(&[], &[], None)), Vec::<String>::new());
    let flag = [("allowed-hosts", "kv.example, kv")];
    assert_eq!(read_hosts(read_all(&flag, &[], None)), ["kv.example", "kv"]);
    let env = [("KVANT_ALLOWED_HOSTS", "kv")];
    assert_eq!(read_hosts(read_all(&[], &env, None)), ["kv"]);
    let file = Some("allowed-hosts = 'kv.example'");
    assert_eq!(read_hosts(read_all(&[], &[], file)), ["kv.example"]);
    for text in ["", "kv,", "kv:8080", "http://localhost", "kv/x"] {
        let problems = problems_of(&[("allowed-hosts", text)], &[], None);
        assert_eq!(problems.len(), 1, "{text}");
        assert!(
            problems[0].starts_with("flag --allowed-hosts: `")
                && problems[0].contains("leave out scheme"),
            "{problems:?}"
        );
    }
}
