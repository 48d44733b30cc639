//! The comparison of two sides as data.

use super::text::Text;
use crate::comparison::assertion::{Decision, Figure};
use crate::comparison::intervals::Interval;
use serde::{Deserialize, Serialize};

/// Part of the successes of the other side with which a latency of a side can be low.
const SUCCEEDED_PART_MIN: f64 = 0.999;

/// What a comparison of B with A shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// What A is, as on the command line.
    pub a: String,
    /// What B is.
    pub b: String,
    /// Blocks that were planned for each case.
    pub block_count: usize,
    /// Probability that all intervals together hold the true ratios.
    pub confidence: f64,
    /// Seed of the order of blocks and of the bootstrap.
    pub seed: u64,
    /// All figures, by case, first those of the whole server, then those by layer.
    pub figures: Vec<Compared>,
    /// Assertions in the order of the command line, each once for each figure that it is about.
    pub assertions: Vec<Asserted>,
    /// Recordings of both sides, by case.
    pub flames: Vec<FlamePair>,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Workload.
    pub workload: String,
    /// Phase.
    pub phase: String,
    /// Value of each axis.
    pub cell: Vec<String>,
    /// As in [`super::Figures`].
    pub step: String,
    /// Activity and stage, such as `put wal`; empty for the whole server.
    pub layer: String,
    /// Which figure.
    pub figure: Figure,
    /// Median of the attempts of A: nanoseconds, bytes, or requests per second; `None` if A has no
    /// such layer.
    pub a: Option<f64>,
    /// Likewise.
    pub b: Option<f64>,
    /// B by A, over the blocks in which all four attempts have it.
    pub ratio: Option<f64>,
    /// Those blocks.
    pub block_count: usize,
    /// Parts of the requests of A and B that failed, on average; 0 of figures that are no latency.
    #[serde(default)]
    pub errors_parts: [f64; 2],
    /// What may be said of the ratio; `None` with too few blocks, or of a maximum.
    pub interval: Option<(f64, f64)>,
    /// The least difference, as a part of A, that blocks with this noise show with a probability of
    /// 95 %.
    pub detectable_part: Option<f64>,
}

/// An assertion on a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asserted {
    /// As on the command line.
    pub text: String,
    /// The case and the step in words; empty if nothing was measured that it is about.
    pub case: String,
    /// The ratio.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// What the interval says.
    pub decision: Decision,
}

/// Recordings of both sides in one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlamePair {
    /// The case in words.
    pub case: String,
    /// The recording of A, relative to the run directory.
    pub a: String,
    /// The recording of B.
    pub b: String,
    /// Responses per second of A and B while they were recorded.
    #[serde(default)]
    pub rates_per_s: Option<[f64; 2]>,
    /// The page with their difference, relative to the run directory.
    pub page: String,
}

impl Compared {
    /// The case in words: workload, phase, cell and step.
    pub fn case(&self) -> String {
        let cell = self.cell.iter().filter(|value| !value.is_empty());
        let parts = [&self.workload, &self.phase].into_iter().chain(cell).chain([&self.step]);
        parts.filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
    }

    /// Notes what the blocks say.
    pub(crate) fn set_interval(&mut self, found: Option<Interval>) {
        self.interval = found.map(|found| (found.low, found.high));
        self.detectable_part = found.map(|found| found.detectable_part);
    }

    /// What the interval says of equal work. To refuse is quick: had the side that succeeds less
    /// often done all, its latency might have been any higher.
    pub fn known_interval(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        let [a, b] = self.errors_parts.map(|part| 1.0 - part);
        let is_less = |one: f64, other: f64| one < SUCCEEDED_PART_MIN * other;
        Some((
            if is_less(a, b) { 0.0 } else { low },
            if is_less(b, a) { f64::INFINITY } else { high },
        ))
    }

    /// Whether nothing is claimed because one side succeeds less often.
    pub fn is_withheld(&self) -> bool {
        self.difference().is_none() && self.known_interval() != self.interval
    }

    /// Whether B has more, if there is a difference.
    pub fn difference(&self) -> Option<bool> {
        let (low, high) = self.known_interval()?;
        if low > 1.0 { Some(true) } else { (high < 1.0).then_some(false) }
    }

    /// What is claimed.
    pub fn claim(&self) -> Text {
        let text = |en: String, ru: String| Text { en, ru };
        match (self.is_b_better(), self.detectable_part) {
            (Some(true), _) => text("B is better".into(), "B лучше".into()),
            (Some(false), _) => text("B is worse".into(), "B хуже".into()),
            (None, _) if self.is_withheld() => {
                let [a, b] = self.errors_parts.map(|part| 100.0 * part);
                text(
                    format!(
                        "nothing is claimed: {a:.1} % of the requests to A failed, {b:.1} % of \
                         those to B"
                    ),
                    format!("ничего не утверждается: отказов у A {a:.1} %, у B {b:.1} % запросов"),
                )
            }
            (None, Some(part)) => {
                let percent = rounded_up_percent(part);
                text(
                    format!("no difference; {percent} % or more would have been seen"),
                    format!("разницы нет; {percent} % и больше было бы видно"),
                )
            }
            (None, None) if !self.figure.is_claimed() => {
                text("nothing is claimed".into(), "ничего не утверждается".into())
            }
            (None, None) if self.a.is_none() => text("only in B".into(), "только у B".into()),
            (None, None) if self.b.is_none() => text("only in A".into(), "только у A".into()),
            (None, None) => text("too few blocks".into(), "мало блоков".into()),
        }
    }

    /// Whether B is better, if there is a difference.
    pub fn is_b_better(&self) -> Option<bool> {
        self.difference().map(|has_more| has_more == self.figure.more_is_better())
    }
}

/// Such as `4.1` or `12`; a smaller difference than the printed one is not promised.
fn rounded_up_percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent < 10.0 {
        true => format!("{:.1}", (10.0 * percent).ceil() / 10.0),
        false => format!("{:.0}", percent.ceil()),
    }
}

impl Sides {
    /// Figures about which a claim is made.
    pub fn claimed(&self) -> impl Iterator<Item = &Compared> {
        self.figures.iter().filter(|one| one.interval.is_some() && !one.is_withheld())
    }

    /// The decision on all assertions: violated if one is, else undecided if one is.
    pub fn decision(&self) -> Decision {
        let has = |decision| self.assertions.iter().any(|one| one.decision == decision);
        match () {
            () if has(Decision::Violated) => Decision::Violated,
            () if has(Decision::Undecided) => Decision::Undecided,
            () => Decision::Holds,
        }
    }
}
