use super::*;
use crate::outcome::Second;
use crate::report::testing::calm;

const S: u64 = 1_000_000_000;

fn used(stolen_part: f64, others_part: f64, pressure_part: Option<f64>) -> MachineUse {
    MachineUse {
        time_ns: S,
        cpu_count: 2,
        generator_part: 0.1,
        others_part,
        stolen_part,
        pressure_part,
        ..MachineUse::default()
    }
}

fn with(machine: MachineUse) -> Outcome {
    Outcome { machine: Some(machine), ..calm(1_000) }
}

#[test]
fn stolen_time_and_others_that_make_tasks_wait_disturb_a_phase() {
    assert_eq!(disturbance(&calm(1_000)), None, "not sampled");
    assert_eq!(disturbance(&with(used(0.01, 0.02, Some(0.5)))), None);
    assert_eq!(
        disturbance(&with(used(0.12, 0.3, Some(0.4)))).unwrap(),
        "the hypervisor took 12 % of the CPU time, other processes 30 %"
    );
    assert_eq!(
        disturbance(&with(used(0.03, 0.0, None))).unwrap(),
        "the hypervisor took 3 % of the CPU time"
    );
    assert_eq!(
        disturbance(&with(used(0.0, 0.3, Some(0.2)))).unwrap(),
        "other processes took 30 % of the CPU time"
    );
    assert!(disturbance(&with(used(0.0, 0.3, None))).is_some());
    // CPUs that no other process needed.
    assert_eq!(disturbance(&with(used(0.0, 0.3, Some(0.02)))), None);
    // It may have been the server.
    let hidden = MachineUse { others_include_server: true, ..used(0.0, 0.3, Some(0.2)) };
    assert_eq!(disturbance(&with(hidden)), None);
}

#[test]
fn few_disturbed_seconds_disturb_a_step_of_a_search_but_not_a_phase() {
    let outcome = |disturbed: usize, stolen: f64| {
        let mut outcome = with(used(0.0, 0.0, Some(0.0)));
        outcome.seconds = (0..20)
            .map(|n| {
                let stolen_part = if n < disturbed { stolen } else { 0.01 };
                Second { machine: Some(used(stolen_part, 0.0, None)), ..Second::default() }
            })
            .collect();
        outcome
    };
    assert_eq!(disturbance_of_any_second(&outcome(0, 0.0)), None);
    assert_eq!(disturbance_of_any_second(&outcome(20, 0.04)), None, "ticks are few");
    assert_eq!(disturbance(&outcome(1, 0.2)), None);
    let any = disturbance_of_any_second(&outcome(1, 0.2)).unwrap();
    assert!(any.contains("1 of 20 seconds") && any.contains("20 %"), "{any}");
    assert!(disturbance(&outcome(3, 0.2)).is_some());
}
