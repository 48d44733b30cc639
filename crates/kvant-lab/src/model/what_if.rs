//! What faster stages would bring, as data.

use super::text::Text;
use crate::record::WhatIfFacts;
use kvant_base::tag::Stage;
use serde::{Deserialize, Serialize};

/// What faster stages would bring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// What was sped up.
    pub facts: WhatIfFacts,
    /// Blocks that were planned.
    pub block_count: u32,
    /// Probability that all intervals together hold the true changes.
    pub confidence: f64,
    /// Seed of the order of the phases, and of the intervals.
    pub seed: u64,
    /// By subject, workload and phase, then by figure; of these the stage with the greatest benefit
    /// comes first.
    pub gains: Vec<Gains>,
    /// Stages that were not sped up when they should: which, how often, and why the first time.
    pub failures: Vec<(String, usize, String)>,
}

kvant_base::named_enum! {
    /// What may change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum GainFigure {
        /// Responses per second of a closed loop.
        Rate = "rate",
        /// The median of the response time.
        P50 = "p50",
        /// The 99th percentile of the response time.
        P99 = "p99",
    }
}

/// What a faster stage would bring for a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gains {
    /// [`crate::record::Case::id`].
    pub case: usize,
    /// The stage.
    pub stage: Stage,
    /// What would change.
    pub figure: GainFigure,
    /// The figure as it is: the median of the blocks.
    pub as_it_is: f64,
    /// By [`WhatIfFacts::percents`].
    pub changes: Vec<Change>,
}

/// A change by a part of a stage's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Per cent of its time that the stage is spared.
    pub percent: u32,
    /// Blocks with the figure.
    pub block_count: usize,
    /// The figure then by the figure as it is; `None` without a block.
    pub ratio: Option<f64>,
    /// Its interval; `None` with too few blocks.
    pub interval: Option<(f64, f64)>,
    /// The least change, a part of 1, that blocks with this noise show with a probability of 95 %.
    pub detectable_part: Option<f64>,
}

impl Gains {
    /// How much better a ratio makes the figure: above 0 if it does.
    pub fn benefit(&self, ratio: f64) -> f64 {
        match self.figure {
            GainFigure::Rate => ratio.ln(),
            GainFigure::P50 | GainFigure::P99 => -ratio.ln(),
        }
    }

    /// The benefit of the greatest change.
    pub fn greatest_benefit(&self) -> f64 {
        let ratio = self.changes.last().and_then(|change| change.ratio);
        ratio.map_or(f64::NEG_INFINITY, |ratio| self.benefit(ratio))
    }

    /// Whether the whole interval of a change is better than the figure as it is.
    pub fn is_shown(&self, change: &Change) -> bool {
        let ends = |(low, high): (f64, f64)| self.benefit(low).min(self.benefit(high));
        change.interval.is_some_and(|interval| ends(interval) > 0.0)
    }
}

impl Change {
    /// Whether the interval leaves open if there is any change.
    pub fn is_open(&self) -> bool {
        self.interval.is_none_or(|(low, high)| low <= 1.0 && high >= 1.0)
    }

    /// The change in words, such as `+11 % (8 to 14)`.
    pub fn text(&self) -> Text {
        let Some((ratio, (low, high))) = self.ratio.zip(self.interval) else {
            return Text {
                en: "too few blocks or requests".to_owned(),
                ru: "блоков или запросов мало".to_owned(),
            };
        };
        if self.is_open() {
            let detectable = percent(self.detectable_part.unwrap_or_default());
            return Text {
                en: format!("no effect shown; {detectable} % would have been seen"),
                ru: format!("влияние не показано; {detectable} % было бы видно"),
            };
        }
        let [change, low, high] = [ratio, low, high].map(|ratio| percent(ratio - 1.0));
        let sign = if ratio > 1.0 { "+" } else { "" };
        Text {
            en: format!("{sign}{change} % ({low} to {high})"),
            ru: format!("{sign}{change} % ({low} .. {high})"),
        }
    }
}

/// A part of 1 in per cent, with one decimal below 10.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        small if small.abs() < 9.95 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}
