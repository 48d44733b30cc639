//! Effects of suspects: a finding of each kind.

use kvant_lab::explain::intervention::Effect;
use kvant_lab::model::Interventions;
use kvant_lab::record::{InterventionFacts, Suspect};

fn effect(suspect: Suspect, percent: f64, change_ns: f64, half_width_ns: f64) -> Effect {
    Effect {
        case: 0,
        suspect,
        operation: "put".to_owned(),
        percent,
        block_count: 20,
        control_ns: Some(1.3e6),
        change_ns: Some(change_ns),
        interval_ns: Some((change_ns - half_width_ns, change_ns + half_width_ns)),
        detectable_ns: Some(half_width_ns * 1.4),
        coinciding_part: 0.0,
    }
}

pub(super) fn interventions() -> Interventions {
    let unknown = Effect {
        block_count: 3,
        interval_ns: None,
        detectable_ns: None,
        ..effect(Suspect::Neighbour, 99.9, 4e6, 0.0)
    };
    Interventions {
        facts: InterventionFacts::new(Suspect::ALL.to_vec()),
        block_count: 20,
        confidence: 0.99,
        seed: 1,
        effects: vec![
            effect(Suspect::Flush, 99.0, 24.1e6, 3.2e6),
            Effect { coinciding_part: 0.4, ..effect(Suspect::Compaction, 99.0, 0.1e6, 0.3e6) },
            effect(Suspect::Pause, 99.0, -0.9e6, 0.2e6),
            effect(Suspect::Profiler, 50.0, 3e3, 9e3),
            unknown,
        ],
        failures: vec![("checkpoint".to_owned(), 20, "status 507: The disk is full".to_owned())],
    }
}
