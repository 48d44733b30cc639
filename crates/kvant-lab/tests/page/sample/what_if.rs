//! What faster stages would bring: a change of each kind.

use kvant_base::tag::Stage;
use kvant_lab::model::{Change, GainFigure, Gains, WhatIf};
use kvant_lab::record::WhatIfFacts;

fn change(percent: u32, ratio: f64, half_width: f64) -> Change {
    Change {
        percent,
        block_count: 20,
        ratio: Some(ratio),
        interval: Some((ratio - half_width, ratio + half_width)),
        detectable_part: Some(half_width * 1.4),
    }
}

pub(super) fn what_if() -> WhatIf {
    let gains =
        |stage, figure, as_it_is, changes| Gains { case: 0, stage, figure, as_it_is, changes };
    let unknown = Change { block_count: 3, interval: None, ..change(50, 1.1, 0.0) };
    WhatIf {
        facts: WhatIfFacts { stages: vec![Stage::Table, Stage::Parse], percents: vec![25, 50] },
        block_count: 20,
        confidence: 0.99,
        seed: 1,
        gains: vec![
            gains(
                Stage::Table,
                GainFigure::Rate,
                48_200.0,
                vec![change(25, 1.11, 0.03), change(50, 1.26, 0.04)],
            ),
            gains(Stage::Parse, GainFigure::Rate, 48_300.0, vec![change(25, 1.01, 0.02), unknown]),
            gains(
                Stage::Table,
                GainFigure::P99,
                2.1e6,
                vec![change(25, 0.9, 0.03), change(50, 1.08, 0.05)],
            ),
        ],
        failures: vec![("sync".to_owned(), 2, "status 501: No profiler".to_owned())],
    }
}
