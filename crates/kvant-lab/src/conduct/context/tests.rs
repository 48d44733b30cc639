use super::*;

#[test]
fn the_cpus_of_subjects_and_generator_are_judged() {
    let judged = |subject: &str| {
        let text =
            format!("server-cpus = \"1\"\ngenerator-cpus = \"3,5\"\n[subject.one]\n{subject}\n");
        let plan = Plan::parse(&text, Path::new("placed.toml"));
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let set = |cpus: &[u32]| process::cpu_set(cpus, &CpuSet::new());
        judged_cpus(&plan, &ProcFs::system(), &set(&plan.server_cpus), &set(&plan.generator_cpus))
    };
    assert_eq!(judged("command = \"serve {port}\""), [1, 3, 5]);
    assert!(judged("url = \"http://127.0.0.1:1/\"").is_empty(), "it may be on any CPU");
    let node = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let cluster = |nodes: &str| {
        judged(&format!("serve = {{ engine = \"cassandra\", cluster-nodes = \"{nodes}\" }}"))
    };
    assert!(cluster(&node.local_addr().unwrap().to_string()).is_empty(), "as its node");
    assert_eq!(cluster("192.0.2.1"), [1, 3, 5]);
}
