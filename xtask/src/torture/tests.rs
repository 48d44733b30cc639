use super::*;

#[test]
fn the_tests_exist() {
    for (package, module) in TORTURES.iter().flat_map(|torture| torture.tests) {
        let dir = process::root().join(format!("crates/{package}/tests/it"));
        let is_there = dir.join(format!("{module}.rs")).exists() || dir.join(module).exists();
        assert!(is_there, "{package}: {module}");
    }
}

#[test]
fn each_torture_has_its_own_options() {
    let parse = |command: Command, line: &str| command.try_get_matches_from(line.split(' '));
    for line in ["torture", "torture --cycles 5 --seed 1 --dev", "torture mutate --count 200"] {
        assert!(parse(command(), line).is_ok(), "{line}");
    }
    for line in
        ["torture --minutes 1", "torture mutate --cycles 1", "torture --cycles x", "torture 3"]
    {
        assert!(parse(command(), line).is_err(), "{line}");
    }
    assert!(parse(soak_command(), "soak --cycles 1").is_err());
}
