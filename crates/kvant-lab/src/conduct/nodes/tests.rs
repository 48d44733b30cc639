use super::*;
use crate::plan::Plan;
use std::net::TcpListener;
use std::path::Path;

#[test]
fn nodes_of_this_machine_are_found() {
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = first.local_addr().unwrap().port();
    let found = |subject: &str| {
        let text = format!("[subject.one]\n{subject}\n");
        let plan = Plan::parse(&text, Path::new("nodes.toml"));
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        on_this_machine(&plan.subjects[0], &ProcFs::system())
    };
    let of = |nodes: &str| {
        found(&format!("serve = {{ engine = \"cassandra\", cluster-nodes = \"{nodes}\" }}"))
    };
    let own = [std::process::id()];
    assert_eq!(of(&format!("127.0.0.1:{port}")), own);
    // Of another node of the same cluster the server learns later.
    assert_eq!(of(&format!("192.0.2.1:{port},127.0.0.2:{port}")), own);
    assert_eq!(of(&format!("192.0.2.1:{port}")), [0; 0], "it is elsewhere");
    let other_engine =
        format!("serve = {{ engine = \"lsm\", cluster-nodes = \"127.0.0.1:{port}\" }}");
    assert_eq!(found(&other_engine), [0; 0], "it has no cluster");
}
