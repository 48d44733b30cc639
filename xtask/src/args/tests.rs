use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_string).collect()
}

#[test]
fn numbers_are_read_by_name() {
    let values = numbers(&words("--seed 7 --cycles 20"), &["cycles", "seed"]).unwrap();
    assert_eq!(values, BTreeMap::from([("cycles", 20), ("seed", 7)]));
}

#[test]
fn mistakes_are_named() {
    let problem = |line| numbers(&words(line), &["cycles"]).unwrap_err();
    assert_eq!(problem("--turns 3"), "unknown argument \"--turns\"");
    assert_eq!(problem("cycles 3"), "unknown argument \"cycles\"");
    assert_eq!(problem("--cycles"), "--cycles needs a number");
    assert_eq!(problem("--cycles many"), "--cycles \"many\" is not a number");
    assert_eq!(problem("--cycles 1 --cycles 2"), "--cycles is given twice");
    assert!(none(&words("--cycles 1")).is_err());
}
